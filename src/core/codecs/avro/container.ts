/**
 * Avro Object Container Files: a header with the schema, then blocks of records, compressed or not, each with the file's
 * marker behind it. The caller has the bytes, in pieces of any size: what is not whole yet is null.
 */
import type { Codecs } from "../../compression/codec.ts";
import type { Output } from "../../compression/output.ts";
import { Failure } from "../../failure/failure.ts";
import { readLong } from "./runtime.ts";

const MAGIC = [0x4f, 0x62, 0x6a, 1];
const SYNC_BYTES = 16;
/** Schemas have been seen of some 100 KB. */
const MOST_HEADER = 16 * 1024 * 1024;

export interface ContainerHeader {
  /** As JSON text. */
  readonly schema: string;
  readonly codec: ContainerCodec;
  readonly marker: Uint8Array;
  /** Where the first block begins. */
  readonly end: number;
}

const CODECS = ["null", "deflate", "snappy", "zstandard"] as const;
export type ContainerCodec = (typeof CODECS)[number];

/** Records of one block: `count` of them in bytes[from, to), compressed; the next block begins at `next`. */
export interface ContainerBlock {
  readonly count: number;
  readonly from: number;
  readonly to: number;
  readonly next: number;
}

/** What unpacks. */
export type ContainerCodecs = Pick<Codecs, "crc32" | "snappyBlock" | "zstd" | "inflate">;

function damaged(what: string, at: number): Failure {
  return new Failure("files.not_avro", `${what} at byte ${at}`);
}

const WORDS = new Int32Array(2);

/** A cursor that runs out of bytes says so by `short`. */
class Cursor {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  /** Place of the bytes in the file, for messages. */
  readonly #base: number;
  at: number;
  short = false;

  constructor(bytes: Uint8Array, at: number, end: number, base = 0) {
    this.#bytes = bytes;
    this.at = at;
    this.#end = end;
    this.#base = base;
  }

  /** 0 where bytes are missing. */
  long(what: string): number {
    const from = this.at;
    if (this.short) return 0;
    this.at = readLong(this.#bytes, from, this.#end, WORDS, 0);
    if (this.at >= 0) {
      const n = WORDS[1]! * 4294967296 + (WORDS[0]! >>> 0);
      if (!Number.isSafeInteger(n)) throw damaged(`${what} of ${n}`, this.#base + from);
      return n;
    }
    if (this.#end - from >= 10) throw damaged(`${what} that is no number`, this.#base + from);
    this.at = from;
    this.short = true;
    return 0;
  }

  take(n: number, what: string, most: number): Uint8Array {
    if (n < 0 || n > most) throw damaged(`${what} of ${n} bytes`, this.#base + this.at);
    if (n > this.#end - this.at) this.short = true;
    if (this.short) return new Uint8Array(0);
    this.at += n;
    return this.#bytes.subarray(this.at - n, this.at);
  }
}

/** The header at the beginning of bytes[0, end). Throws files.not_avro, files.avro_codec. */
export function readHeader(bytes: Uint8Array, end: number): ContainerHeader | null {
  for (let i = 0; i < Math.min(end, MAGIC.length); i++)
    if (bytes[i] !== MAGIC[i]) throw damaged("no Avro file begins so", 0);
  const c = new Cursor(bytes, MAGIC.length, end);
  if (end < MAGIC.length) return null;
  const metadata = readMetadata(c);
  const marker = c.take(SYNC_BYTES, "marker", SYNC_BYTES);
  if (c.short) {
    if (end > MOST_HEADER) throw damaged(`a header of more than ${MOST_HEADER} bytes`, 0);
    return null;
  }
  const schema = metadata.get("avro.schema");
  if (schema === undefined) throw damaged("a header without avro.schema", 0);
  return { schema, codec: codecOf(metadata.get("avro.codec") ?? "null"), marker: marker.slice(), end: c.at };
}

function readMetadata(c: Cursor): Map<string, string> {
  const out = new Map<string, string>();
  const text = new TextDecoder();
  for (;;) {
    let count = c.long("number of entries");
    if (count < 0) {
      count = -count;
      c.long("size of a block");
    }
    if (count === 0) return out;
    for (; count > 0 && !c.short; count--) {
      const key = text.decode(c.take(c.long("length of a key"), "a key", MOST_HEADER));
      out.set(key, text.decode(c.take(c.long("length of a value"), "a value", MOST_HEADER)));
    }
    if (c.short) return out;
  }
}

function codecOf(name: string): ContainerCodec {
  const known = CODECS.find((c) => c === name);
  if (known !== undefined) return known;
  throw new Failure(
    "files.avro_codec",
    `the codec is ${JSON.stringify(name)}, known are ${CODECS.join(", ")}`,
  );
}

/**
 * The block at `at`; `mostBytes`: of one as it is stored; `base`: where bytes[0] stands in the file. Throws files.not_avro,
 * files.record_too_large.
 */
export function readBlock(
  bytes: Uint8Array,
  at: number,
  end: number,
  { marker }: Pick<ContainerHeader, "marker">,
  mostBytes: number,
  base = 0,
): ContainerBlock | null {
  const c = new Cursor(bytes, at, end, base);
  const count = c.long("number of records");
  if (count < 0) throw damaged(`a block of ${count} records`, base + at);
  const size = c.long("size of a block");
  if (size > mostBytes) throw tooLarge(`has ${size} bytes`, mostBytes, base + at);
  const from = c.at;
  c.take(size, "a block", mostBytes);
  const found = c.take(SYNC_BYTES, "marker", SYNC_BYTES);
  if (c.short) return null;
  if (found.some((b, i) => b !== marker[i]))
    throw damaged("another marker than the file's behind a block", base + c.at - SYNC_BYTES);
  return { count, from, to: from + size, next: c.at };
}

export function tooLarge(how: string, most: number, at: number): Failure {
  return new Failure("files.record_too_large", `the block at byte ${at} ${how}, at most ${most} are taken`, {
    hint: "Raise max_record_bytes for files with large blocks; is it damaged otherwise?",
  });
}

/** Whole blocks of bytes[from, to): how many records they hold, and where they end. `last`: nothing comes behind. */
export function scanBlocks(
  bytes: Uint8Array,
  from: number,
  to: number,
  header: Pick<ContainerHeader, "marker">,
  { mostBytes, base, last }: { readonly mostBytes: number; readonly base: number; readonly last: boolean },
): { readonly records: number; readonly end: number } {
  let records = 0;
  let end = from;
  while (end < to) {
    const block = readBlock(bytes, end, to, header, mostBytes, base);
    if (block === null) {
      if (last) throw damaged("the file ends within a block, which begins", base + end);
      break;
    }
    records += block.count;
    end = block.next;
  }
  return { records, end };
}

/** Unpacks a block behind what `out` has. Throws files.not_avro, compression.corrupt, compression.limit. */
export function unpackBlock(
  bytes: Uint8Array,
  { from, to }: ContainerBlock,
  codec: ContainerCodec,
  codecs: ContainerCodecs,
  out: Output,
): void {
  switch (codec) {
    case "null":
      out.append(bytes.subarray(from, to));
      break;
    case "deflate":
      codecs.inflate(bytes, from, to, out);
      break;
    case "zstandard":
      codecs.zstd(bytes, from, to, out);
      break;
    case "snappy":
      unpackSnappy(bytes, from, to, codecs, out);
  }
}

/** A block of Snappy and the CRC-32 of what comes out, big endian. */
function unpackSnappy(
  bytes: Uint8Array,
  from: number,
  to: number,
  codecs: ContainerCodecs,
  out: Output,
): void {
  const end = to - 4;
  const size = end > from ? snappySize(bytes, from, end) : -1;
  if (size < 0) throw damaged("a block that is no Snappy", from);
  out.reserve(size);
  const at = out.end;
  const written = codecs.snappyBlock(bytes, from, end, out.bytes, at, at + size);
  if (written !== size) throw damaged("a block that is no Snappy", from);
  out.end = at + size;
  const wanted = new DataView(bytes.buffer, bytes.byteOffset).getUint32(end);
  if (codecs.crc32(out.bytes, at, at + size) !== wanted) throw damaged("a block with another checksum", from);
}

/** The size that a Snappy block says it has; -1: none. */
function snappySize(bytes: Uint8Array, from: number, end: number): number {
  let size = 0;
  for (let i = 0; i < 5 && from + i < end; i++) {
    const b = bytes[from + i]!;
    size += (b & 127) * 2 ** (7 * i);
    if (b < 128) return size > 0x7fffffff ? -1 : size;
  }
  return -1;
}
