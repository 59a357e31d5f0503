/** Goal: a row of a batch is known by its row in the file, and files by their order. Method: runs with gaps, looked up in any order. */
import { expect, test } from "bun:test";
import { RowTable, tableFields } from "../../../src/core/pipeline/row-table.ts";
import type { TableSpec } from "../../../src/core/ports/batch-lane.ts";
import { METADATA_COLUMNS } from "../../../src/core/records/metadata-columns.ts";
import { fillRecordIds, recordIdBase } from "../../../src/core/records/record-id.ts";
import { plainOf } from "../../commands/read-files.ts";

const SPEC: TableSpec = {
  schema: { fields: [{ name: "a", type: { id: "bool" }, nullable: true }] },
  metadata: "locator",
  prefix: "_m_",
  pipeline: "orders",
  ranked: true,
};

let now = 0;

function table(runs: readonly (readonly [number, number])[], spec = SPEC): RowTable {
  const t = new RowTable(
    spec,
    () => now,
    () => {},
  );
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

test("all: the whole list but the value, what files lack null, ids by content and row", () => {
  now = 1_700_000_000_123;
  const spec: TableSpec = { ...SPEC, metadata: "all", ranked: false };
  const t = table([[7, 2]], spec);
  now += 5;
  const { fields, columns } = t.batch();
  const names = METADATA_COLUMNS.map((c) => c.name).filter((n) => n !== "source_value");
  expect(fields.map((f) => f.name)).toEqual(["a", ...names.map((n) => `_m_${n}`)]);
  const row = Object.fromEntries(fields.map((f, i) => [f.name.slice(3), plainOf(columns[i]!, 1)]));
  const id = new Int32Array(4);
  const base = recordIdBase({ transport: "file", cluster: "", topic: "00ff", incarnation: 0 });
  fillRecordIds(base, 0, Int32Array.of(8, 0), 0, 1, id, 0);
  const known = {
    source_transport: "file",
    source_topic: "f",
    source_message_id: "0x00ff",
    source_offset: "8",
    record_id: `0x${new Uint8Array(id.buffer).toHex()}`,
    ingest_ts: "1700000000123",
    emit_ts: "1700000000128",
    pipeline: "orders",
  };
  expect(row).toMatchObject(known);
  const present = fields.filter((_, i) => i > 0 && plainOf(columns[i]!, 1) !== null);
  expect(present.map((f) => f.name.slice(3)).sort()).toEqual(Object.keys(known).sort());
  for (const f of fields.slice(1))
    expect([f.name, f.nullable]).toEqual([f.name, !(f.name.slice(3) in known)]);
  t.clear();
  expect(t.batch().columns.every((c) => c.length === 0)).toBe(true);
});

test("name and digest are told as constant while all rows are of one file, and only then", () => {
  const t = table([[0, 3]]);
  const constants = () =>
    t.batch().columns.map((c) => (c.constant === undefined ? null : c.constant.toHex()));
  const one = [null, "66", "00ff", null, null];
  const none = [null, null, null, null, null];
  expect(constants()).toEqual(one);
  // The next piece of the same file.
  t.begin({ name: "f", sha256: "00ff", rank: 7 });
  t.addRun(3, 1);
  expect(constants()).toEqual(one);
  t.begin({ name: "f", sha256: "00fe", rank: 8 });
  expect(constants()).toEqual(one);
  t.addRun(0, 1);
  expect(constants()).toEqual(none);
  t.begin({ name: "f", sha256: "00ff", rank: 7 });
  t.addRun(4, 1);
  expect(constants()).toEqual(none);
  t.clear();
  expect(constants()).toEqual(none);
  t.addRun(5, 1);
  expect(constants()).toEqual(one);
});
