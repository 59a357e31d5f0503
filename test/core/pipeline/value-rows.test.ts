/**
 * Goal: a record as a Value says what its row of columns says, payload and metadata alike, under each policy, and refuses what
 * columns refuse. Method: Avro payloads by chance, some damaged, of records with everything that a record may have, read on both ways; JSON,
 * text and payloads that are no record by hand.
 */
import { describe, expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import { compileAvro } from "../../../src/core/codecs/avro/compile.ts";
import { avroEncoder } from "../../../src/core/codecs/avro/encode-value.ts";
import { compileJson } from "../../../src/core/codecs/json/compile.ts";
import type { Payloads, RecordDecoder } from "../../../src/core/codecs/record-codec.ts";
import { compileText } from "../../../src/core/codecs/text/compile.ts";
import {
  type OriginStamps,
  type RawMetadata,
  rawOriginColumns,
  rawOriginFields,
  rawOrigins,
  widest,
  withRowKey,
} from "../../../src/core/pipeline/raw-origins.ts";
import { splitMetadata, type ValueRow, valueRows } from "../../../src/core/pipeline/value-rows.ts";
import type { RawBatch } from "../../../src/core/records/raw-batch.ts";
import { builderOf } from "../../../src/core/types/column-builder.ts";
import type { Value } from "../../../src/core/types/value.ts";
import { cellValue } from "../../../src/core/types/value-cells.ts";
import { valueJson } from "../../../src/core/types/value-json.ts";
import { batchOf, bytes, row } from "../formats/parquet/rows.ts";

const PREFIX = "_twg_";
const UTF8 = new TextEncoder();
const stamps = (rows: number): OriginStamps => ({
  pipeline: "p",
  now: 1_700_000_000_000,
  schemas: [{ id: "7", rows }],
});

/** Records of these values, of several producers' batches, with and without keys and headers. */
function batchWith(values: readonly Uint8Array[]): RawBatch {
  return batchOf(
    values.map((value, i) =>
      row(100 + i, {
        value,
        key: i % 3 === 0 ? null : bytes(`k${i}`),
        headers:
          i % 2 === 0
            ? []
            : [
                [bytes("h"), null],
                [bytes("h"), bytes("x")],
              ],
        timestamp: BigInt(i) * 1000n,
        leaderEpoch: i < 2 ? -1 : 4,
      }),
    ),
  );
}

function payloadsOf({ value }: RawBatch, rows: Int32Array): Payloads {
  const at = (end: 0 | 1) => Int32Array.from(rows, (r) => value.offsets[r + end]!);
  return { bytes: value.data, starts: at(0), ends: at(1), count: rows.length };
}

function read(decoder: RecordDecoder, batch: RawBatch, rows: Int32Array, metadata: RawMetadata): ValueRow[] {
  const policy = { metadata, prefix: PREFIX, stamps: stamps(rows.length) };
  return [...valueRows(batch, rows, payloadsOf(batch, rows), decoder, policy)];
}

const all = (n: number) => Int32Array.from({ length: n }, (_, i) => i);

test("a row key adds the record's id to what a sink has, and what all sinks need has all of it", () => {
  const names = (choice: RawMetadata) => rawOriginColumns(choice).map((c) => c.name);
  const choices = ["none", "locator", "all"] as const;
  for (const choice of choices)
    expect(new Set(names(withRowKey(choice)))).toEqual(new Set([...names(choice), "record_id"]));
  for (const one of choices)
    for (const other of choices) {
      const wanted = new Set([...names(one), ...names(withRowKey(other))]);
      expect(new Set(names(widest([one, withRowKey(other)])))).toEqual(wanted);
    }
});

describe("the two ways agree", () => {
  const SCHEMA = {
    type: "record",
    name: "R",
    fields: [
      { name: "id", type: "long" },
      { name: "name", type: ["null", "string"] },
      { name: "tags", type: { type: "array", items: "string" } },
    ],
  };
  const schema = { text: JSON.stringify(SCHEMA), references: [] };
  const encoder = avroEncoder(schema);
  const values = Array.from({ length: 12 }, (_, i): Uint8Array => {
    const name: Value = i % 4 === 0 ? { kind: "null" } : { kind: "string", value: `n${i}` };
    const tags = Array.from({ length: i % 3 }, (_, k): Value => ({ kind: "string", value: `t${k}` }));
    const whole = encoder.encode({
      kind: "record",
      fields: [
        { name: "id", value: { kind: "long", value: BigInt(i) - 5n } },
        { name: "name", value: name },
        { name: "tags", value: { kind: "list", items: tags } },
      ],
    });
    return i % 5 === 4 ? whole.slice(0, -1) : whole;
  });
  const batch = batchWith(values);
  const decoder = () => compileAvro({ writer: schema }, { isUtf8, reserved: PREFIX });

  test.each(["none", "id", "locator", "locator_id", "all"] as const)("metadata: %s", (metadata) => {
    // As rows of one schema among others come: some of the batch, ascending.
    const rows = Int32Array.of(0, 2, 3, 4, 5, 7, 9, 11);
    const seen = read(decoder(), batch, rows, metadata);
    const columns = decoder().fields.map((f) => builderOf(f.type));
    const faults = new Map<number, unknown>();
    decoder().decode(payloadsOf(batch, rows), columns, ({ row: r, ...fault }) => void faults.set(r, fault));
    const good = rows.filter((_, i) => !faults.has(i));
    const fields = rawOriginFields(metadata, PREFIX);
    const origins = rawOrigins(metadata, batch, good, stamps(good.length));
    const done = columns.map((c) => c.finish());
    expect(faults.size).toBe(2);
    let at = 0;
    for (const [i, one] of seen.entries()) {
      expect(one.row).toBe(rows[i]!);
      if ("fault" in one) {
        expect(one.fault).toEqual(faults.get(i) as never);
        continue;
      }
      const { payload, metadata: beside } = splitMetadata(one.value, PREFIX);
      const cells = decoder().fields.map((f, c) => `"${f.name}":${valueJson(cellValue(done[c]!, at))}`);
      expect(valueJson(payload)).toBe(`{${cells.join(",")}}`);
      const known = fields.map(
        (f, c) => `"${f.name.slice(PREFIX.length)}":${valueJson(cellValue(origins[c]!, at))}`,
      );
      expect(beside === null ? "{}" : valueJson(beside)).toBe(`{${known.join(",")}}`);
      // What encoders take is what was read.
      expect(encoder.encode(payload).toHex()).toBe(values[one.row]!.toHex());
      at++;
    }
    expect([at, seen.length]).toEqual([6, 8]);
  });

  test("the locator, by hand", () => {
    const [first] = read(decoder(), batch, Int32Array.of(3), "locator");
    const { topic, partition } = batch.stream;
    const [kept] = "value" in first! ? first.value.fields.slice(-1) : [];
    expect([kept?.name, kept === undefined ? null : JSON.parse(valueJson(kept.value))]).toEqual([
      "_twg_metadata",
      { source_topic: topic, source_partition: partition, source_offset: 103, schema_id: "7" },
    ]);
  });
});

describe("payloads", () => {
  const json = (text: string, unknown: "reject" | "ignore" = "ignore") => {
    const schema = { text: JSON.stringify({ columns: [{ name: "a", type: "int32" }] }), references: [] };
    const decoder = compileJson(schema, { isUtf8, maxBytes: 1 << 20, unknown, reserved: PREFIX });
    return read(decoder, batchWith([UTF8.encode(text)]), all(1), "locator")[0]!;
  };

  test("a field under the prefix is refused, whatever its case and the format", () => {
    for (const name of ["_twg_metadata", "_twg_x", "_TWG_Source_topic"])
      expect(json(`{"a":1,"${name}":2}`)).toMatchObject({
        row: 0,
        fault: { code: "decode.reserved", reason: expect.stringContaining(name) },
      });
    // A decoder that reserves nothing, as one of a library may be.
    const type = { type: "record", name: "R", fields: [{ name: "_twg_x", type: "int" }] };
    const decoder = compileAvro({ writer: { text: JSON.stringify(type), references: [] } }, { isUtf8 });
    const refused = { row: 0, fault: { code: "decode.reserved", path: "_twg_x" } };
    for (const policy of ["none", "all"] as const)
      expect(read(decoder, batchWith([Uint8Array.of(2)]), all(1), policy)[0]).toMatchObject(refused as never);
  });

  test("one within the payload is no sibling of ours", () => {
    const type = {
      ...{ type: "record", name: "R" },
      fields: [
        { name: "in", type: { type: "record", name: "S", fields: [{ name: "_twg_x", type: "int" }] } },
      ],
    };
    const schema = { text: JSON.stringify(type), references: [] };
    const decoder = compileAvro({ writer: schema }, { isUtf8, reserved: PREFIX });
    expect("value" in read(decoder, batchWith([Uint8Array.of(2)]), all(1), "all")[0]!).toBe(true);
  });

  test("one that is no record is the field that its column is", () => {
    const [one] = read(compileText({ isUtf8 }), batchWith([UTF8.encode("plain")]), all(1), "none");
    expect(one).toEqual({
      row: 0,
      value: { kind: "record", fields: [{ name: "value", value: { kind: "string", value: "plain" } }] },
    });
  });

  test("without metadata there is nothing to split", () => {
    const value: Value = { kind: "record", fields: [] };
    expect(splitMetadata(value, PREFIX)).toEqual({ payload: value, metadata: null });
    expect(splitMetadata({ kind: "null" }, PREFIX)).toEqual({ payload: { kind: "null" }, metadata: null });
  });
});
