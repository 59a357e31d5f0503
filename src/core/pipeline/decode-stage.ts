/**
 * Records to rows within a lane. A batch whose schemas are all known is decoded at once, on the turn of the raw sink's
 * write; one that names a new schema waits, as a copy, with what comes behind it, up to a bound: beyond it everything
 * that waits is a gap of the sinks behind. So a registry that is away costs the raw lane nothing.
 *
 * The table has the columns of all schemas that were met so far (schema/evolution.ts). Rows of a batch are grouped by
 * their schema, so schemas that alternate cost a group each and not a batch each.
 */
import { Framed } from "../codecs/framing/framed.ts";
import type { Framing } from "../codecs/framing/framing.ts";
import { DecodeError, type DecodeFault, type RecordDecoder } from "../codecs/record-codec.ts";
import { asFailure, Failure } from "../failure/failure.ts";
import type { RawBatch } from "../records/raw-batch.ts";
import type { StreamKey } from "../records/stream.ts";
import { evolve, type TargetAbilities } from "../schema/evolution.ts";
import type { SchemaRef, SchemaText } from "../schema/resolver.ts";
import type { Clock } from "../time/clock.ts";
import { builderOf } from "../types/column-builder.ts";
import type { ColumnField, TableBatch } from "../types/table-batch.ts";
import { type DecodedPart, KeyRows, type Part, withKeys } from "./decode-keys.ts";
import { type DerivedBatch, type RefusedRecord, rejectsOf } from "./derived.ts";
import { bytesOf, compact } from "./kept-batch.ts";
import { type Known, refText, undecodable, unlike } from "./known-schema.ts";
import { goodRows, payloadsOf } from "./payload-rows.ts";
import { type RawMetadata, rawOriginFields, rawOrigins } from "./raw-origins.ts";
import { Sampling, type TakeSample } from "./sampling.ts";
import { type ColumnsOfSchema, rowsOf, unionColumn } from "./union-column.ts";

export interface DecodeOptions {
  readonly pipeline: string;
  readonly prefix: string;
  readonly metadata: RawMetadata;
  /** Most bytes of batches that wait for schemas or tables. */
  readonly holdBytes: number;
  readonly can: TargetAbilities;
}

export interface DecodeParts {
  readonly clock: Clock;
  /** Null: keys are not decoded. */
  readonly framing: (topic: string, part: Part) => Framing | null;
  readonly failsOnError: (topic: string) => boolean;
  /**
   * Rejects with a failure that may be retried, or one that says that there is no such schema. `take`: of the values that
   * wait for it, for schemas that are inferred.
   */
  readonly schema: (topic: string, ref: SchemaRef, part: Part, take: TakeSample) => Promise<SchemaText>;
  /** The inferred schema with fields that it did not have; null: nothing comes of them. Rejects as `schema` does. */
  readonly learn: (topic: string, now: SchemaText, take: TakeSample) => Promise<SchemaText | null>;
  /** Throws a DecodeError where the schema cannot be used. */
  readonly compile: (
    topic: string,
    schema: SchemaText,
    message: readonly number[] | null,
    part: Part,
  ) => RecordDecoder;
  /**
   * The sinks make their tables fit these columns, metadata aside. The answer's columns hold them, and what the tables
   * have besides. `judged`: a schema is new and may be refused; sinks that cannot say tell so themselves.
   */
  readonly fit: (fields: readonly ColumnField[], judged: boolean) => Promise<TableFit>;
  readonly give: (stream: number, key: StreamKey, batch: DerivedBatch) => void;
  /** The sinks let the batch go by. */
  readonly miss: (key: StreamKey, batch: Pick<RawBatch, "span">, failure: Failure | null) => void;
  /** Records that were refused, by code. */
  readonly undecodable: (codes: readonly (readonly [code: string, records: number])[]) => void;
  /** A schema cannot be had for now; null: it can. */
  readonly trouble: (failure: Failure | null) => void;
  /** The lane cannot go on. */
  readonly fatal: (failure: Failure) => void;
}

export type TableFit =
  | { readonly fields: readonly ColumnField[] }
  | { readonly differences: readonly string[] };

interface Waiting {
  readonly stream: number;
  readonly key: StreamKey;
  readonly batch: RawBatch;
}

/** A field that an inferred schema does not have yet. */
interface News {
  readonly known: Known;
  readonly row: number;
  readonly reason: string;
}

const MOST_FUTILE = 1_000;
const RETRY_MS = 1_000;
const MOST_SCHEMAS = 100_000; // more than a batch has records
/** Longest that a stop waits for what is being looked up. */
const SETTLE_MS = 5_000;
/** Longest that a lane waits for it: schemas of files and of a registry in health are there by then. */
const RELIEF_MS = 1_000;

export class DecodeStage {
  readonly #o: DecodeOptions;
  readonly #p: DecodeParts;
  readonly #known = new Map<string, Known>();
  readonly #framings = new Map<string, Framing | null>();
  readonly #framed = new Framed();
  #fields: readonly ColumnField[] = [];
  /** Columns of the table, by the last schema that was found to need no more than those. */
  readonly #within = new WeakMap<Known, readonly ColumnField[]>();
  /** Columns of `#fields` that are the keys', and the others. */
  readonly #names = { key: new Set<string>(), value: new Set<string>() };
  #fitted = false;
  #queue: Waiting[] = [];
  #queued = 0;
  #life = 0;
  #draining = false;
  readonly #sampling: Sampling;
  #news: News | null = null;
  /** Since the queue was empty. */
  #waitedFor = false;
  #idle: (() => void)[] = [];

  constructor(options: DecodeOptions, parts: DecodeParts) {
    this.#o = options;
    this.#p = parts;
    this.#sampling = new Sampling(parts.clock);
  }

  /** Valid until the arrays of the batch are used again: what has to wait is copied. */
  take(stream: number, key: StreamKey, batch: RawBatch): void {
    // Nothing goes past what waits, nor to a table that is being made fit.
    if (this.#queue.length === 0 && !this.#draining) {
      const missing = this.#try(stream, key, batch, true);
      if (missing === null) return;
    }
    const copy = compact(batch);
    this.#queue.push({ stream, key, batch: copy });
    this.#queued += bytesOf(copy);
    if (!this.#draining) void this.#drain();
    this.#sampling.more();
    if (this.#queued > this.#o.holdBytes) this.#overflow();
  }

  /** Everything that waits is decoded, or that takes too long. */
  async settled(): Promise<void> {
    await this.#drained(SETTLE_MS);
  }

  get crowded(): boolean {
    return this.#queued > this.#o.holdBytes / 2 && !this.#waitedFor;
  }

  /** Resolves when there is room for more that waits, or once after a while: what is away does not hold a lane up. */
  async relief(): Promise<void> {
    if (!this.crowded) return;
    this.#waitedFor = true;
    await this.#drained(RELIEF_MS);
  }

  async #drained(atMostMs: number): Promise<void> {
    if (this.#queue.length === 0) return;
    this.#sampling.hurry(true);
    await new Promise<void>((resolve) => {
      const timer = this.#p.clock.after(atMostMs, resolve);
      this.#idle.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  reset(): void {
    this.#life++;
    this.#clear();
  }

  #clear(): void {
    this.#queue = [];
    this.#queued = 0;
    this.#sampling.giveUp();
    this.#awake();
  }

  #awake(): void {
    this.#sampling.hurry(false);
    for (const done of this.#idle.splice(0)) done();
  }

  #overflow(): void {
    const text = `${this.#queued} bytes of records wait for a schema or a table`;
    const failure = new Failure("sink.behind", text, { retry: true });
    for (const w of this.#queue) this.#p.miss(w.key, w.batch, failure);
    this.#life++;
    this.#clear();
  }

  async #drain(): Promise<void> {
    this.#draining = true;
    let mayLearn = true;
    try {
      for (let w = this.#queue[0]; w !== undefined; w = this.#queue[0]) {
        const missing = this.#try(w.stream, w.key, w.batch, mayLearn);
        if (missing === null) {
          this.#queue.shift();
          this.#queued -= bytesOf(w.batch);
          mayLearn = true;
        } else mayLearn = (await missing()) !== "futile";
      }
    } catch (e) {
      this.#p.fatal(asFailure(e));
    } finally {
      this.#draining = false;
    }
    this.#waitedFor = false;
    this.#awake();
  }

  /** Null: the batch is done. Else what has to be waited for before it is tried again. */
  #try(stream: number, key: StreamKey, batch: RawBatch, mayLearn: boolean): (() => Promise<unknown>) | null {
    const { topic } = batch.stream;
    this.#news = null;
    const keys: DecodedPart<DecodedGroup> = { groups: [], refused: [] };
    const values: DecodedPart<DecodedGroup> = { groups: [], refused: [] };
    const unread = this.#read(batch, "key", keys) ?? this.#read(batch, "value", values);
    // Sinks open sets for positions without rows, too.
    const missing = unread ?? (this.#fitted ? null : () => this.#fit(this.#fields, null));
    if (missing !== null) return missing;
    const news: News | null = this.#news;
    if (news !== null && mayLearn) return () => this.#learn(topic, news);
    const { groups, refused } = withKeys(batch, keys, values);
    const [bad] = refused;
    if (bad !== undefined && this.#p.failsOnError(topic)) throw undecodable(batch, bad);
    this.#p.give(stream, key, this.#derived(batch, groups, refused, keys.groups));
    if (refused.length > 0)
      this.#p.undecodable([...Map.groupBy(refused, (r) => r.code)].map(([c, all]) => [c, all.length]));
    return null;
  }

  #read(batch: RawBatch, part: Part, out: DecodedPart<DecodedGroup>): (() => Promise<void>) | null {
    const { topic } = batch.stream;
    const its = `${topic} ${part}`;
    const kept = this.#framings.get(its);
    const framing = kept === undefined ? this.#p.framing(topic, part) : kept;
    this.#framings.set(its, framing);
    if (framing === null) return null;
    const from = { column: batch[part], headers: batch.headers, rows: batch.rows };
    for (let first = 0; first < batch.rows; ) {
      const framed = this.#framed;
      const next = framing(from, first, framed);
      const known: Known[] = [];
      for (const { ref, message } of framed.schemas) {
        const name = `${its} ${refText(ref)} ${message ?? ""}`;
        const one = this.#known.get(name);
        if (one === undefined) return () => this.#load(name, topic, part, ref, message);
        known.push(one);
      }
      for (const { row, reason: message } of framed.faults)
        out.refused.push({ row: first + row, code: "decode.framing", path: "", message, schemaId: null });
      const refit = this.#grow(known, part);
      if (refit !== null) return refit;
      for (const [slot, one] of known.entries()) this.#decode(one, slot, framed, out.groups, out.refused);
      first = next;
    }
    return null;
  }

  #decode(
    known: Known,
    slot: number,
    framed: Framed,
    decoded: DecodedGroup[],
    refused: RefusedRecord[],
  ): void {
    const { schemaId, decoder, fault } = known;
    const { rows, payloads } = payloadsOf(framed, slot);
    const refuse = (i: number, f: Pick<DecodeFault, "code" | "path" | "reason">) => {
      const { code, path, reason: message } = f;
      refused.push({ row: framed.first + i, code, path, message, schemaId });
    };
    if (decoder === null) {
      if (fault !== null) for (const i of rows) refuse(i, fault);
      return;
    }
    const bad = new Set<number>();
    // Where a framing needs several passes the columns of the one before are still looked at.
    const again = decoded.some((g) => g.known === known);
    const columns = again ? decoder.fields.map((f) => builderOf(f.type)) : known.columns;
    for (const c of columns) c.reset();
    const count = decoder.decode(payloads, columns, (f) => {
      bad.add(f.row);
      refuse(rows[f.row]!, f);
      if (known.open !== null && f.code === "decode.unknown_field" && f.path === "")
        if (this.#news === null && !known.futile.has(f.reason))
          this.#news = { known, row: framed.first + rows[f.row]!, reason: f.reason };
    });
    if (count === 0) return;
    decoded.push({ known, rows: goodRows(rows, bad, framed.first), columns: columns.map((c) => c.finish()) });
  }

  /** The tables are asked again before the next rows: what one of them has was not known until now. */
  refit(): void {
    this.#fitted = false;
  }

  /**
   * Null: the table has all their columns. A schema that does not fit what the table has here is of no use in this batch,
   * one that the sinks refuse in none.
   */
  #grow(known: Known[], part: Part): (() => Promise<void>) | null {
    const other = part === "key" ? "value" : "key";
    for (const [i, one] of known.entries()) {
      if (one.decoder === null || this.#within.get(one) === this.#fields) continue;
      const { fields } = one.decoder;
      const both = fields.find((f) => this.#names[other].has(f.name));
      const next = evolve(this.#fields, fields, this.#o.can);
      if (both !== undefined) known[i] = unlike(one, [`${both.name} is a column of the ${other} already`]);
      else if (next.kind === "refused") known[i] = unlike(one, next.differences);
      else if (next.kind === "grown") return () => this.#fit(next.fields, one);
      else {
        this.#within.set(one, this.#fields);
        for (const f of fields) this.#names[part].add(f.name);
      }
    }
    return null;
  }

  /** `one`: the schema whose columns are new. */
  async #fit(wanted: readonly ColumnField[], one: Known | null): Promise<void> {
    const fit = await this.#p.fit(wanted, one !== null);
    if ("fields" in fit) this.#fields = fit.fields;
    else if (one !== null) this.#refuse(one, fit.differences);
    if ("fields" in fit || one === null) this.#fitted = true;
  }

  #refuse(one: Known, differences: readonly string[]): void {
    for (const [name, k] of this.#known) if (k === one) this.#known.set(name, unlike(one, differences));
  }

  #derived(
    batch: RawBatch,
    groups: readonly DecodedGroup[],
    refused: readonly RefusedRecord[],
    keys: readonly DecodedGroup[],
  ): DerivedBatch {
    const { pipeline, prefix } = this.#o;
    const now = this.#p.clock.now();
    const { span, rows, ingestTs, offsets } = batch;
    const rejects = rejectsOf(batch, refused, { prefix, pipeline, now });
    const tableRows = rowsOf(groups);
    const table = this.#table(batch, groups, keys, tableRows, now);
    return { span, rows, ingestTs, offsets, source: batch, table, tableRows, rejects, refused };
  }

  #table(
    batch: RawBatch,
    groups: readonly DecodedGroup[],
    keys: readonly DecodedGroup[],
    rows: Int32Array,
    now: number,
  ): TableBatch | null {
    const count = rows.length;
    if (count === 0) return null;
    const fields = [...this.#fields, ...rawOriginFields(this.#o.metadata, this.#o.prefix)];
    const schemas = groups.map((g) => ({ id: g.known.schemaId, rows: g.rows.length }));
    const stamps = { pipeline: this.#o.pipeline, now, schemas };
    const { key } = this.#names;
    const keyRows = key.size === 0 ? null : new KeyRows(keys, batch.rows);
    const columns = [
      ...this.#fields.map((f) =>
        keyRows !== null && key.has(f.name) ? keyRows.column(f, rows) : unionColumn(f, groups, count),
      ),
      ...rawOrigins(this.#o.metadata, batch, rows, stamps),
    ];
    return { fields, columns, rows: count };
  }

  /** Returns when the schema is known, or known to be of no use. */
  async #load(
    name: string,
    topic: string,
    part: Part,
    ref: SchemaRef,
    message: readonly number[] | null,
  ): Promise<void> {
    // Ids that nobody knows may be as many as there are.
    if (this.#known.size >= MOST_SCHEMAS) this.#known.clear();
    const schema = await this.#patiently(() => this.#p.schema(topic, ref, part, this.#taker(topic, 0)));
    if (schema instanceof Failure) {
      const fault = { code: "decode.schema", path: "", reason: schema.message } as const;
      const nothing = { decoder: null, columns: [], open: null, futile: new Set<string>() };
      this.#known.set(name, { schemaId: refText(ref), fault, ...nothing });
    } else if (schema !== null) this.#known.set(name, this.#compiled(topic, part, schema, message));
  }

  /** Returns when the schema has further fields, or will not have this one. */
  async #learn(topic: string, { known, row, reason }: News): Promise<"futile" | "known"> {
    const { open, futile } = known;
    if (open === null) return "futile";
    const schema = await this.#patiently(() => this.#p.learn(topic, open, this.#taker(topic, row)));
    if (schema !== null && !(schema instanceof Failure) && schema.id !== open.id) {
      for (const [name, one] of this.#known)
        if (one === known) this.#known.set(name, this.#compiled(topic, "value", schema, null));
      return "known";
    }
    if (futile.size >= MOST_FUTILE) futile.clear();
    futile.add(reason);
    return "futile";
  }

  /** What was asked for, or the final word against it; null: nobody waits for it any more. */
  async #patiently<T>(ask: () => Promise<T>): Promise<T | Failure | null> {
    const life = this.#life;
    for (;;) {
      try {
        const answer = await ask();
        this.#p.trouble(null);
        return answer;
      } catch (e) {
        const failure = asFailure(e);
        if (!failure.retry && failure.kind === "runtime") return failure;
        this.#p.trouble(failure);
        await new Promise<void>((resolve) => void this.#p.clock.after(RETRY_MS, resolve));
        if (life !== this.#life) return null;
      }
    }
  }

  /** Values of the topic that wait, from a row of the batch that is being tried on. */
  #taker(topic: string, row: number): TakeSample {
    const waiting = () => this.#queue.map((w) => w.batch).filter((b) => b.stream.topic === topic);
    return this.#sampling.taker(waiting, row, () => this.#queued > this.#o.holdBytes / 2);
  }

  #compiled(topic: string, part: Part, schema: SchemaText, message: readonly number[] | null): Known {
    const growing = { open: schema.inferred === "open" ? schema : null, futile: new Set<string>() };
    const schemaId = schema.id;
    try {
      const decoder = this.#p.compile(topic, schema, message, part);
      const columns = decoder.fields.map((f) => builderOf(f.type));
      return { schemaId, decoder, columns, fault: null, ...growing };
    } catch (e) {
      if (!(e instanceof DecodeError)) throw e;
      const fault = { code: e.code, path: e.path, reason: e.message };
      return { schemaId, decoder: null, columns: [], fault, ...growing };
    }
  }
}

interface DecodedGroup extends ColumnsOfSchema {
  readonly known: Known;
}
