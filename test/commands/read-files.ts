/**
 * A batch job without its threads and its sink: files are planned, hashed, cut or read by row groups, and decoded by the
 * real lane into a sink that keeps what it gets as plain values.
 */

import { isUtf8 } from "node:buffer";
import { DuckEngine } from "../../src/adapters/duckdb/engine.ts";
import { fallbackCodecs } from "../../src/adapters/duckdb/native-fallback.ts";
import { hashRange, hashRemote } from "../../src/adapters/files/blocks.ts";
import { Cutter } from "../../src/adapters/files/cutter.ts";
import { openLocalFile } from "../../src/adapters/files/file-bytes.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { decoderOf } from "../../src/commands/batch-lane.ts";
import { ParquetRanges } from "../../src/commands/batch-parquet.ts";
import type { BatchPlan } from "../../src/commands/batch-plan.ts";
import { Failure, fromWire } from "../../src/core/failure/failure.ts";
import { AvroDecoders, type AvroRowsOptions } from "../../src/core/pipeline/avro-rows.ts";
import { rangesOf } from "../../src/core/pipeline/batch-files.ts";
import { RowLane } from "../../src/core/pipeline/row-lane.ts";
import type { FileWork, FromBatchLane, FromCutter } from "../../src/core/ports/batch-lane.ts";
import type { OpenFile } from "../../src/core/ports/file-bytes.ts";
import type { TableSink } from "../../src/core/ports/table-sink.ts";
import { fileStreamKey } from "../../src/core/records/file-stream.ts";
import type { TableBatch, TableColumn } from "../../src/core/types/table-batch.ts";

const AVRO: AvroRowsOptions = {
  ...{ isUtf8: (b: Uint8Array) => isUtf8(b), maxBlockBytes: 1 << 24, codecs: fallbackCodecs },
  decoders: new AvroDecoders((b) => isUtf8(b)),
};

export type Plain = null | boolean | string | readonly Plain[];

export interface ReadFile {
  readonly rows: Plain[][];
  readonly rejects: { readonly row: number; readonly code: string; readonly raw?: string }[];
  /** Records that were counted apart from the rows. */
  records: number;
}

const isValid = ({ validity }: TableColumn, i: number): boolean =>
  validity === null || ((validity[i >> 3]! >> (i & 7)) & 1) === 1;

/** Values of column `c` as files.py spells them: numbers as text, floats as the bits of a double. */
export function plainOf(c: TableColumn, i: number): Plain {
  if (!isValid(c, i)) return null;
  const { type, data, offsets, children } = c;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  switch (type.id) {
    case "bool":
      return ((data[i >> 3]! >> (i & 7)) & 1) === 1;
    case "utf8":
    case "json":
      return new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(
        data.subarray(offsets![i], offsets![i + 1]),
      );
    case "binary":
      return `0x${data.slice(offsets![i], offsets![i + 1]).toHex()}`;
    case "int": {
      const at = (i * type.bits) / 8;
      const raw =
        type.bits === 64
          ? view.getBigInt64(at, true)
          : BigInt(
              type.bits === 32
                ? view.getInt32(at, true)
                : type.bits === 16
                  ? view.getInt16(at, true)
                  : view.getInt8(at),
            );
      return String(type.signed ? raw : BigInt.asUintN(type.bits, raw));
    }
    case "float":
      return bitsOf(type.bits === 32 ? view.getFloat32(4 * i, true) : view.getFloat64(8 * i, true));
    case "decimal":
      return String((view.getBigInt64(16 * i + 8, true) << 64n) | view.getBigUint64(16 * i, true));
    case "date32":
      return String(view.getInt32(4 * i, true));
    case "time64":
    case "timestamp":
      return String(view.getBigInt64(8 * i, true));
    case "fixed":
      return `0x${data.slice(i * type.bytes, (i + 1) * type.bytes).toHex()}`;
    case "interval":
      return [
        view.getInt32(16 * i, true),
        view.getInt32(16 * i + 4, true),
        view.getBigInt64(16 * i + 8, true),
      ].map(String);
    case "struct":
      return children.map((k) => plainOf(k, i));
    case "list":
    case "map":
      return Array.from({ length: offsets![i + 1]! - offsets![i]! }, (_, j) =>
        plainOf(children[0]!, offsets![i]! + j),
      );
    case "null":
      return null;
  }
}

function bitsOf(v: number): string {
  if (Number.isNaN(v)) return "NaN";
  const b = new DataView(new ArrayBuffer(8));
  b.setFloat64(0, v);
  return new Uint8Array(b.buffer).toHex();
}

/** Throws the failure that would end the job. */
export async function readFiles(
  plan: BatchPlan,
  options: { readonly pieceBytes?: number; readonly open?: OpenFile; readonly groupBytes?: number } = {},
): Promise<ReadFile> {
  const out: ReadFile = { rows: [], rejects: [], records: 0 };
  const fields = plan.schema.fields.length;
  const sink: TableSink = {
    open: () => {},
    write: (batch: TableBatch) => {
      for (let i = 0; i < batch.rows; i++)
        out.rows.push(batch.columns.slice(0, fields).map((c) => plainOf(c, i)));
    },
    reject: (lines) => {
      const { row, code, raw } = JSON.parse(new TextDecoder().decode(lines));
      out.rejects.push({ row, code, raw });
    },
    flush: async () => {},
    held: 0,
    size: 0,
    seal: async () => ({ targets: [], covered: false, rows: 0, bytes: 0 }),
    abort: async () => {},
  };
  const engine = () => new DuckEngine({ threads: 1, memoryBytes: 256 << 20, spill: null, allowed: [] });
  const open = options.open ?? openLocalFile;
  await new Promise<void>((resolve, reject) => {
    const fromLane = (m: FromBatchLane): void => {
      if (m.t === "dead") reject(fromWire(m.failure));
      if (m.t === "rolled") resolve();
      if (m.t === "done" && m.buffer !== null) cutter.receive({ t: "credit", buffer: m.buffer });
    };
    const lane: RowLane = new RowLane(
      {
        lane: 0,
        table: { schema: plan.schema, metadata: "locator", prefix: "_twg_", pipeline: "p", ranked: false },
        groupBytes: options.groupBytes ?? 1 << 20,
        rollBytes: 1 << 30,
        refusing: false,
        maxRejects: 0,
      },
      {
        clock: systemClock,
        sink,
        newSetId: () => "set",
        decoderOf: (work, { schema }) => decoderOf(work, schema, AVRO),
        readRange: new ParquetRanges({ engine, open }).read,
        hash: hashRange,
        post: fromLane,
      },
    );
    let left = plan.works.length;
    const done = (): void => {
      if (--left === 0) lane.receive({ t: "roll" });
    };
    const fromCutter = (m: FromCutter): void => {
      if (m.t === "dead") reject(fromWire(m.failure));
      if (m.t === "piece") {
        out.records += m.piece.records;
        lane.receive({ t: "piece", piece: m.piece });
      }
      if (m.t === "cut") done();
    };
    const cutter = new Cutter(
      { pieceBytes: options.pieceBytes ?? 64 << 10, maxRecordBytes: 1 << 20 },
      open,
      fromCutter,
    );
    cutter.receive({ t: "credit", buffer: null });
    cutter.receive({ t: "credit", buffer: null });
    const given = (work: FileWork): void => {
      const ranges = rangesOf(work);
      if (ranges === null)
        cutter.receive({
          t: "cut",
          work,
          columns: work.layout.format === "csv" ? work.layout.columns.length : 0,
        });
      for (const range of ranges ?? []) {
        out.records += range.rows;
        lane.receive({ t: "range", range });
      }
      if (ranges !== null) done();
    };
    void (async () => {
      for (const work of plan.works) {
        await begin(lane, work, open);
        given(work);
      }
    })().catch(reject);
  });
  return out;
}

async function begin(lane: RowLane, work: FileWork, open: OpenFile): Promise<void> {
  const { file, path, revision, bytes } = work;
  const task = { file, path, revision, from: 0, to: bytes };
  const { blocks } = revision === null ? hashRange(task) : await hashRemote(task, open(work));
  const sha256 = "00".repeat(32);
  const stream = fileStreamKey({ sha256, bytes });
  lane.receive({
    t: "file",
    work,
    stream,
    sha256,
    covered: [],
    ended: false,
    authority: null,
    rank: null,
    checks: rangesOf(work) === null ? null : blocks,
  });
}

/** The failure's code, or what was read. */
export async function outcomeOf<T>(work: () => Promise<T>): Promise<T | { readonly failure: string }> {
  try {
    return await work();
  } catch (e) {
    if (e instanceof Failure) return { failure: e.code };
    throw e;
  }
}
