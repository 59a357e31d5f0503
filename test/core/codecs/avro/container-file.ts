/** A whole object container file in memory to its records as JSON text. */
import { isUtf8 } from "node:buffer";
import { inflateRawSync } from "node:zlib";
import { fallbackCodecs } from "../../../../src/adapters/duckdb/native-fallback.ts";
import { compileAvro } from "../../../../src/core/codecs/avro/compile.ts";
import {
  type ContainerCodecs,
  readBlock,
  readHeader,
  unpackBlock,
} from "../../../../src/core/codecs/avro/container.ts";
import { DecodeError } from "../../../../src/core/codecs/record-codec.ts";
import { Output } from "../../../../src/core/compression/output.ts";
import { Failure } from "../../../../src/core/failure/failure.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import { cellValue } from "../../../../src/core/types/value-cells.ts";
import { valueJson } from "../../../../src/core/types/value-json.ts";

const CONTAINER_CODECS: ContainerCodecs = {
  ...fallbackCodecs,
  inflate(bytes, start, end, out) {
    try {
      out.append(inflateRawSync(bytes.subarray(start, end), { maxOutputLength: Math.max(1, out.allowance) }));
    } catch (e) {
      if (e instanceof Failure) throw e;
      throw new Failure("compression.corrupt", `no deflate: ${e}`);
    }
  },
};

/** Throws the codec's failures, "cut short" for a file that ends early, a DecodeError for a record that is refused. */
export function readAll(
  file: Uint8Array,
  { mostBlock = 1 << 20, mostUnpacked = 1 << 20 }: { mostBlock?: number; mostUnpacked?: number } = {},
): string[] {
  const header = readHeader(file, file.length);
  if (header === null) throw new Error("cut short");
  const decoder = compileAvro(
    { writer: { text: header.schema, references: [] } },
    { isUtf8: (b) => isUtf8(b) },
  );
  const columns = decoder.fields.map((f) => builderOf(f.type));
  const out = new Output(1024);
  let rows = 0;
  let at = header.end;
  while (at < file.length) {
    const block = readBlock(file, at, file.length, header, mostBlock);
    if (block === null) throw new Error("cut short");
    out.begin(0, mostUnpacked);
    unpackBlock(file, block, header.codec, CONTAINER_CODECS, out);
    rows += decoder.block(out.bytes, out.start, out.end, block.count, columns, (f) => {
      throw new DecodeError(f.code, f.path, f.reason);
    });
    at = block.next;
  }
  // Between blocks a file may end anywhere: whether it is whole nobody can tell.
  if (rows === 0) throw new Error("cut short");
  const finished = columns.map((c) => c.finish());
  return Array.from(
    { length: rows },
    (_, r) =>
      `{${decoder.fields.map((f, i) => `${JSON.stringify(f.name)}:${valueJson(cellValue(finished[i]!, r))}`).join(",")}}`,
  );
}
