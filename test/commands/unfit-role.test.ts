/** Goal: a role is refused where it could do nothing, and where this version has no process for it. */
import { expect, test } from "bun:test";
import { unfitRole } from "../../src/commands/unfit-role.ts";
import type { CheckedConfig } from "../../src/core/config/check.ts";

function problems(role: string, roles: readonly string[]): readonly string[] {
  const config = {
    file: "p.toml",
    lineOf: () => 3,
    pipeline: { role },
    sinks: roles.map((r, i) => ({ name: `s${i}`, role: r })),
  };
  return unfitRole(config as unknown as CheckedConfig).map((p) => `${p.line} ${p.path} ${p.code}`);
}

test("a role of a pipeline", () => {
  expect(problems("ingest", ["primary_raw"])).toEqual([]);
  expect(problems("ingest", ["primary_raw", "secondary"])).toEqual([]);
  expect(problems("both", ["primary_raw"])).toEqual([]);
  expect(problems("recovery", ["primary_raw"])).toEqual(["3 pipeline.role config.conflict"]);
  for (const role of ["recovery", "both"])
    expect(problems(role, ["primary_raw", "secondary"])).toEqual([
      "3 pipeline.role config.not_in_this_version",
    ]);
});
