/** Whole object container files in memory: to records as JSON text, and from payloads. */
import { isUtf8 } from "node:buffer";
import { deflateRawSync, zstdCompressSync } from "node:zlib";
import { fallbackCodecs } from "../../../../src/adapters/duckdb/native-fallback.ts";
import { compileAvro } from "../../../../src/core/codecs/avro/compile.ts";
import {
  type ContainerCodec,
  readBlock,
  readHeader,
  unpackBlock,
} from "../../../../src/core/codecs/avro/container.ts";
import { DecodeError } from "../../../../src/core/codecs/record-codec.ts";
import { snappyBound } from "../../../../src/core/compression/codec.ts";
import { Output } from "../../../../src/core/compression/output.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import { cellValue } from "../../../../src/core/types/value-cells.ts";
import { valueJson } from "../../../../src/core/types/value-json.ts";

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
    unpackBlock(file, block, header.codec, fallbackCodecs, out);
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

/** Encoded as Avro's long: zigzag, then 7 bits a byte. */
function long(n: number): Uint8Array {
  const out: number[] = [];
  let left = n * 2;
  for (; left > 127; left = Math.floor(left / 128)) out.push((left % 128) + 128);
  return Uint8Array.from([...out, left]);
}

const sized = (bytes: Uint8Array): Uint8Array => Buffer.concat([long(bytes.length), bytes]);
const named = (name: string, value: string): Uint8Array =>
  Buffer.concat([sized(Buffer.from(name)), sized(Buffer.from(value))]);

export const MARKER: Uint8Array = Uint8Array.from({ length: 16 }, (_, i) => 200 + i);

export function containerHeader(schema: unknown, codec: string): Uint8Array {
  const metadata = [
    long(2),
    named("avro.schema", JSON.stringify(schema)),
    named("avro.codec", codec),
    long(0),
  ];
  return Buffer.concat([Uint8Array.of(0x4f, 0x62, 0x6a, 1), ...metadata, MARKER]);
}

/** `bytes` as a block says that it holds them: packed, with the file's marker behind. */
export function containerBlock(count: number, bytes: Uint8Array, codec: ContainerCodec): Uint8Array {
  return Buffer.concat([long(count), sized(packed(bytes, codec)), MARKER]);
}

function packed(bytes: Uint8Array, codec: ContainerCodec): Uint8Array {
  if (codec === "deflate") return deflateRawSync(bytes);
  if (codec === "zstandard") return zstdCompressSync(bytes);
  if (codec !== "snappy") return bytes;
  const out = new Uint8Array(snappyBound(bytes.length) + 4);
  const n = fallbackCodecs.snappyCompress(bytes, out);
  new DataView(out.buffer).setUint32(n, fallbackCodecs.crc32(bytes, 0, bytes.length));
  return out.subarray(0, n + 4);
}

/** A file of these payloads, so many in a block. */
export function containerFile(
  schema: unknown,
  payloads: readonly Uint8Array[],
  { codec = "null", perBlock = 100 }: { codec?: ContainerCodec; perBlock?: number } = {},
): Uint8Array {
  const blocks: Uint8Array[] = [];
  for (let at = 0; at < payloads.length; at += perBlock) {
    const some = payloads.slice(at, at + perBlock);
    blocks.push(containerBlock(some.length, Buffer.concat(some), codec));
  }
  return Buffer.concat([containerHeader(schema, codec), ...blocks]);
}
