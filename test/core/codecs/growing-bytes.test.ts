/** Goal: what was written stays when the memory grows. Method: pieces of many sizes, against the same bytes joined. */
import { expect, test } from "bun:test";
import { BlockWriter } from "../../../src/core/codecs/protobuf/block-writer.ts";

test("pieces of any size stand one behind the other", () => {
  const out = new BlockWriter();
  const pieces = [1, 4000, 95, 1, 9000, 70_000, 3].map((n, i) => new Uint8Array(n).fill(i + 1));
  for (const p of pieces) out.copy(p, 0, p.length);
  expect(Buffer.from(out.view()).equals(Buffer.concat(pieces))).toBe(true);
});
