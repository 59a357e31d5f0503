/**
 * Goal: a refused record is a record of its topic with key, value and headers as they came, headers that say why and where,
 * and the time of its arrival; it lands in the sink's transaction, and what no broker takes costs the set alone.
 * Method: batches of plain rows against the test cluster in simulated time, whose committed records are read.
 */
import { expect, test } from "bun:test";
import { LaneTransactions } from "../../../../src/adapters/kafka/sink/lane-transactions.ts";
import { KafkaRejectWriter, rejectRecords } from "../../../../src/adapters/kafka/sink/reject-writer.ts";
import type { DerivedBatch, RefusedRecord } from "../../../../src/core/pipeline/derived.ts";
import { int64At } from "../../../../src/core/records/int64-at.ts";
import { streamKey } from "../../../../src/core/records/stream.ts";
import { Process, rightsOf } from "../../../contract/kafka-sink-contract.ts";
import { batchOf, bytes, type Row, row, STREAM } from "../../../core/formats/parquet/rows.ts";
import { FakeSinkBench } from "./fake-bench.ts";
import { plainRecords } from "./plain-records.ts";

const S = streamKey(STREAM);
const NOW = 1_800_000_000_123;
const HEADERS = { choice: "none", prefix: "_twg_", pipeline: "p" } as const;

const refusal = (r: number, more: Partial<RefusedRecord> = {}): RefusedRecord => ({
  row: r,
  code: "decode.truncated",
  path: "items[2].sku",
  message: "ends within a string",
  schemaId: "7",
  ...more,
});

function derived(rows: readonly Row[], refused: readonly RefusedRecord[]): DerivedBatch {
  const source = batchOf(rows);
  const { span, offsets, ingestTs } = source;
  const { rows: count } = source;
  const tableRows = new Int32Array(0);
  return { span, offsets, ingestTs, rows: count, source, table: null, tableRows, rejects: null, refused };
}

const ROWS = [
  row(4, { value: bytes("fine") }),
  row(5, {
    key: bytes("k"),
    value: bytes("\u0000bad"),
    timestamp: 1_600_000_000_001n,
    headers: [[bytes("trace"), null]],
    leaderEpoch: 3,
  }),
  row(9, { value: bytes(""), timestampType: 0 }),
];

test("what is refused keeps what it was, and says why and where", () => {
  const batch = derived(ROWS, [refusal(1), refusal(2, { schemaId: null, path: "" })]);
  const records = rejectRecords(batch, HEADERS, NOW)!;
  batch.source.value.data.fill(0);
  expect(plainRecords(records.owned.columns)).toEqual([
    {
      key: "k",
      value: "\u0000bad",
      ms: BigInt(NOW),
      headers: [
        ["trace", null],
        ["_twg_reject_stage", "decode"],
        ["_twg_reject_code", "decode.truncated"],
        ["_twg_reject_path", "items[2].sku"],
        ["_twg_reject_message", "ends within a string"],
        ["_twg_schema_id", "7"],
        ["_twg_source_topic", "orders"],
        ["_twg_source_partition", "3"],
        ["_twg_source_offset", "5"],
        ["_twg_source_timestamp", "1600000000001"],
      ],
    },
    {
      key: null,
      value: "",
      ms: BigInt(NOW),
      headers: [
        ["_twg_reject_stage", "decode"],
        ["_twg_reject_code", "decode.truncated"],
        ["_twg_reject_path", ""],
        ["_twg_reject_message", "ends within a string"],
        ["_twg_source_topic", "orders"],
        ["_twg_source_partition", "3"],
        ["_twg_source_offset", "9"],
      ],
    },
  ]);
  expect(int64At(records.offsets, 0)).toBe(5n);
});

test('metadata = "all" adds the rest, once each', () => {
  const records = rejectRecords(derived(ROWS, [refusal(1)]), { ...HEADERS, choice: "all" }, NOW)!;
  const [one] = plainRecords(records.owned.columns);
  const names = one!.headers.map(([name]) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(Object.fromEntries(one!.headers as [string, string][])).toMatchObject({
    _twg_source_leader_epoch: "3",
    _twg_source_timestamp_type: "CreateTime",
    _twg_source_timestamp: "1600000000001",
    _twg_pipeline: "p",
  });
});

async function opened(seed: number) {
  const bench = new FakeSinkBench(seed);
  const process = new Process(bench);
  await process.open();
  const rights = rightsOf(await process.claim(S));
  const options = {
    settings: bench.settings,
    key: { pipeline: "p", sink: "raw" },
    coverageTopic: "cov.p",
    compression: "lz4",
    compressionLevel: null,
    batchBytes: 100_000,
    transactionTimeoutMs: 20_000,
    topic: bench.target,
    samePartition: false,
    headers: HEADERS,
    commitBytes: Number.MAX_SAFE_INTEGER,
    late: true,
  } as const;
  const parts = { ...bench.parts(), writer: process.life };
  const writer = new KafkaRejectWriter(options, parts, new LaneTransactions(options, parts));
  return { bench, process, rights, writer };
}

test("a set covers what it was given, with records or without, and lands once", async () => {
  const { bench, process, rights, writer } = await opened(21);
  writer.open("a");
  expect(writer.write(derived([row(0, { value: bytes("fine") })], []), rights[0]!)).toBe(1);
  expect(writer.write(derived(ROWS, [refusal(1)]), rights[0]!)).toBe(3);
  const span = { stream: S, from: 0n, next: 10n };
  expect(await bench.run(writer.seal([span], rights))).toMatchObject({ covered: true, rows: 1 });
  writer.open("b");
  expect(writer.write(derived([row(10, { value: bytes("fine") })], []), rights[0]!)).toBe(1);
  expect(await bench.run(writer.seal([{ stream: S, from: 10n, next: 11n }], rights))).toMatchObject({
    covered: true,
    rows: 0,
  });
  expect(await bench.values()).toEqual(["\u0000bad"]);
  const [claim] = await process.claim(S);
  expect(claim?.covered).toEqual([{ from: 0n, next: 11n }]);
  await process.close();
});

test("a dead letter that the topic does not take is a hole, and says where it was", async () => {
  const { bench, process, rights, writer } = await opened(22);
  const noise = crypto.getRandomValues(new Uint8Array(9_999));
  bench.cluster.maxBatchBytes = 900;
  writer.open("a");
  writer.write(
    derived([row(5, { value: noise }), row(7, { value: bytes("small") })], [refusal(0), refusal(1)]),
    rights[0]!,
  );
  const sealed = await bench.run(writer.seal([{ stream: S, from: 5n, next: 8n }], rights));
  expect(sealed).toMatchObject({
    ...{ covered: true, rows: 1 },
    leftOut: {
      codes: [["kafka.record_too_large", 1]],
      uncovered: [{ stream: S, from: 5n, next: 6n }],
      failure: { code: "kafka.record_too_large" },
    },
  });
  const { leftOut } = sealed as { leftOut: { failure: { message: string } } };
  expect(leftOut.failure.message).toStartWith("orders/3@5: ");
  expect(await bench.values()).toEqual(["small"]);
  const [claim] = await process.claim(S);
  expect(claim?.covered).toEqual([{ from: 6n, next: 8n }]);
  await process.close();
});
