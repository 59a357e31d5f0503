/**
 * Goal: bytes that are not those that were hashed are never given on. Method: real files that change between the two.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BLOCK_BYTES, hashRange, hashRemote } from "../../../src/adapters/files/blocks.ts";
import { CheckedBytes, openLocalFile } from "../../../src/adapters/files/file-bytes.ts";

const room = mkdtempSync(join(tmpdir(), "twg-bytes-"));
afterAll(() => rmSync(room, { recursive: true }));
const path = join(room, "f");
const CONTENT = new Uint8Array(9 * BLOCK_BYTES + 17).map((_, i) => (i * 7919) >> 5);

function checked() {
  writeFileSync(path, CONTENT);
  const task = { file: 0, path, revision: null, from: 0, to: CONTENT.length };
  const { blocks } = hashRange(task);
  return {
    task,
    blocks,
    open: () => new CheckedBytes(openLocalFile({ ...task, bytes: task.to }), blocks, "f"),
  };
}

test("any range of an unchanged file, in blocks", async () => {
  const bytes = checked().open();
  for (const [from, to] of [
    [0, 1],
    [5, BLOCK_BYTES + 5],
    [BLOCK_BYTES - 1, BLOCK_BYTES + 1],
    [0, CONTENT.length],
    [CONTENT.length - 1, CONTENT.length],
  ])
    expect(Buffer.from(await bytes.read(from!, to!)).equals(CONTENT.subarray(from, to))).toBe(true);
  bytes.close();
});

test("a byte that changed is found in its block, and only there", async () => {
  const { open } = checked();
  const other = CONTENT.slice();
  other[BLOCK_BYTES + 3]! ^= 1;
  writeFileSync(path, other);
  const bytes = open();
  expect(await bytes.read(0, BLOCK_BYTES)).toHaveLength(BLOCK_BYTES);
  expect(bytes.read(BLOCK_BYTES, BLOCK_BYTES + 1)).rejects.toMatchObject({ code: "files.changed" });
});

test("another size is another file", () => {
  const { open } = checked();
  truncateSync(path, BLOCK_BYTES);
  expect(open).toThrow(expect.objectContaining({ code: "files.changed" }));
});

test("a file that becomes shorter while it is read", async () => {
  const { open } = checked();
  const bytes = open();
  truncateSync(path, BLOCK_BYTES);
  expect(bytes.read(2 * BLOCK_BYTES, 2 * BLOCK_BYTES + 1)).rejects.toMatchObject({ code: "files.changed" });
});

test("hashed over a network it is the same", async () => {
  const { task } = checked();
  const remote = await hashRemote(task, openLocalFile({ ...task, bytes: task.to }));
  expect(remote).toEqual(hashRange(task));
});
