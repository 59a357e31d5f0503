/**
 * The only list of adapters. Configuration, the reference page and the JSON Schema all come from it; adding an
 * adapter is adding it here. Specs are imported at once since they are small; everything else waits until used.
 */
import type * as z from "zod";
import type { AdapterSpec } from "../core/config/adapter-spec.ts";
import { Failure } from "../core/failure/failure.ts";
import { kafkaSourceSpec } from "./kafka/spec.ts";
import { parquetSinkSpec } from "./parquet/spec.ts";

export type KafkaSource = z.output<typeof kafkaSourceSpec>;
/** A sink's options with the name of its adapter, by which they are told apart. */
export type Sink = { readonly type: "parquet" } & z.output<typeof parquetSinkSpec>;

const ADAPTERS: readonly AdapterSpec[] = [
  { kind: "source", name: "kafka", about: "topics of an Apache Kafka cluster", spec: kafkaSourceSpec },
  {
    kind: "sink",
    name: "parquet",
    about: "Parquet files in a folder of this machine",
    spec: parquetSinkSpec,
  },
];

export function catalogue(): readonly AdapterSpec[] {
  return distinct(ADAPTERS);
}

/** Two adapters of one kind and name would make `type` ambiguous: a bug, found before anything is read. */
export function distinct(adapters: readonly AdapterSpec[]): readonly AdapterSpec[] {
  const seen = new Set<string>();
  for (const { kind, name } of adapters) {
    const key = `${kind} ${name}`;
    if (seen.has(key)) throw new Failure("internal.bug", `two adapters of kind ${kind} are named ${name}`);
    seen.add(key);
  }
  return adapters;
}
