/**
 * Goal: rows that a sink refuses are found again in their piece, counted once, and become durable with their set; a set is
 * sealed under the authority of its files. Method: a lane over CSV with a sink in memory that refuses what it is told to.
 */
import { expect, test } from "bun:test";
import { CsvDecoder } from "../../../src/core/codecs/csv/decoder.ts";
import { RFC_4180 } from "../../../src/core/codecs/csv/dialect.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { RowLane } from "../../../src/core/pipeline/row-lane.ts";
import type { FromBatchLane, HashTask, TableSpec } from "../../../src/core/ports/batch-lane.ts";
import type { Authority } from "../../../src/core/ports/coverage.ts";
import type { LateRefusals, RowOrigins, TableSink } from "../../../src/core/ports/table-sink.ts";
import { int64At } from "../../../src/core/records/int64-at.ts";
import type { Span } from "../../../src/core/records/stream.ts";
import { SimTime } from "../../sim/clock.ts";

const SPEC: TableSpec = {
  schema: {
    fields: [
      { name: "id", type: { id: "int", bits: 64, signed: true }, nullable: false },
      { name: "name", type: { id: "utf8" }, nullable: true },
    ],
  },
  metadata: "locator",
  prefix: "_m_",
  pipeline: "p",
  ranked: false,
};
const AUTHORITY = { kind: "generation", stream: "file/00/9", generation: 3 } as const;

/** Keeps names of rows; refuses those that hold a bang, and at its end those that hold a question. */
class Sink implements TableSink {
  names: string[] = [];
  /** Of the open set, by name. */
  readonly origins: { name: string; stream: string; offset: bigint }[] = [];
  /** Attempts at the end of a set that fail before one lands. */
  outages = 0;
  readonly lines: Record<string, unknown>[] = [];
  readonly sealed: { spans: readonly Span[]; authorities: readonly Authority[] }[] = [];
  held = 0;
  size = 0;
  open(): void {}
  write(
    batch: Parameters<TableSink["write"]>[0],
    refuse: Parameters<TableSink["write"]>[1],
    origins?: RowOrigins,
  ): void {
    this.size += batch.rows;
    const { offsets, data } = batch.columns[1]!;
    for (let row = 0; row < batch.rows; row++) {
      const name = new TextDecoder().decode(data.subarray(offsets![row]!, offsets![row + 1]!));
      if (name.includes("!")) refuse({ row, code: "value.nul", column: "name", reason: "a bang" });
      else {
        this.names.push(name);
        if (origins === undefined) continue;
        this.origins.push({ name, stream: origins.stream, offset: int64At(origins.offsets, row) });
      }
    }
  }
  reject(lines: Uint8Array): void {
    this.lines.push(JSON.parse(new TextDecoder().decode(lines)));
  }
  async flush(): Promise<void> {}
  async seal(spans: readonly Span[], authorities: readonly Authority[], late?: LateRefusals) {
    const refused = this.origins.filter((o) => o.name.includes("?"));
    if (late !== undefined && refused.length > 0) {
      const said = {
        code: "row.constraint",
        column: null,
        reason: "no questions",
        more: { sqlstate: "23514" },
      };
      const fields = () => ({ id: "1" });
      for (const line of late.lines(refused.map((o) => ({ ...o, ...said, fields }))))
        if (this.outages === 0) this.lines.push(JSON.parse(line));
    }
    if (this.outages-- > 0) throw new Failure("postgres.unavailable", "away", { retry: true });
    this.names = this.names.filter((n) => !n.includes("?"));
    this.origins.length = 0;
    this.size = 0;
    this.sealed.push({ spans, authorities });
    return { targets: [], covered: true, rows: this.names.length, bytes: 1 };
  }
  async abort(): Promise<void> {}
}

interface LaneOver {
  readonly groupBytes?: number;
  readonly rollBytes?: number;
  readonly maxRejects?: number;
  /** Several pieces of the same text, one behind the other. */
  readonly pieces?: number;
}

function lane(text: string, sink: Sink, refusing: boolean, over: LaneOver = {}) {
  const { groupBytes = 1 << 20, rollBytes = 1 << 20, maxRejects = 100, pieces = 1 } = over;
  const told: FromBatchLane[] = [];
  const time = new SimTime();
  const layout = { format: "csv", dialect: RFC_4180, columns: ["id", "name"], header: true } as const;
  const work = {
    file: 0,
    name: "in.csv",
    path: "in.csv",
    bytes: 9,
    compression: "none",
    encoding: "utf-8",
    revision: null,
    layout,
  } as const;
  const l = new RowLane({ lane: 0, table: SPEC, groupBytes, rollBytes, refusing, maxRejects }, {
    clock: time.clock(null),
    sink,
    newSetId: () => "set",
    decoderOf: () => new CsvDecoder({ columns: layout.columns, dialect: RFC_4180, isUtf8: () => true }),
    readRange: () => {
      throw new Failure("internal.bug", "no ranges here");
    },
    hash: ({ file, from }: HashTask) => ({
      file,
      from,
      parts: new Uint8Array(0),
      blocks: new BigUint64Array(0),
    }),
    // A buffer that was given back is somebody else's.
    post: (m: FromBatchLane) => {
      if (m.t === "done" && m.buffer !== null) new Uint8Array(m.buffer).fill(0x7a);
      told.push(m);
    },
  } as never);
  const bytes = new TextEncoder().encode(text);
  l.receive({
    t: "file",
    work,
    stream: AUTHORITY.stream,
    sha256: "00",
    authority: AUTHORITY,
    rank: null,
    covered: [],
    ended: false,
    checks: null,
  });
  const lines = text.split("\n").length - 1;
  for (let n = 0; n < pieces; n++) {
    // Room behind the end, as codecs may use.
    const buffer = new Uint8Array(bytes.length + 64);
    buffer.set(bytes);
    const place = { firstRow: 100 + 6 * n, line: 7 + lines * n, last: n === pieces - 1 };
    l.receive({
      t: "piece",
      piece: { file: 0, buffer: buffer.buffer, end: bytes.length, records: 6, ...place },
    });
  }
  l.receive({ t: "roll" });
  return {
    told,
    ended: () => time.runUntil(() => ["rolled", "dead"].includes(told.at(-1)?.t ?? ""), 60_000),
  };
}

const TEXT = '1,a\n2,"b!\n"\nx,bad\n4,d\n5,e!\n6,f\n';

test("refused rows are told with line, row and bytes, beside those that the codec refuses", async () => {
  const sink = new Sink();
  const { told, ended } = lane(TEXT, sink, true);
  await ended();
  expect(sink.names).toEqual(["a", "d", "f"]);
  expect(sink.lines.sort((a, b) => Number(a.row) - Number(b.row))).toMatchObject([
    { file: "in.csv", line: 8, row: 101, code: "value.nul", column: "name", raw: '2,"b!\n"' },
    { line: 10, row: 102, code: "value.type", column: "id", raw: "x,bad" },
    { line: 12, row: 104, code: "value.nul", raw: "5,e!" },
  ]);
  const done = told.find((m) => m.t === "done");
  expect(done).toMatchObject({ counts: { rows: 3, rejected: 3, skipped: 0 } });
  expect(sink.sealed).toMatchObject([{ spans: [{ from: 100n, next: 106n }, {}], authorities: [AUTHORITY] }]);
  expect(told.map((m) => m.t)).toEqual(["done", "sealed", "rolled"]);
});

test("the same in many batches of a piece", async () => {
  const sink = new Sink();
  const { told, ended } = lane(TEXT, sink, true, { groupBytes: 1 });
  await ended();
  expect(sink.names).toEqual(["a", "d", "f"]);
  expect(sink.lines).toHaveLength(3);
  expect(told.find((m) => m.t === "done")).toMatchObject({ counts: { rows: 3, rejected: 3 } });
});

test("a sink that refuses without having said so ends the lane", async () => {
  const { told, ended } = lane(TEXT, new Sink(), false);
  await ended();
  expect(told.at(-1)).toMatchObject({ t: "dead", failure: { code: "internal.bug" } });
});

const LATE = '1,a\n2,"b?\n"\n3,c\n4,d\n5,e?\n6,f\n';

test("rows that only the server refuses: with their records as they were, though the pieces have gone back", async () => {
  const sink = new Sink();
  const { told, ended } = lane(LATE, sink, true, { pieces: 2, groupBytes: 1 });
  await ended();
  expect(sink.lines).toEqual(
    [
      { line: 8, row: 101, raw: '2,"b?\n"', raw_bytes: 7 },
      { line: 12, row: 104, raw: "5,e?", raw_bytes: 4 },
      { line: 15, row: 107, raw: '2,"b?\n"', raw_bytes: 7 },
      { line: 19, row: 110, raw: "5,e?", raw_bytes: 4 },
    ].map((at) => ({
      ...{ file: "in.csv", code: "row.constraint", column: null, reason: "no questions", sqlstate: "23514" },
      ...at,
    })),
  );
  // They were counted as given to the sink, and are taken out of that before the set is told.
  expect(told.map((m) => m.t)).toEqual(["done", "done", "refused", "sealed", "rolled"]);
  expect(told.find((m) => m.t === "done")).toMatchObject({ counts: { rows: 6, rejected: 0 } });
  expect(told.find((m) => m.t === "refused")).toMatchObject({ rows: 4, samples: [{ row: 101 }, {}, {}, {}] });
});

test("an end that is tried again tells them once", async () => {
  const sink = new Sink();
  sink.outages = 2;
  const { told, ended } = lane(LATE, sink, true);
  await ended();
  expect(sink.lines).toHaveLength(2);
  expect(told.map((m) => m.t)).toEqual(["done", "sink", "sink", "sink", "refused", "sealed", "rolled"]);
  expect(told.find((m) => m.t === "refused")).toMatchObject({ rows: 2 });
});

test("more than the job allows, those of the codec counted: told, and nothing of the set lands", async () => {
  const sink = new Sink();
  const { told, ended } = lane(LATE.replace("4,d", "x,d"), sink, true, { maxRejects: 2 });
  await ended();
  expect(told.map((m) => m.t)).toEqual(["done", "refused", "dead"]);
  expect(told[1]).toMatchObject({ rows: 2, samples: [{ row: 101 }, { row: 104 }] });
  expect(told[2]).toMatchObject({
    failure: { code: "files.too_many_rejects", message: "3 rows were refused, at most 2 are allowed" },
  });
  expect(sink.sealed).toEqual([]);
});

test("records that are kept for a set do not grow beyond their share of it, however small its rows are", async () => {
  const sink = new Sink();
  // Each piece is 33 bytes of text and counts as 6 of the sink's: three of them are more than twice 40.
  const { told, ended } = lane(LATE.replaceAll("?", ""), sink, true, { pieces: 7, rollBytes: 40 });
  await ended();
  expect(told.map((m) => m.t).filter((t) => t !== "done")).toEqual(["sealed", "sealed", "sealed", "rolled"]);
});
