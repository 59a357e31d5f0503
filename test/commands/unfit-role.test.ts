/** Goal: a role is refused where it could do nothing, and where it could read nothing. */
import { expect, test } from "bun:test";
import { unfitRole } from "../../src/commands/unfit-role.ts";
import type { CheckedConfig } from "../../src/core/config/check.ts";

function problems(
  role: string,
  roles: readonly string[],
  type = "parquet",
  mode = "append",
): readonly string[] {
  const config = {
    file: "p.toml",
    lineOf: () => 3,
    pipeline: { role },
    sinks: roles.map((r, i) => ({ name: `s${i}`, role: r, type, mode })),
  };
  return unfitRole(config as unknown as CheckedConfig).map((p) => `${p.line} ${p.path} ${p.code}`);
}

const REFUSED = ["3 pipeline.role config.conflict"];

test("a role of a pipeline", () => {
  for (const role of ["ingest", "recovery", "both"])
    expect(problems(role, ["primary_raw", "secondary"])).toEqual([]);
  for (const role of ["ingest", "both"]) expect(problems(role, ["primary_raw"])).toEqual([]);
  expect(problems("recovery", ["primary_raw"])).toEqual(REFUSED);
});

test.each([
  ["kafka", "append"],
  ["postgres", "upsert"],
])("raw in %s (%s) cannot be read again", (type, mode) => {
  expect(problems("ingest", ["primary_raw", "secondary"], type, mode)).toEqual([]);
  for (const role of ["recovery", "both"])
    expect(problems(role, ["primary_raw", "secondary"], type, mode)).toEqual(REFUSED);
});

test("raw in a table to which rows are added can be read again", () => {
  for (const role of ["recovery", "both"])
    expect(problems(role, ["primary_raw", "secondary"], "postgres")).toEqual([]);
});
