/** Goal: a row of a batch is known by its row in the file, and files by their order. Method: runs with gaps, looked up in any order. */
import { expect, test } from "bun:test";
import { RowTable, tableFields } from "../../../src/core/pipeline/row-table.ts";
import type { TableSpec } from "../../../src/core/ports/batch-lane.ts";

const SPEC: TableSpec = {
  schema: { fields: [{ name: "a", type: { id: "bool" }, nullable: true }] },
  metadata: "locator",
  prefix: "_m_",
  ranked: true,
};

function table(runs: readonly (readonly [number, number])[]): RowTable {
  const t = new RowTable(SPEC, () => {});
  t.begin({ name: "f", sha256: "00ff", rank: 7 });
  for (const [first, rows] of runs) {
    t.columns[0]!.reserve(rows);
    t.columns[0]!.rows += rows;
    t.addRun(first, rows);
  }
  return t;
}

test("rows are found through gaps, forwards and backwards, and none beyond the end", () => {
  const t = table([
    [10, 2],
    [15, 1],
    [20, 3],
  ]);
  expect([0, 1, 2, 3, 5, 4, 0].map((at) => t.rowOf(at))).toEqual([10, 11, 15, 20, 22, 21, 10]);
  expect(() => t.rowOf(6)).toThrow("row 6");
  t.clear();
  expect(() => t.rowOf(0)).toThrow();
});

test("the locator's columns are named once, and the rank is the same in every row of a file", () => {
  const { fields, columns, rows } = table([[0, 3]]).batch();
  expect(fields).toEqual(tableFields(SPEC));
  expect(fields.map((f) => f.name)).toEqual([
    "a",
    "_m_source_topic",
    "_m_source_message_id",
    "_m_source_offset",
    "_m_source_incarnation",
  ]);
  expect(rows).toBe(3);
  const { data } = columns[4] as unknown as { data: Uint8Array };
  expect([...new Int32Array(data.slice(0, 12).buffer)]).toEqual([7, 7, 7]);
  expect(tableFields({ ...SPEC, metadata: "none" }).map((f) => f.name)).toEqual(["a"]);
  expect(tableFields({ ...SPEC, ranked: false })).toHaveLength(4);
});
