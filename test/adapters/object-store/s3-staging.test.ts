/** How an open upload is written into the coverage state: it comes back as it went in, and damage is told. */
import { expect, test } from "bun:test";
import { encodeStaging, parseStaging } from "../../../src/adapters/object-store/s3-staging.ts";

const STAGING = {
  upload: "id",
  token: "t-0",
  parts: [
    { tag: '"abc"', crc: "y/Q5Jg==" },
    { tag: "d", crc: "" },
  ],
};

test("it comes back as it went in, and its form is a promise", () => {
  const text = encodeStaging(STAGING);
  expect(text).toBe('{"upload":"id","token":"t-0","parts":[["\\"abc\\"","y/Q5Jg=="],["d",""]]}');
  expect(parseStaging(text, "here")).toEqual(STAGING);
});

for (const text of [
  "",
  "a-0.staged",
  "null",
  "[]",
  '{"upload":"","token":"t","parts":[["a",""]]}',
  '{"upload":"u","token":"t","parts":[]}',
  '{"upload":"u","token":"t","parts":[["a"]]}',
  '{"upload":"u","token":"t","parts":[["",""]]}',
  '{"upload":"u","token":7,"parts":[["a",""]]}',
]) {
  test(`damage is told: ${text}`, () => {
    expect(() => parseStaging(text, "here")).toThrow(/not described/);
  });
}
