/** The threads of a batch job: what they are told at their start, and what they are built of. */
import { isUtf8 } from "node:buffer";
import { libduckdbPath } from "../adapters/duckdb/embedded.ts";
import { DuckEngine } from "../adapters/duckdb/engine.ts";
import { nativeOnDemand } from "../adapters/duckdb/native.ts";
import { ParquetEncoder } from "../adapters/duckdb/parquet-encode.ts";
import { hashRange, hashRemote } from "../adapters/files/blocks.ts";
import { Cutter, type CutterOptions } from "../adapters/files/cutter.ts";
import { createNet } from "../adapters/net/net.ts";
import { ParquetTableWriter } from "../adapters/parquet/table-writer.ts";
import { PostgresTableWriter } from "../adapters/postgres/table-writer.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { systemSaslCrypto } from "../adapters/system/sasl-crypto.ts";
import { CsvDecoder } from "../core/codecs/csv/decoder.ts";
import { JsonDecoder } from "../core/codecs/json/decoder.ts";
import type { PieceDecoder } from "../core/codecs/rows.ts";
import { Failure } from "../core/failure/failure.ts";
import { AvroDecoders, AvroRows, type AvroRowsOptions } from "../core/pipeline/avro-rows.ts";
import { RowLane } from "../core/pipeline/row-lane.ts";
import type {
  FileWork,
  FromBatchLane,
  FromCutter,
  TableSpec,
  ToBatchLane,
  ToCutter,
} from "../core/ports/batch-lane.ts";
import type { TableSink } from "../core/ports/table-sink.ts";
import type { TableSchema } from "../core/types/table-schema.ts";
import { BatchInputs, type BucketAccess } from "./batch-inputs.ts";
import { ParquetRanges } from "./batch-parquet.ts";
import { crashHook } from "./crash-hook.ts";
import type { BatchLaneSink } from "./lane-config.ts";
import { openLaneStore } from "./lane-store.ts";
import { SharedTexts } from "./shared-texts.ts";

/** Of the engine that reads Parquet: pages of all columns, decompressed, and one chunk of rows. */
const READER_BYTES = 256 * 1024 * 1024;
/** Columns that are turned into rows at a time. */
const COPY_BYTES = 4 * 1024 * 1024;

export interface BatchLaneInit {
  readonly t: "batch";
  readonly lane: number;
  readonly instance: string;
  readonly table: TableSpec;
  readonly sink: BatchLaneSink;
  readonly engineBytes: number;
  readonly maxRejects: number;
  /** Of an Avro file, stored or unpacked. */
  readonly maxBlockBytes: number;
  readonly buckets: BucketAccess;
}

export interface CutterInit {
  readonly t: "cutter";
  readonly options: CutterOptions;
  readonly buckets: BucketAccess;
}

export interface BatchThread {
  receive(message: ToBatchLane | ToCutter): void;
}

type Post = (message: FromBatchLane | FromCutter, transfer?: ArrayBuffer[]) => void;

export function batchThread(init: BatchLaneInit | CutterInit, post: Post): BatchThread {
  if (init.t === "cutter") {
    const cutter = new Cutter(init.options, new BatchInputs(init.buckets).open, post);
    return { receive: (m) => cutter.receive(m as ToCutter) };
  }
  const lane = rowLane(init, post);
  const texts = new SharedTexts();
  return { receive: (m) => lane.receive(withShared(m as ToBatchLane, texts)) };
}

/** A lane knows all files that it has met, and each message brings its own copies. */
function withShared(m: ToBatchLane, texts: SharedTexts): ToBatchLane {
  if (m.t !== "file" || m.work.layout.format !== "avro") return m;
  const { layout } = m.work;
  const reader = layout.reader === null ? null : texts.of(layout.reader);
  return { ...m, work: { ...m.work, layout: { ...layout, reader, schema: texts.of(layout.schema) } } };
}

function rowLane(init: BatchLaneInit, post: Post): RowLane {
  const { sink, lane, table } = init;
  const instance = `${init.instance}-l${lane}`;
  let serial = 0;
  const { open } = new BatchInputs(init.buckets);
  const avro: AvroRowsOptions = {
    ...{ isUtf8, maxBlockBytes: init.maxBlockBytes },
    codecs: nativeOnDemand(libduckdbPath()),
    decoders: new AvroDecoders(isUtf8),
  };
  return new RowLane(
    {
      lane,
      table,
      groupBytes: groupBytesOf(sink),
      rollBytes: sink.rollBytes,
      refusing: sink.kind === "postgres",
      maxRejects: init.maxRejects,
    },
    {
      clock: systemClock,
      sink: tableSink(init, instance),
      newSetId: () => `${instance}-${serial++}`,
      decoderOf: (work, { schema }) => decoderOf(work, schema, avro),
      readRange: new ParquetRanges({ engine: () => laneEngine(READER_BYTES), open }).read,
      hash: (task) =>
        task.revision === null ? hashRange(task) : hashRemote(task, open({ ...task, bytes: task.to })),
      post,
    },
  );
}

function groupBytesOf(sink: BatchLaneSink): number {
  return sink.kind === "parquet" ? sink.writer.row_group_bytes : COPY_BYTES;
}

function tableSink({ sink, engineBytes }: BatchLaneInit, instance: string): TableSink {
  if (sink.kind === "postgres") {
    const hook = crashHook(sink.crashAt);
    return new PostgresTableWriter(sink.writer, {
      net: createNet(systemClock),
      clock: systemClock,
      crypto: systemSaslCrypto,
      chance: systemChance,
      writer: instance,
      ...(hook === null ? {} : { hook }),
    });
  }
  const { compression, compression_level: level, pipeline, sink: name, version } = sink.writer;
  const engine = laneEngine(engineBytes);
  const encoder = new ParquetEncoder(engine, { compression, level });
  const { objects: store } = openLaneStore(sink.store, instance);
  return new ParquetTableWriter(
    { folder: "", pipeline, sink: name, version },
    { store, encode: (batch) => encoder.encode(batch) },
  );
}

/** An engine is one connection: what reads has another than what writes. */
function laneEngine(memoryBytes: number): DuckEngine {
  return new DuckEngine({ threads: 1, memoryBytes, spill: null, allowed: [] });
}

export function decoderOf(
  { name, layout }: Pick<FileWork, "name" | "layout">,
  schema: TableSchema,
  avro: AvroRowsOptions,
): PieceDecoder {
  switch (layout.format) {
    case "csv": {
      const { columns, dialect } = layout;
      return new CsvDecoder({ columns, dialect, isUtf8 });
    }
    case "ndjson":
      return new JsonDecoder({ isUtf8 });
    case "avro":
      return new AvroRows({ name }, layout, schema, avro);
    case "parquet":
      throw new Failure("internal.bug", "row groups are read without a decoder", { at: name });
  }
}
