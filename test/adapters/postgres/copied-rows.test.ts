/**
 * Goal: the rows of a set are found again in the blocks of its COPY. Method: rows of many sizes, over block ends, are sent in
 * parts; the parts' content put together is the content of the whole, and each row's fields are those that were encoded.
 */
import { expect, test } from "bun:test";
import { CopyBlocks } from "../../../src/adapters/postgres/copy/blocks.ts";
import { CopiedRows } from "../../../src/adapters/postgres/copy/copied-rows.ts";
import { SetOrigins } from "../../../src/adapters/postgres/copy/set-origins.ts";

const SIGNATURE_BYTES = 19;
const HEAD_BYTES = 5;

/** Rows of one field of that size, -1 null, and one of a byte. */
function blocksOf(sizes: readonly number[]): CopyBlocks {
  const blocks = new CopyBlocks();
  for (const [row, n] of sizes.entries()) {
    let at = blocks.row(2 + 4 + Math.max(0, n) + 4 + 1);
    const { bytes, view } = blocks;
    view.setInt16(at, 2);
    view.setInt32(at + 2, n);
    bytes.fill(row, at + 6, at + 6 + Math.max(0, n));
    at += 6 + Math.max(0, n);
    view.setInt32(at, 1);
    bytes[at + 4] = row;
  }
  return blocks;
}

/** Content of CopyData messages, without the signature. */
function contentOf(messages: Iterable<Uint8Array>): Uint8Array {
  const all = Buffer.concat([...messages]);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < all.length; ) {
    expect(all[at]).toBe("d".charCodeAt(0));
    const end = at + 1 + all.readInt32BE(at + 1);
    parts.push(all.subarray(at + HEAD_BYTES, end));
    at = end;
  }
  return Buffer.concat(parts).subarray(SIGNATURE_BYTES);
}

const SIZES = Array.from({ length: 200 }, (_, i) =>
  i % 17 === 3 ? -1 : i % 13 === 5 ? 0 : i === 100 ? 700_000 : (i * 7919) % 9000,
);

test("parts of a COPY are the whole one", () => {
  const blocks = blocksOf(SIZES);
  expect(blocks.count).toBeGreaterThan(4);
  const rows = new CopiedRows(blocks, SIZES.length);
  expect(rows.count).toBe(SIZES.length);
  const whole = contentOf(rows.messages(0, SIZES.length));
  expect(whole.length).toBe(blocks.length);
  for (const cut of [1, 57, 99, 100, 101, 199]) {
    const parts = [rows.messages(0, cut), rows.messages(cut, SIZES.length)].map(contentOf);
    expect(Buffer.compare(Buffer.concat(parts), whole)).toBe(0);
  }
  expect(contentOf(rows.messages(7, 7)).length).toBe(0);
});

test("fields of each row", () => {
  const rows = new CopiedRows(blocksOf(SIZES), SIZES.length);
  for (const [row, n] of SIZES.entries()) {
    const [value, mark] = rows.fields(row);
    expect([row, value?.length ?? -1, mark?.[0]]).toEqual([row, n, row % 256]);
    if (n > 0) expect(value?.every((b) => b === row % 256)).toBe(true);
  }
});

test("whose a row is", () => {
  const origins = new SetOrigins();
  const halves = (...offsets: bigint[]) => new Int32Array(BigInt64Array.from(offsets).buffer);
  const lent = halves(5n, 7n);
  origins.add({ stream: "a", offsets: lent }, 2);
  lent.fill(0);
  origins.add({ stream: "b", offsets: halves() }, 0);
  origins.add({ stream: "b", offsets: halves(2n ** 40n, 9n, 1n) }, 2);
  expect([0, 1, 2, 3].map((row) => origins.of(row))).toEqual([
    { stream: "a", offset: 5n },
    { stream: "a", offset: 7n },
    { stream: "b", offset: 2n ** 40n },
    { stream: "b", offset: 9n },
  ]);
  const sizes = new Map([
    ["a", { rows: 2, bytes: 20 }],
    ["b", { rows: 2, bytes: 20 }],
  ]);
  expect([...origins.less(sizes, [0, 2, 3])].map(([s, n]) => [s, n.rows])).toEqual([
    ["a", 1],
    ["b", 0],
  ]);
  origins.clear();
  expect([origins.rows, origins.bytes]).toEqual([0, 0]);
});
