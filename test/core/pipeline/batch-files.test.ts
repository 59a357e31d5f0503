/**
 * Goal: a local file that changes between being hashed and being cut ends the job before a piece of it is used, plain or
 * compressed, larger or smaller. Method: real files, the real hash and the real cutter, and what the runner compares.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { BLOCK_BYTES, hashRange } from "../../../src/adapters/files/blocks.ts";
import { Cutter } from "../../../src/adapters/files/cutter.ts";
import { openLocalFile } from "../../../src/adapters/files/file-bytes.ts";
import { asFailure, fromWire } from "../../../src/core/failure/failure.ts";
import { BatchFile } from "../../../src/core/pipeline/batch-files.ts";
import type { Compression, FileWork, FromCutter } from "../../../src/core/ports/batch-lane.ts";
import { PART_BYTES } from "../../../src/core/records/file-stream.ts";

const room = mkdtempSync(join(tmpdir(), "twg-changed-"));
afterAll(() => rmSync(room, { recursive: true }));
const path = join(room, "f");
const LINES = Array.from(
  { length: 40_000 },
  (_, i) => `{"a":${i},"b":"${Bun.hash(String(i))}${Bun.hash(`x${i}`)}"}\n`,
);

/** Codes and rows of the pieces that passed, when `change` happens after hashing. */
async function cut(content: Uint8Array, compression: Compression, change: () => void): Promise<string> {
  writeFileSync(path, content);
  const bytes = content.length;
  const work: FileWork = {
    file: 0,
    name: "f",
    path,
    revision: null,
    bytes,
    compression,
    encoding: "utf-8",
    layout: { format: "ndjson", array: false },
  };
  const f = new BatchFile(work, Math.ceil(bytes / BLOCK_BYTES), Math.ceil(bytes / PART_BYTES));
  f.hashing = 1;
  f.takeHashed(hashRange({ file: 0, path, revision: null, from: 0, to: bytes }), PART_BYTES, BLOCK_BYTES);
  change();
  return new Promise((resolve) => {
    const cutter: Cutter = new Cutter(
      { pieceBytes: 1 << 20, maxRecordBytes: 1 << 20 },
      openLocalFile,
      (m: FromCutter) => {
        try {
          if (m.t === "dead") throw fromWire(m.failure);
          if (m.t === "ready") return;
          f.compare(m.blocks, m.t === "cut");
          if (m.t === "cut") resolve(`${m.rows} rows`);
          else cutter.receive({ t: "credit", buffer: null });
        } catch (e) {
          resolve(asFailure(e).code);
        }
      },
    );
    for (let i = 0; i < 3; i++) cutter.receive({ t: "credit", buffer: null });
    cutter.receive({ t: "cut", work, columns: 0 });
  });
}

const plain = Buffer.from(LINES.join(""));
const packed = gzipSync(plain, { level: 1 });

for (const [name, content, compression] of [
  ["plain", plain, "none"],
  ["gzip", packed, "gzip"],
] as const) {
  test(`${name}: at rest it is cut whole`, async () => {
    expect(await cut(content, compression, () => {})).toBe("40000 rows");
  });

  test(`${name}: other bytes, more of them, fewer`, async () => {
    const other = Buffer.from(content);
    // In the text a digit for a digit; in gzip a bit of its header's time, which changes nothing that is unpacked.
    if (compression === "none") other[BLOCK_BYTES + 100] = other[BLOCK_BYTES + 100] === 49 ? 50 : 49;
    else other[5]! ^= 1;
    expect(await cut(content, compression, () => writeFileSync(path, other))).toBe("files.changed");
    const more = Buffer.concat([
      content,
      compression === "none" ? Buffer.from('{"a":1}\n') : gzipSync('{"a":1}\n'),
    ]);
    expect(await cut(content, compression, () => writeFileSync(path, more))).toBe("files.changed");
    const fewer =
      compression === "none"
        ? content.subarray(0, content.lastIndexOf(10, content.length - 2) + 1)
        : gzipSync("");
    expect(await cut(content, compression, () => writeFileSync(path, fewer))).toBe("files.changed");
  });
}
