/**
 * Goal: rows are written by the schema that the registry has, and none before it has it: a registry that is slow, away or
 * refuses blocks the sink and nothing else, and is asked again. Method: a registry that obeys the test, simulated time.
 */
import { beforeEach, expect, test } from "bun:test";
import { libduckdbPath } from "../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../src/adapters/duckdb/native.ts";
import { KafkaRejectWriter } from "../../src/adapters/kafka/sink/reject-writer.ts";
import { KafkaRowWriter } from "../../src/adapters/kafka/sink/row-writer.ts";
import type { KafkaLaneSink, LaneEncode } from "../../src/commands/lane-config.ts";
import { KafkaRows } from "../../src/commands/lane-kafka-rows.ts";
import { avroSchemaOf } from "../../src/core/codecs/avro/schema-of-columns.ts";
import { NO_NUMBERS } from "../../src/core/codecs/protobuf/field-numbers.ts";
import { protobufSchemaOf } from "../../src/core/codecs/protobuf/schema-of-columns.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import type { ColumnField } from "../../src/core/types/table-batch.ts";
import { SimTime } from "../sim/clock.ts";

const AVRO = { format: "avro", subject: "typed-value", record: "acme.Row" } as const;
const FIELD: ColumnField = { name: "id", type: { id: "int", bits: 64, signed: true }, nullable: true };

function sink(encode: LaneEncode | null): KafkaLaneSink {
  const settings = {
    bootstrap: [{ host: "h", port: 1 }],
    clientId: "t",
    version: "0",
    tls: null,
    sasl: null,
    dialTimeoutMs: 1,
    requestTimeoutMs: 1,
    maxResponseBytes: 1,
    connectTimeoutMs: 1,
  };
  const writer = {
    settings,
    key: { pipeline: "p", sink: "typed" },
    coverageTopic: "c",
    compression: "none",
    compressionLevel: null,
    batchBytes: 1,
    transactionTimeoutMs: 1,
    topic: "typed",
    samePartition: false,
    headers: { choice: "none", prefix: "_twg_", pipeline: "p" },
    commitBytes: 1,
    late: true,
  } as const;
  return { kind: "kafka", rollBytes: 1, rollIntervalMs: 1, writer, encode, crashAt: null };
}

let time: SimTime;
let blocked: (Failure | null)[];
let asked: string[];
let answers: (() => Promise<number>)[];

beforeEach(() => {
  time = new SimTime();
  blocked = [];
  asked = [];
  answers = [];
});

function rows(encode: LaneEncode | null): KafkaRows {
  return new KafkaRows(sink(encode), {
    instance: "i",
    codecs: loadNative(libduckdbPath()),
    clock: time.clock(null),
    register: ({ sink: name, encode: { subject, record, format }, fields }) => {
      asked.push(`${name} ${subject} ${fields.some((f) => f.name === "more") ? "grown" : "first"}`);
      const text =
        format === "avro" ? avroSchemaOf(fields, record) : protobufSchemaOf(fields, record, NO_NUMBERS);
      const answer = answers.shift()?.() ?? Promise.resolve(7);
      return answer.then((id) => ({ id, text }));
    },
    block: (f) => blocked.push(f),
  });
}

const codes = () => blocked.map((f) => f?.code ?? null);
const fit = (r: KafkaRows, ...fields: ColumnField[]) => r.fit(fields, (table) => table);

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let done = false;
  void work.finally(() => {
    done = true;
  });
  if (!(await time.runUntil(() => done, time.nowMs + ms))) throw new Error("it takes longer");
  return work;
}

test("rejects, JSON and tables without columns ask no registry", async () => {
  expect(rows(null).writer()).toBeInstanceOf(KafkaRejectWriter);
  const json = rows({ format: "json" });
  expect(() => json.writer()).toThrow("before their columns");
  await fit(json, FIELD);
  expect(json.writer()).toBeInstanceOf(KafkaRowWriter);
  await fit(rows(AVRO));
  expect([asked, blocked]).toEqual([[], []]);
});

test("a schema is registered, and again when the table has grown", async () => {
  const r = rows(AVRO);
  await fit(r, FIELD);
  expect(r.writer()).toBeInstanceOf(KafkaRowWriter);
  await fit(r, FIELD, { ...FIELD, name: "more" });
  expect(asked).toEqual(["typed typed-value first", "typed typed-value grown"]);
  expect(codes()).toEqual(["sink.behind", null, "sink.behind", null]);
});

test("a registry that says nothing keeps others waiting for five seconds; its answer is taken when it comes", async () => {
  const late = Promise.withResolvers<number>();
  answers = [() => late.promise];
  const r = rows(AVRO);
  await within(5_000, fit(r, FIELD));
  expect(codes()).toEqual(["sink.behind"]);
  late.resolve(3);
  await time.runUntil(() => blocked.length > 1, time.nowMs + 10);
  expect(codes()).toEqual(["sink.behind", null]);
});

test("a refusal blocks, and is asked again; an answer for a table that grew since is not used", async () => {
  const refused = () => Promise.reject(new Failure("registry.incompatible", "no"));
  const late = Promise.withResolvers<number>();
  answers = [refused, () => late.promise, () => Promise.resolve(9)];
  const r = rows(AVRO);
  await within(1, fit(r, FIELD));
  expect(codes()).toEqual(["sink.behind", "registry.incompatible"]);
  await time.runUntil(() => asked.length === 2, time.nowMs + 5_000);
  await fit(r, FIELD, { ...FIELD, name: "more" });
  late.resolve(8);
  await time.runUntil(() => false, time.nowMs + 20_000);
  expect(asked.length).toBe(3);
  expect(codes()).toEqual(["sink.behind", "registry.incompatible", "sink.behind", null]);
});

test("columns that the format has not block until the table is another", async () => {
  answers = [() => Promise.reject(new Failure("encode.unsupported", "the column order-id"))];
  const r = rows(AVRO);
  await within(1, fit(r, { ...FIELD, name: "order_id" }));
  await time.runUntil(() => false, time.nowMs + 20_000);
  expect([codes(), asked.length]).toEqual([["sink.behind", "encode.unsupported"], 1]);
});

test("Protobuf and JSON by a schema are registered as Avro is", async () => {
  for (const format of ["protobuf", "json_schema"] as const) {
    const r = rows({ ...AVRO, format });
    await fit(r, FIELD);
    expect(r.writer()).toBeInstanceOf(KafkaRowWriter);
  }
  expect(asked).toEqual(["typed typed-value first", "typed typed-value first"]);
});
