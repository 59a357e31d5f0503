/**
 * Goal: rows without duplicates are the others, whole and in their order, with where they stood; what the decoding stage gives
 * says of each batch what was judged of it. Method: a batch of rows of two schemas, judged by hand; a stage with a judge that
 * answers by script.
 */
import { describe, expect, test } from "bun:test";
import { partDecoder } from "../../../src/commands/payload-decoder.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { DecodeStage } from "../../../src/core/pipeline/decode-stage.ts";
import type { DerivedBatch } from "../../../src/core/pipeline/derived.ts";
import { distinctOf } from "../../../src/core/pipeline/distinct-rows.ts";
import { FOLDER_TABLE } from "../../../src/core/schema/folder-table.ts";
import { BytesBuilder } from "../../../src/core/types/column-builder.ts";
import { schemaDocument } from "../../../src/core/types/schema-file.ts";
import type { ColumnField, TableBatch } from "../../../src/core/types/table-batch.ts";
import { cellValue } from "../../../src/core/types/value-cells.ts";
import { valueJson } from "../../../src/core/types/value-json.ts";
import { SimTime } from "../../sim/clock.ts";
import { batchOf, bytes, row } from "../formats/parquet/rows.ts";
import { bareValues } from "./bare-values.ts";

function column(values: readonly (string | null)[]) {
  const b = new BytesBuilder({ id: "utf8" });
  b.reserve(values.length);
  for (const v of values) {
    if (v === null) b.pushNull();
    else b.push(bytes(v));
  }
  return b.finish();
}

const FIELDS: readonly ColumnField[] = ["a", "p"].map((name) => ({
  ...{ name, type: { id: "utf8" } as const, nullable: true },
}));
const TABLE: TableBatch = {
  fields: FIELDS,
  columns: [column(["x", null, "y", "z"]), { ...column(["p", "p", "p", "p"]), constant: bytes("p") }],
  rows: 4,
};
/** Records 3 and 5 are of the one schema, 1 and 6 of the other. */
const ROWS = Int32Array.of(3, 5, 1, 6);
const texts = (t: TableBatch | null) =>
  Array.from({ length: t?.rows ?? 0 }, (_, r) => t!.columns.map((c) => valueJson(cellValue(c, r))).join());

describe("rows of a batch", () => {
  const judged = (...records: number[]) => {
    const flags = new Uint8Array(8);
    for (const r of records) flags[r] = 1;
    const distinct = distinctOf({ table: TABLE, tableRows: ROWS }, flags);
    if (distinct instanceof Failure) throw distinct;
    return distinct;
  };

  test("without duplicates are the others, in their order", () => {
    const { table, tableRows, duplicates } = judged(5, 6);
    expect([texts(table), [...tableRows], duplicates]).toEqual([['"x","p"', '"y","p"'], [3, 1], 2]);
    expect(table?.columns[1]?.constant).toEqual(bytes("p"));
    expect(texts(judged(3).table)).toEqual(['null,"p"', '"y","p"', '"z","p"']);
  });

  test("all, none, and what is not known", () => {
    const none = judged(1, 3, 5, 6);
    expect([none.table, none.tableRows.length, none.duplicates]).toEqual([null, 0, 4]);
    const same = distinctOf({ table: TABLE, tableRows: ROWS }, null);
    expect(same).toEqual({ table: TABLE, tableRows: ROWS, duplicates: 0 });
    const why = new Failure("dedup.loading", "not yet");
    expect(distinctOf({ table: TABLE, tableRows: ROWS }, why)).toBe(why);
  });
});

test("the stage waits for what is judged later, judges each batch once, and goes on without it where it may not wait", async () => {
  const time = new SimTime();
  const given: DerivedBatch[] = [];
  const missed: bigint[] = [];
  let asked = 0;
  let hurried = 0;
  let go: (() => void) | null = null;
  const text = schemaDocument({ fields: [{ name: "a", type: { id: "utf8" }, nullable: true }] });
  const stage = new DecodeStage(
    { pipeline: "p", prefix: "_twg_", metadata: "none", holdBytes: 1_000, can: FOLDER_TABLE },
    {
      clock: time.clock(null),
      framing: bareValues,
      failsOnError: () => false,
      schema: async () => ({ format: "json", text, references: [], id: "s", subject: null, version: null }),
      learn: async () => null,
      compile: (_, schema, message, part) =>
        partDecoder(
          { max_payload_bytes: 1 << 20, max_depth: 9, unknown_fields: "reject" },
          ...([schema, part, { message: null, prefix: "key_" }, message, "_twg_"] as const),
        ),
      fit: async (fields) => ({ fields }),
      give: (_s, _k, batch) => void given.push(batch),
      miss: (_, { span }) => void missed.push(span.from),
      trouble: () => {},
      undecodable: () => {},
      fatal: (f) => expect(f.message).toBe(""),
      duplicates: {
        ready: () =>
          hurried > 0 || go === null
            ? null
            : () =>
                new Promise<void>((resolve) => {
                  go = resolve;
                }),
        judge: ({ rows }) => {
          asked++;
          return hurried > 0 ? new Failure("dedup.loading", "") : new Uint8Array(rows).fill(1, 0, 1);
        },
        get waitedFor() {
          return hurried === 0 && go !== null;
        },
        hurry: () => {
          // Once: what waits goes on later, and until then more comes.
          go?.();
          return ++hurried === 1;
        },
      },
    },
  );
  const settle = () => time.runUntil(() => false, time.nowMs + 10);
  let taken = 0;
  const take = (from: number, value: string) => {
    taken++;
    stage.take(0, "k", batchOf([0, 1].map((i) => row(from + i, { value: bytes(`{"a":"${value}"}`) }))));
  };
  take(0, "first");
  await settle();
  const distinct = () =>
    given.map((b) => (b.distinct instanceof Failure ? b.distinct.code : b.distinct?.table?.rows));
  expect([distinct(), asked]).toEqual([[1], 1]);
  go = () => {};
  take(2, "waits");
  await settle();
  expect(given).toHaveLength(1);
  // Raw that is read again has time, live records have not.
  for (let from = 40; !stage.crowded; from += 2) take(from, "y".repeat(100));
  const came: string[] = [];
  void stage.relief(true).then(() => came.push("raw"));
  await time.runUntil(() => false, time.nowMs + 60_000);
  expect(came).toEqual([]);
  for (let from = 4; from < 40; from += 2) take(from, "x".repeat(100));
  await settle();
  expect([hurried, missed, asked]).toEqual([1, [], taken]);
  expect(came).toEqual(["raw"]);
  expect(new Set(distinct().slice(1))).toEqual(new Set(["dedup.loading"]));
});
