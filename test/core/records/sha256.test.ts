/** SHA-256 against the platform's own, over all lengths around block borders. */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { sha256 } from "../../../src/core/records/sha256.ts";

test("equal to the platform's for every length from 0 to 300 and one of 100,000", () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, i) => (i * 131) ^ (i >> 7));
  for (const n of [...Array.from({ length: 301 }, (_, i) => i), 100_000]) {
    const expected = createHash("sha256").update(bytes.subarray(0, n)).digest("hex");
    expect(Buffer.from(sha256(bytes.subarray(0, n))).toString("hex")).toBe(expected);
  }
});

test("the vector of FIPS 180-4 for `abc`", () => {
  const digest = Buffer.from(sha256(new TextEncoder().encode("abc"))).toString("hex");
  expect(digest).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});
