/** Chaskey-12 against the vectors of its author: lengths around whole blocks, with what lies behind the message made dirty. */
import { expect, test } from "bun:test";
import { KeyMac } from "../../../src/core/delivery/key-mac.ts";
import golden from "../../golden/chaskey12.json" with { type: "json" };

const wordsOf = (hex: readonly string[]) => Int32Array.from(hex, (h) => Number.parseInt(h, 16));

test("every vector, whatever lies behind the message", () => {
  const mac = new KeyMac(wordsOf(golden.key));
  expect(golden.tags.length).toBeGreaterThan(32);
  for (const [length, tag] of golden.tags.entries()) {
    const words = new Int32Array(16).fill(-1);
    const bytes = new Uint8Array(words.buffer);
    for (let i = 0; i < length; i++) bytes[i] = i;
    mac.of(words, length);
    expect([length, ...mac.tag]).toEqual([length, ...wordsOf(tag)]);
  }
});
