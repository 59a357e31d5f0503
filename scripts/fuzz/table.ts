/** The targets of the fuzzer. A new one is a module beside and a line here. */
import { fuzzProtocol } from "../../test/hostile/protocol-target.ts";
import { fuzzSession } from "../../test/hostile/session-target.ts";
import { avroTarget } from "./avro-target.ts";
import { bytesTarget } from "./bytes-target.ts";
import { canaryTarget } from "./canary-target.ts";
import { compressionTarget } from "./compression-target.ts";
import { jsonTarget } from "./json-target.ts";
import { parquetTarget } from "./parquet-target.ts";
import { protobufTarget } from "./protobuf-target.ts";
import { recordsTarget } from "./records-target.ts";
import { scanTarget } from "./scan-target.ts";
import type { FuzzTarget } from "./target.ts";
import { xmlTarget } from "./xml-target.ts";

export const TARGETS: readonly FuzzTarget[] = [
  recordsTarget,
  compressionTarget,
  bytesTarget,
  scanTarget,
  parquetTarget,
  jsonTarget,
  avroTarget,
  xmlTarget,
  protobufTarget,
  { name: "protocol", run: fuzzProtocol },
  { name: "responses", run: fuzzSession },
];

export function targetNamed(name: string): FuzzTarget | null {
  return [...TARGETS, canaryTarget].find((t) => t.name === name) ?? null;
}
