/** The text of a file as a stream of UTF-8 bytes: decompressed, without byte order mark, in whatever encoding it was. */
import { Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { Failure } from "../../core/failure/failure.ts";
import type { Compression, FileWork, TextEncoding } from "../../core/ports/batch-lane.ts";
import type { FileBytes, FilePlace, OpenFile } from "../../core/ports/file-bytes.ts";
import { BLOCK_BYTES, BlockReader, blockCheck } from "./blocks.ts";
import { unwrapArray } from "./unwrap-array.ts";

/** Reads a file in blocks and notes the check of each. `reuse`: a view is valid until the next one is asked for. */
function* checkedBlocks(path: string, check: (block: bigint) => void, reuse = false): Generator<Uint8Array> {
  const reader = new BlockReader(path);
  try {
    const shared = new Uint8Array(BLOCK_BYTES);
    for (let at = 0; ; at += BLOCK_BYTES) {
      const block = reuse ? shared : new Uint8Array(BLOCK_BYTES);
      const n = reader.read(block, at);
      if (n === 0) return;
      const bytes = block.subarray(0, n);
      check(blockCheck(bytes));
      yield bytes;
      if (n < BLOCK_BYTES) return;
    }
  } finally {
    reader.close();
  }
}

/** Blocks that are read at once over a network. */
const AHEAD_BYTES = 4 * BLOCK_BYTES;

/** The same over a network: some blocks are under way while those before are used. */
async function* remoteBlocks(bytes: FileBytes, check: (block: bigint) => void): AsyncGenerator<Uint8Array> {
  const { size } = bytes;
  const some = (at: number) => (at < size ? bytes.read(at, Math.min(at + AHEAD_BYTES, size)) : null);
  let ahead = some(0);
  for (let at = 0; ahead !== null; at += AHEAD_BYTES) {
    const content = await ahead;
    ahead = some(at + AHEAD_BYTES);
    // It is awaited in the next turn; until then its failure has no other handler.
    ahead?.catch(() => {});
    for (let b = 0; b < content.length; b += BLOCK_BYTES) {
      const block = content.subarray(b, b + BLOCK_BYTES);
      check(blockCheck(block));
      yield block;
    }
  }
}

function blocksOf(
  place: FilePlace,
  open: OpenFile,
  check: (block: bigint) => void,
  reuse: boolean,
): Iterable<Uint8Array> | AsyncIterable<Uint8Array> {
  return place.revision === null ? checkedBlocks(place.path, check, reuse) : remoteBlocks(open(place), check);
}

/** Chunks of decompressed bytes. Members and frames that follow one another are one file, as gzip and zstd say. */
async function* decompressed(
  blocks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  compression: Compression,
  path: string,
): AsyncGenerator<Uint8Array> {
  if (compression === "none") {
    yield* blocks;
    return;
  }
  const unpack =
    compression === "gzip"
      ? createGunzip({ chunkSize: 256 * 1024 })
      : createZstdDecompress({ chunkSize: 256 * 1024 });
  const source = Readable.from(blocks, { objectMode: true, highWaterMark: 2 });
  source.on("error", (e) => unpack.destroy(e));
  source.pipe(unpack);
  try {
    for await (const chunk of unpack) yield chunk as Uint8Array;
  } catch (e) {
    if (e instanceof Failure) throw e;
    const why = e instanceof Error ? e.message : String(e);
    throw new Failure("files.compression", `the ${compression} data can't be read: ${why}`, {
      at: path,
      hint: "Was the file copied whole?",
      cause: e,
    });
  }
}

/** The content of a whole file as the cutter wants it: lines of records, or Avro's blocks. */
export function textOf(
  work: TextWork,
  check: (block: bigint) => void,
  open: OpenFile,
): AsyncIterable<Uint8Array> {
  const { path, compression, encoding, layout } = work;
  const blocks = blocksOf(work, open, check, compression === "none");
  if (layout.format === "avro") return decompressed(blocks, compression, path);
  const text = asUtf8(decompressed(blocks, compression, path), encoding, path);
  return layout.format === "ndjson" && layout.array ? unwrapArray(text, path) : text;
}

/** The decompressed bytes of a file, in whatever encoding. */
export function bytesOf(
  place: FilePlace,
  compression: Compression,
  open: OpenFile,
): AsyncIterable<Uint8Array> {
  const blocks = blocksOf(place, open, () => {}, false);
  return decompressed(blocks, compression, place.path);
}

type TextWork = FilePlace & Pick<FileWork, "compression" | "encoding" | "layout">;

const UTF8 = new TextEncoder();

/** The same text as UTF-8; a byte order mark is taken off. */
async function* asUtf8(
  chunks: AsyncIterable<Uint8Array>,
  encoding: TextEncoding,
  path: string,
): AsyncGenerator<Uint8Array> {
  if (encoding === "utf-8") {
    yield* withoutMark(chunks);
    return;
  }
  const decoder = new TextDecoder(encoding === "iso-8859-1" ? "latin1" : encoding, { fatal: true });
  const decode = (chunk: Uint8Array | undefined): Uint8Array => {
    try {
      return UTF8.encode(chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true }));
    } catch (e) {
      throw new Failure("files.encoding", `bytes that are no ${encoding}`, { at: path, cause: e });
    }
  };
  for await (const chunk of chunks) yield decode(chunk);
  yield decode(undefined);
}

/** Takes EF BB BF off the begin, however the chunks fall. */
async function* withoutMark(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let head: Uint8Array | null = new Uint8Array(0);
  for await (const chunk of chunks) {
    if (head === null) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (head.length < 3) continue;
    const marked = head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf;
    yield marked ? head.subarray(3) : head;
    head = null;
  }
  if (head !== null && head.length > 0) yield head;
}
