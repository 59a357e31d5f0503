/**
 * Goal: both ways of reading agree, on schemas and payloads by chance and on damaged ones: cell for cell, and on what is
 * refused, where and why; what was read is written again and read as the same.
 * Method: the cases of the fuzzer's target, the first of a fixed seed. `bun run fuzz --target protobuf` runs more.
 */
import { expect, test } from "bun:test";
import { protobufTarget } from "../../../../scripts/fuzz/protobuf-target.ts";

const SCHEMAS = 24;
const CASES_PER_SCHEMA = 128;

test("columns and Values agree", async () => {
  let refused = 0;
  let cases = 0;
  for (let s = 0; s < SCHEMAS; s++) {
    for (let i = 0; i < 20; i++, cases++) if (await protobufTarget.run(s * CASES_PER_SCHEMA + i)) refused++;
  }
  // Both kinds are there in numbers, or the test shows nothing.
  expect(refused).toBeGreaterThan(cases / 20);
  expect(refused).toBeLessThan((cases * 19) / 20);
});
