/**
 * Goal: a record's columns survive the lane's reuse of its arrays, and headers with its place stand behind its own.
 * Method: batches as objects in, what a record would be written as out; record ids against the vectors of Python.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ownedColumns } from "../../../../src/adapters/kafka/sink/columns.ts";
import type { HeaderChoice } from "../../../../src/adapters/kafka/sink/metadata-headers.ts";
import type { StreamId } from "../../../../src/core/records/stream.ts";
import { batchOf, bytes, row, STREAM } from "../../../core/formats/parquet/rows.ts";
import { plainRecords } from "./plain-records.ts";

const choice = (c: HeaderChoice["choice"]): HeaderChoice => ({ choice: c, prefix: "_twg_", pipeline: "p1" });

const ROWS = [
  row(7, { key: null, value: bytes("") }),
  row(9, {
    key: bytes("k"),
    value: null,
    timestamp: -1n,
    timestampType: 2,
    leaderEpoch: 4,
    headers: [
      [bytes("h"), bytes("1")],
      [bytes("h"), null],
      [bytes(""), bytes("")],
    ],
  }),
  row(2n ** 52n - 1n, { key: bytes(""), value: bytes("vvv"), timestampType: 0 }),
  row(2n ** 62n, { key: bytes(""), value: bytes("vvv"), timestampType: 0 }),
];

test("without metadata a record is what it was, whatever becomes of the batch's arrays", () => {
  const batch = batchOf(ROWS);
  const { columns, largestRow, largestBytes } = ownedColumns(batch, choice("none"));
  for (const a of [batch.key, batch.value, batch.headers.keys, batch.headers.values]) {
    a.data.fill(0);
    a.offsets.fill(0);
    a.validity.fill(0);
  }
  batch.timestamps.fill(0);
  batch.headers.offsets.fill(0);
  expect(plainRecords(columns)).toEqual([
    { key: null, value: "", headers: [], ms: 1_700_000_000_000n },
    {
      key: "k",
      value: null,
      headers: [
        ["h", "1"],
        ["h", null],
        ["", ""],
      ],
      ms: -1n,
    },
    { key: "", value: "vvv", headers: [], ms: 1_700_000_000_000n },
    { key: "", value: "vvv", headers: [], ms: 1_700_000_000_000n },
  ]);
  expect([largestRow, largestBytes]).toEqual([2, 3]);
});

test("the locator stands behind a record's own headers", () => {
  const { columns } = ownedColumns(batchOf(ROWS), choice("locator"));
  const place = (offset: string) => [
    ["_twg_source_topic", "orders"],
    ["_twg_source_partition", "3"],
    ["_twg_source_offset", offset],
  ];
  expect(plainRecords(columns).map((r) => r.headers)).toEqual([
    place("7"),
    [["h", "1"], ["h", null], ["", ""], ...place("9")],
    place("4503599627370495"),
    place("4611686018427387904"),
  ]);
});

test("with all of it what a batch does not have is left out, and the id is that of every other sink", () => {
  const vectors = JSON.parse(
    readFileSync(join(import.meta.dir, "../../../golden/record-id.json"), "utf8"),
  ) as {
    transport: string;
    cluster: string;
    topic: string;
    incarnation: number;
    partition: number;
    offset: string;
    id: string;
  }[];
  const known = vectors.find(
    (v) => v.transport === "kafka" && v.cluster !== "" && BigInt(v.offset) < 2n ** 40n,
  )!;
  const { cluster, topic, incarnation, partition } = known;
  const stream: StreamId = { ...STREAM, cluster, topic, incarnation, partition };
  const rows = [
    row(BigInt(known.offset), {
      leaderEpoch: 4,
      producerId: 2n ** 62n,
      producerEpoch: 0,
      baseSequence: 2 ** 31 - 1,
      transactional: true,
    }),
    row(BigInt(known.offset) + 1n, { timestampType: 0 }),
  ];
  const { columns } = ownedColumns(batchOf(rows, stream), choice("all"));
  const [first, second] = plainRecords(columns).map(
    (r) => Object.fromEntries(r.headers) as Record<string, string>,
  );
  expect(first).toEqual({
    _twg_source_transport: "kafka",
    _twg_source_cluster: cluster,
    _twg_source_topic: topic,
    _twg_source_partition: String(partition),
    _twg_source_offset: known.offset,
    _twg_source_leader_epoch: "4",
    _twg_source_timestamp_type: "CreateTime",
    _twg_source_producer_id: "4611686018427387904",
    _twg_source_producer_epoch: "0",
    _twg_source_base_sequence: "2147483647",
    _twg_source_transactional: "true",
    _twg_record_id: known.id,
    _twg_ingest_ts: "1700000000500",
    _twg_pipeline: "p1",
  });
  expect(second!["_twg_source_transactional"]).toBe("false");
  for (const absent of ["leader_epoch", "timestamp_type", "producer_id", "producer_epoch", "base_sequence"])
    expect(Object.keys(second!)).not.toContain(`_twg_source_${absent}`);
  const nameless = ownedColumns(batchOf([row(1)], { ...stream, cluster: "" }), choice("all"));
  expect(plainRecords(nameless.columns)[0]!.headers.map(([name]) => name)).not.toContain(
    "_twg_source_cluster",
  );
});
