/** The decoding part of a lane: from records to the sinks of typed rows and of rejects. */
import { createNet } from "../adapters/net/net.ts";
import { ParquetTableWriter } from "../adapters/parquet/table-writer.ts";
import type { TargetColumn } from "../adapters/postgres/copy/table-rows.ts";
import { prepareFields } from "../adapters/postgres/prepare.ts";
import { UnfitColumns } from "../adapters/postgres/table/misfit.ts";
import { PostgresTableWriter } from "../adapters/postgres/table-writer.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { systemSaslCrypto } from "../adapters/system/sasl-crypto.ts";
import { framingOf } from "../core/codecs/framing/framing.ts";
import type { Codecs } from "../core/compression/codec.ts";
import { type DecodeSection, type PayloadPlan, payloadPlan } from "../core/config/decode-options.ts";
import { asFailure, Failure, toWire } from "../core/failure/failure.ts";
import { Branch } from "../core/pipeline/branch.ts";
import { Branches } from "../core/pipeline/branches.ts";
import type { Part } from "../core/pipeline/decode-keys.ts";
import { DecodeReader, type ReaderParts } from "../core/pipeline/decode-reader.ts";
import { type DecodeParts, DecodeStage } from "../core/pipeline/decode-stage.ts";
import { type DerivedBatch, originsOf, rejectFields } from "../core/pipeline/derived.ts";
import type { DistinctRows } from "../core/pipeline/distinct-rows.ts";
import { KnownSchemas, type KnownSchemasParts } from "../core/pipeline/known-schemas.ts";
import { type RawMetadata, rawOriginFields, widest, withRowKey } from "../core/pipeline/raw-origins.ts";
import { TableBranchWriter } from "../core/pipeline/table-branch.ts";
import type { BranchWriter } from "../core/ports/branch-parts.ts";
import type { FromLane } from "../core/ports/lane.ts";
import type { RefusedCell, TableSink } from "../core/ports/table-sink.ts";
import type { StreamKey } from "../core/records/stream.ts";
import type { TargetAbilities } from "../core/schema/evolution.ts";
import { FOLDER_TABLE } from "../core/schema/folder-table.ts";
import { SERVER_TABLE } from "../core/schema/server-table.ts";
import { sameType } from "../core/types/cast-column.ts";
import type { ColumnField, TableBatch } from "../core/types/table-batch.ts";
import { cellValue } from "../core/types/value-cells.ts";
import { valueJson } from "../core/types/value-json.ts";
import { crashHook } from "./crash-hook.ts";
import type { LaneBranch, LaneDecode, LaneDedup, LaneSink } from "./lane-config.ts";
import { laneDuplicates, Undecided } from "./lane-dedup.ts";
import type { AskedDedup } from "./lane-dedup-asks.ts";
import { type FittedSink, LaneTables, type Unfit } from "./lane-fit.ts";
import { type AskForSchema, inferredSchemas } from "./lane-inference.ts";
import { KafkaRows, type KafkaRowsContext } from "./lane-kafka-rows.ts";
import { openLaneStore } from "./lane-store.ts";
import type { GrownLaneTables } from "./lane-tables.ts";
import { partDecoder } from "./payload-decoder.ts";
import { tableEncoding } from "./table-encoding.ts";

const HOLD_SHARE = 4;
/** A table that could not be prepared is tried again after so long, ms. */
const RETRY_MS = 5_000;

export interface DecodeContext {
  readonly lane: number;
  readonly instance: string;
  readonly codecs: Codecs;
  /** Number of the first of the sinks. */
  readonly first: number;
  readonly primaryOpen: () => boolean;
  readonly post: (m: FromLane) => void;
  readonly schema: AskForSchema;
  readonly register: KafkaRowsContext["register"];
  /** Null: no sink leaves duplicates out. */
  readonly dedup: { readonly options: LaneDedup; readonly asks: AskedDedup } | null;
  /** Makes room in the tables that the control thread keeps: of sinks of decoded rows that are files. */
  readonly grow: (fields: readonly ColumnField[]) => Promise<GrownLaneTables>;
}

export interface DecodeLane {
  readonly stage: DecodeStage;
  readonly branches: Branches<DerivedBatch>;
  /** They are not ours any more. */
  forget(streams: readonly number[]): void;
  /** The lane begins anew. */
  reset(epoch: number): void;
  renew(sinks: readonly LaneSink[]): void;
}

export function decodeLane(
  decode: LaneDecode,
  configured: readonly LaneBranch[],
  context: DecodeContext,
): DecodeLane {
  const sinks = configured.map((b, i) => new DerivedSink(b, decode, i + context.first, context));
  const branches = new Branches<DerivedBatch>(
    sinks.map((s, i) => ({ branch: s.branch, after: configured[i]!.after.map((n) => n - context.first) })),
  );
  const { post } = context;
  const metadata = widest(configured.filter((b) => b.receives === "decoded").map(columnsOf));
  const tables = new LaneTables(sinks, {
    clock: systemClock,
    grow: context.grow,
    refit: () => stage.refit(),
    oneFile: decode.oneFile,
  });
  const trouble = (failure: Failure | null) => {
    const wire = failure === null ? null : toWire(failure);
    for (const s of sinks) post({ t: "branch", sink: s.sink, m: { t: "trouble", failure: wire } });
  };
  const reading: Omit<ReaderParts, "waiting" | "schemas"> & KnownSchemasParts & Pick<DecodeParts, "learn"> = {
    clock: systemClock,
    framing: (topic, part) => {
      const plan = planOf(decode, topic, part);
      if (plan === null) return null;
      const protobuf = plan.format === "protobuf";
      const maxPayloadBytes = decode.options.max_payload_bytes;
      return framingOf(plan.framing, { part, protobuf, maxPayloadBytes, codecs: context.codecs });
    },
    ...inferredSchemas(decode.options, decode.prefix, context.schema),
    compile: (topic, schema, message, part) => {
      const plan = planOf(decode, topic, part);
      if (plan === null) throw new Failure("internal.bug", `no plan for the keys of ${topic}`);
      return partDecoder(decode.options as DecodeSection, schema, part, plan, message, decode.prefix);
    },
    trouble,
  };
  const duplicates =
    context.dedup === null
      ? null
      : laneDuplicates({
          ...context.dedup,
          inflate: context.codecs,
          reader: new DecodeReader({
            schemas: new KnownSchemas(reading, () => async () => []),
            framing: reading.framing,
            waiting: () => [],
          }),
        });
  const keys = new Map<number, StreamKey>();
  const undecided = new Undecided((failure) => {
    for (const [i, s] of sinks.entries())
      if (configured[i]!.distinct) post({ t: "branch", sink: s.sink, m: { t: "trouble", failure } });
  });
  const stage: DecodeStage = new DecodeStage(
    {
      pipeline: decode.pipeline,
      prefix: decode.prefix,
      metadata,
      holdBytes: Math.max(...configured.map((b) => b.holdBytes)),
      can: abilitiesOf(configured),
    },
    {
      ...reading,
      failsOnError: (topic) => planOf(decode, topic, "value")?.onError === "fail",
      fit: (fields, judged) => tables.fit(fields, judged && !decode.fixedColumns),
      give: (stream, key, batch) => {
        keys.set(stream, key);
        const unknown = batch.distinct instanceof Failure ? batch.distinct : null;
        undecided.set(stream, unknown);
        const passed = (i: number) => unknown !== null && configured[i]!.distinct;
        branches.give(stream, key, () => batch, batch.span, passed);
      },
      miss: (key, batch, failure) => branches.miss(key, batch.span, failure),
      duplicates,
      undecodable: (refused) => post({ t: "branch", sink: context.first, m: { t: "undecodable", refused } }),
      fatal: (failure) => post({ t: "dead", failure: toWire(failure) }),
    },
  );
  return {
    stage,
    branches,
    forget: (streams) => {
      const waited = stage.forget(new Set(streams));
      branches.forget(streams);
      duplicates?.forget(new Set([...waited, ...streams.flatMap((s) => keys.get(s) ?? [])]));
      for (const s of streams) {
        keys.delete(s);
        undecided.set(s, null);
      }
    },
    reset: (epoch) => {
      stage.reset();
      branches.reset(epoch);
      duplicates?.forget(null);
      keys.clear();
    },
    renew: (renewed) => {
      for (const [i, sink] of renewed.entries()) sinks[i]?.renew(sink);
    },
  };
}

function planOf({ options }: LaneDecode, topic: string, part: Part): PayloadPlan | null {
  return payloadPlan(options as DecodeSection, topic, part);
}

/** What all tables of decoded rows can become: only a server's own can have its rows written anew. */
function abilitiesOf(configured: readonly LaneBranch[]): TargetAbilities {
  const decoded = configured.filter((b) => b.receives === "decoded");
  return decoded.every((b) => b.sink.kind === "postgres") ? SERVER_TABLE : FOLDER_TABLE;
}

/** Which metadata are columns of the sink; records of topics have headers for them. */
function columnsOf({ metadata, sink }: LaneBranch): RawMetadata {
  if (sink.kind === "kafka") return "none";
  return sink.kind === "postgres" && sink.writer.rowKey !== null ? withRowKey(metadata) : metadata;
}

const JUDGES = { parquet: "kept", postgres: "server", kafka: "any", replay: "any" } as const;

/** One sink of derived rows in a lane: its table as it is now, and a writer for each set. */
class DerivedSink implements FittedSink {
  readonly branch: Branch<DerivedBatch>;
  readonly sink: number;
  readonly #o: LaneBranch;
  readonly #decode: LaneDecode;
  readonly #c: DecodeContext;
  #lane: LaneSink;
  #fields: readonly ColumnField[];
  #targets: readonly TargetColumn[] | null = null;
  /** Its columns are known. */
  #shaped = false;
  #encode: ((batch: TableBatch) => Uint8Array) | null = null;
  /** Null: another kind of sink. */
  readonly #topic: KafkaRows | null;
  #made = 0;
  #sets = 0;
  #attempt = 0;

  constructor(options: LaneBranch, decode: LaneDecode, sink: number, context: DecodeContext) {
    this.#o = options;
    this.#decode = decode;
    this.#c = context;
    this.#lane = options.sink;
    this.sink = sink;
    this.#topic =
      options.sink.kind === "kafka"
        ? new KafkaRows(options.sink, {
            ...context,
            clock: systemClock,
            block: (failure) => {
              this.branch.blocked = failure;
            },
          })
        : null;
    this.#fields = options.receives === "rejected" ? rejectFields(decode.prefix) : [];
    const { lane, instance, primaryOpen, post } = context;
    const { name, eager, holdBytes } = options;
    const { rollBytes, rollIntervalMs, kind } = options.sink;
    this.branch = new Branch<DerivedBatch>({
      ...{ lane, name, eager, holdBytes, rollBytes, rollIntervalMs, primaryOpen },
      commits: kind !== "parquet",
      clock: systemClock,
      newWriter: () => this.#writer(),
      newSetId: () => `${instance}b${sink}-${this.#sets++}`,
      post: (m) => post({ t: "branch", sink, m }),
    });
  }

  renew(sink: LaneSink): void {
    this.#lane = sink;
    if (sink.kind === "kafka") this.#topic?.renew(sink);
    this.branch.reshape();
  }

  get name(): string {
    return this.#o.name;
  }

  get judge(): FittedSink["judge"] {
    if (this.#o.receives === "rejected") return "fixed";
    return JUDGES[this.#lane.kind];
  }

  get fitted(): boolean {
    return this.#shaped && this.branch.blocked === null;
  }

  block(failure: Failure): void {
    this.branch.blocked = failure;
  }

  async tried(fields: readonly ColumnField[]): Promise<Unfit | null> {
    try {
      await this.#prepared(this.#whole(fields));
      return null;
    } catch (e) {
      return e instanceof UnfitColumns ? e : null;
    }
  }

  async fit(fields: readonly ColumnField[]): Promise<void> {
    const whole = this.#whole(fields);
    // A set has one shape: what is the same goes on into the one that is open.
    if (this.fitted && sameColumns(whole, this.#fields)) return;
    this.#fields = whole;
    this.#shaped = true;
    this.branch.reshape();
    if (this.#lane.kind === "parquet") this.branch.blocked = null;
    await this.#topic?.fit(whole, (table) => selected(table, whole));
    if (this.#lane.kind === "postgres") await this.#prepare(++this.#attempt);
  }

  #whole(fields: readonly ColumnField[]): readonly ColumnField[] {
    if (this.judge === "fixed") return this.#fields;
    return [...fields, ...rawOriginFields(columnsOf(this.#o), this.#decode.prefix)];
  }

  async #prepare(attempt: number): Promise<void> {
    if (attempt !== this.#attempt) return;
    try {
      const targets = await this.#prepared(this.#fields);
      // The table has grown on meanwhile, and is prepared for that.
      if (attempt !== this.#attempt) return;
      this.#targets = targets;
      this.branch.blocked = null;
    } catch (e) {
      if (attempt !== this.#attempt) return;
      this.branch.blocked = asFailure(e);
      systemClock.after(RETRY_MS, () => void this.#prepare(attempt));
    }
  }

  /** Sets to come are for the table as it is now; those that hold rows find their own way, and so do all while it is not known. */
  async #widened(): Promise<void> {
    const attempt = this.#attempt;
    const targets = await this.#prepared(this.#fields).catch(() => null);
    if (targets === null || attempt !== this.#attempt) return;
    this.#targets = targets;
    this.branch.reshape();
  }

  async #prepared(fields: readonly ColumnField[]): Promise<readonly TargetColumn[]> {
    if (this.#lane.kind !== "postgres") throw new Failure("internal.bug", "no table to prepare");
    const { settings, table, rejects, stateSchema, pipeline, sink, lockTimeoutMs } = this.#lane.writer;
    const { create, growth } = this.#o;
    const key = { pipeline, sink };
    const row = this.#lane.writer.rowKey;
    const maxBytes = growth?.rewriteMaxBytes ?? 0;
    const rowKey = row === null ? null : { key: row, create, maxBytes, lockTimeoutMs };
    const prepared = { settings, table, rejects, stateSchema, key, create, growth, rowKey, unique: [] };
    // Rejects have the columns that they always had.
    const remembers = this.judge === "server";
    return await prepareFields({ ...prepared, remembers }, fields, this.#client());
  }

  #client() {
    return {
      net: createNet(systemClock),
      clock: systemClock,
      crypto: systemSaslCrypto,
      chance: systemChance,
    };
  }

  #writer(): BranchWriter<DerivedBatch> {
    if (this.#topic !== null) return this.#topic.writer();
    const fields = this.#fields;
    const { receives, holdBytes } = this.#o;
    const groupBytes = this.#lane.kind === "parquet" ? Math.floor(holdBytes / HOLD_SHARE) : 0;
    const rowsOf = (b: DerivedBatch) => {
      if (receives === "rejected") return b.rejects;
      const { table } = this.#o.distinct ? this.#distinct(b) : b;
      return table === null ? null : selected(table, fields);
    };
    const line = (b: TableBatch, cell: RefusedCell) => refusedLine(b, this.#decode.prefix, cell);
    const origins = (b: DerivedBatch) =>
      originsOf(
        b,
        receives === "rejected"
          ? b.refused.map((r) => r.row)
          : (this.#o.distinct ? distinctRows(b) : b).tableRows,
      );
    const options = { fields, groupBytes, rowsOf, line, originsOf: origins };
    return new TableBranchWriter(options, this.#tableSink());
  }

  #distinct(b: DerivedBatch): DistinctRows {
    const distinct = distinctRows(b);
    const { duplicates: records } = distinct;
    const { topic } = b.source.stream;
    if (records > 0) this.#c.post({ t: "branch", sink: this.sink, m: { t: "duplicates", topic, records } });
    return distinct;
  }

  #tableSink(): TableSink {
    const lane = this.#lane;
    const instance = `${this.#c.instance}b${this.sink}w${this.#made++}`;
    if (lane.kind === "postgres") {
      if (this.#targets === null) throw new Failure("internal.bug", "rows before the table was prepared");
      const hook = crashHook(lane.crashAt);
      return new PostgresTableWriter(
        { ...lane.writer, fields: this.#fields, targets: this.#targets, upsert: null },
        {
          ...this.#client(),
          writer: instance,
          widened: () => void this.#widened(),
          ...(hook === null ? {} : { hook }),
        },
      );
    }
    if (lane.kind !== "parquet") throw new Failure("internal.bug", "no sink of rows");
    const { compression, compression_level: level, pipeline, sink, version } = lane.writer;
    this.#encode ??= tableEncoding({ compression, level }, this.#c.codecs);
    const { objects: store } = openLaneStore(lane.store, instance);
    const parts = { store, encode: this.#encode };
    return new ParquetTableWriter({ folder: "", pipeline, sink, version }, parts);
  }
}

function distinctRows({ distinct }: DerivedBatch): DistinctRows {
  if (distinct !== undefined && !(distinct instanceof Failure)) return distinct;
  throw new Failure("internal.bug", "rows that nobody looked through for duplicates");
}

/** The columns of a sink, which may have fewer of the metadata. */
function selected(table: TableBatch, fields: readonly ColumnField[]): TableBatch {
  if (sameNames(table.fields, fields)) return table;
  const at = new Map(table.fields.map((f, i) => [f.name, i]));
  const columns = fields.map((f) => {
    const column = table.columns[at.get(f.name) ?? -1];
    if (column === undefined) throw new Failure("internal.bug", `rows without the column ${f.name}`);
    return column;
  });
  return { fields, columns, rows: table.rows };
}

function sameColumns(a: readonly ColumnField[], b: readonly ColumnField[]): boolean {
  return sameNames(a, b) && a.every((f, i) => sameType(f.type, b[i]!.type));
}

function sameNames(a: readonly ColumnField[], b: readonly ColumnField[]): boolean {
  return a.length === b.length && a.every((f, i) => f.name === b[i]!.name);
}

/** A row that the target cannot hold: which column, why, and the record's place, as far as the row says it. */
function refusedLine(
  batch: TableBatch,
  prefix: string,
  { row, code, column, reason }: RefusedCell,
): Uint8Array {
  const place = ["topic", "partition", "offset"].flatMap((name) => {
    const at = batch.fields.findIndex((f) => f.name === `${prefix}source_${name}`);
    // As text: JSON's readers take numbers for doubles.
    return at < 0 ? [] : [[name, valueJson(cellValue(batch.columns[at]!, row)).replaceAll('"', "")] as const];
  });
  return new TextEncoder().encode(
    `${JSON.stringify({ ...Object.fromEntries(place), code, column, reason })}\n`,
  );
}
