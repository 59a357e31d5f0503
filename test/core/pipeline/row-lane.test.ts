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
import type { TableSink } from "../../../src/core/ports/table-sink.ts";
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

/** Keeps names of rows; refuses those that hold a bang. */
class Sink implements TableSink {
  readonly names: string[] = [];
  readonly lines: Record<string, unknown>[] = [];
  readonly sealed: { spans: readonly Span[]; authorities: readonly Authority[] }[] = [];
  held = 0;
  size = 0;
  open(): void {}
  write(batch: Parameters<TableSink["write"]>[0], refuse: Parameters<TableSink["write"]>[1]): void {
    const { offsets, data } = batch.columns[1]!;
    for (let row = 0; row < batch.rows; row++) {
      const name = new TextDecoder().decode(data.subarray(offsets![row]!, offsets![row + 1]!));
      if (name.includes("!")) refuse({ row, code: "value.nul", column: "name", reason: "a bang" });
      else this.names.push(name);
    }
  }
  reject(lines: Uint8Array): void {
    this.lines.push(JSON.parse(new TextDecoder().decode(lines)));
  }
  async flush(): Promise<void> {}
  async seal(spans: readonly Span[], authorities: readonly Authority[]) {
    this.sealed.push({ spans, authorities });
    return { targets: [], covered: true, rows: this.names.length, bytes: 1 };
  }
  async abort(): Promise<void> {}
}

function lane(text: string, sink: Sink, refusing: boolean, groupBytes = 1 << 20) {
  const told: FromBatchLane[] = [];
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
  const l = new RowLane({ lane: 0, table: SPEC, groupBytes, rollBytes: 1 << 20, refusing }, {
    clock: new SimTime().clock(null),
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
    post: (m: FromBatchLane) => told.push(m),
  } as never);
  const bytes = new TextEncoder().encode(text);
  // Room behind the end, as codecs may use.
  const buffer = new Uint8Array(bytes.length + 64);
  buffer.set(bytes);
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
  l.receive({
    t: "piece",
    piece: {
      file: 0,
      buffer: buffer.buffer,
      end: bytes.length,
      firstRow: 100,
      records: 6,
      line: 7,
      last: true,
    },
  });
  l.receive({ t: "roll" });
  return told;
}

const TEXT = '1,a\n2,"b!\n"\nx,bad\n4,d\n5,e!\n6,f\n';

test("refused rows are told with line, row and bytes, beside those that the codec refuses", async () => {
  const sink = new Sink();
  const told = lane(TEXT, sink, true);
  await Bun.sleep(0);
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
  const told = lane(TEXT, sink, true, 1);
  await Bun.sleep(0);
  expect(sink.names).toEqual(["a", "d", "f"]);
  expect(sink.lines).toHaveLength(3);
  expect(told.find((m) => m.t === "done")).toMatchObject({ counts: { rows: 3, rejected: 3 } });
});

test("a sink that refuses without having said so ends the lane", async () => {
  const told = lane(TEXT, new Sink(), false);
  await Bun.sleep(0);
  expect(told.at(-1)).toMatchObject({ t: "dead", failure: { code: "internal.bug" } });
});
