/** Goal: limits and the budget of `[pipeline]` are those by which lanes are let in. Method: what a lane may fetch under each. */
import { expect, test } from "bun:test";
import { admissionOf } from "../../src/commands/admission-parts.ts";
import type { ResolvedConfig } from "../../src/commands/config-file.ts";
import { Budget } from "../../src/core/delivery/budget.ts";

function room(limits: Partial<ResolvedConfig["pipeline"]>): number {
  const pipeline = { record_size_est_bytes: 100, ...limits } as ResolvedConfig["pipeline"];
  return admissionOf(pipeline, new Budget({ maxBytes: 10_000, owners: [0] })).room(0);
}

test("without a limit the budget alone; a limit in records by their size, one in bytes as it is, the tightest of both", () => {
  expect(room({})).toBe(10_000);
  expect(room({ max_records_per_s: 20 })).toBe(2_000);
  expect(room({ max_bytes_per_s: 700 })).toBe(700);
  expect(room({ max_records_per_s: 20, max_bytes_per_s: 700 })).toBe(700);
});
