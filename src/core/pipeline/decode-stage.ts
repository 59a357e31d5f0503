/**
 * Records to rows within a lane. A batch whose schemas are all known is decoded at once, on the turn of the raw sink's
 * write; one that names a new schema waits, as a copy, with what comes behind it, up to a bound: beyond it everything
 * that waits is a gap of the sinks behind. So a registry that is away costs the raw lane nothing.
 *
 * The table has the columns of all schemas that were met so far (schema/evolution.ts). Rows of a batch are grouped by
 * their schema, so schemas that alternate cost a group each and not a batch each.
 */
import { asFailure, Failure } from "../failure/failure.ts";
import type { Undecodable } from "../ports/lane.ts";
import type { RawBatch } from "../records/raw-batch.ts";
import type { StreamKey } from "../records/stream.ts";
import { evolve, type TargetAbilities } from "../schema/evolution.ts";
import type { SchemaText } from "../schema/resolver.ts";
import type { ColumnField, TableBatch } from "../types/table-batch.ts";
import { type DecodedPart, KeyRows, type Part, withKeys } from "./decode-keys.ts";
import { type DecodedGroup, DecodeReader, type News, type ReaderParts } from "./decode-reader.ts";
import { type DerivedBatch, type RefusedRecord, rejectsOf } from "./derived.ts";
import { distinctOf } from "./distinct-rows.ts";
import type { DuplicateJudge } from "./duplicates.ts";
import { bytesOf, compact } from "./kept-batch.ts";
import { type Known, undecodable, undecodables, unlike } from "./known-schema.ts";
import { KnownSchemas, type KnownSchemasParts } from "./known-schemas.ts";
import { type RawMetadata, rawOriginFields, rawOrigins } from "./raw-origins.ts";
import { Sampling, type TakeSample } from "./sampling.ts";
import { rowsOf, unionColumn } from "./union-column.ts";

export interface DecodeOptions {
  readonly pipeline: string;
  readonly prefix: string;
  readonly metadata: RawMetadata;
  /** Most bytes of batches that wait for schemas or tables. */
  readonly holdBytes: number;
  readonly can: TargetAbilities;
}

export interface DecodeParts extends KnownSchemasParts, Pick<ReaderParts, "framing"> {
  readonly failsOnError: (topic: string) => boolean;
  /**
   * The inferred schema with fields that it did not have; null: nothing comes of them; refused: these records are refused
   * by what is known, and teach nothing. Rejects as `schema` does.
   */
  readonly learn: (
    topic: string,
    now: SchemaText,
    take: TakeSample,
  ) => Promise<SchemaText | null | "refused">;
  /**
   * The sinks make their tables fit these columns, metadata aside. The answer's columns hold them, and what the tables
   * have besides. `judged`: a schema is new and may be refused; sinks that cannot say tell so themselves.
   */
  readonly fit: (fields: readonly ColumnField[], judged: boolean) => Promise<TableFit>;
  readonly give: (stream: number, key: StreamKey, batch: DerivedBatch) => void;
  /** The sinks let the batch go by. */
  readonly miss: (key: StreamKey, batch: Pick<RawBatch, "span">, failure: Failure | null) => void;
  /** Records of a batch that were refused, by code. */
  readonly undecodable: (refused: readonly Undecodable[]) => void;
  /** The lane cannot go on. */
  readonly fatal: (failure: Failure) => void;
  /** Which records have the natural key of an earlier one; null: no sink asks. */
  readonly duplicates: DuplicateJudge | null;
}

export type TableFit =
  | { readonly fields: readonly ColumnField[] }
  | { readonly differences: readonly string[] };

interface Waiting {
  readonly stream: number;
  readonly key: StreamKey;
  readonly batch: RawBatch;
}

const MOST_FUTILE = 1_000;
/** Longest that a stop waits for what is being looked up. */
const SETTLE_MS = 5_000;
/** Longest that a lane waits for it: schemas of files and of a registry in health are there by then. */
const RELIEF_MS = 1_000;

export class DecodeStage {
  readonly #o: DecodeOptions;
  readonly #p: DecodeParts;
  readonly #known: KnownSchemas;
  readonly #reader: DecodeReader;
  #fields: readonly ColumnField[] = [];
  /** Columns of the table, by the last schema that was found to need no more than those. */
  readonly #within = new WeakMap<Known, readonly ColumnField[]>();
  /** Columns of `#fields` that are the keys', and the others. */
  readonly #names = { key: new Set<string>(), value: new Set<string>() };
  #fitted = false;
  #queue: Waiting[] = [];
  #queued = 0;
  #draining = false;
  /** What waited was told to go on, and did not come to it yet. */
  #hurried = false;
  readonly #sampling: Sampling;
  /** Since the queue was empty. */
  #waitedFor = false;
  #idle: (() => void)[] = [];

  constructor(options: DecodeOptions, parts: DecodeParts) {
    this.#o = options;
    this.#p = parts;
    this.#known = new KnownSchemas(parts, (topic) => this.#taker(topic, null));
    this.#reader = new DecodeReader({
      schemas: this.#known,
      framing: parts.framing,
      waiting: () => this.#queue.map((w) => w.batch),
    });
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
    return this.#isFull && !this.#waitedFor;
  }

  /**
   * Resolves when there is room for more that waits, or once after a while: what is away does not hold a lane up. Raw that is
   * read again waits for windows of duplicates, which are had or fail: it would be through before, and again in the next round.
   */
  async relief(isReplay = false): Promise<void> {
    if (!this.crowded) return;
    this.#waitedFor = true;
    do await this.#drained(RELIEF_MS);
    while (isReplay && this.#isFull && this.#p.duplicates?.waitedFor === true);
  }

  get #isFull(): boolean {
    return this.#queued > this.#o.holdBytes / 2;
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
    this.#clear();
  }

  /** What waits of streams that are not ours any more is missed, and judged by whose they are now. Answers their keys. */
  forget(streams: ReadonlySet<number>): readonly StreamKey[] {
    const gone = this.#queue.filter((w) => streams.has(w.stream));
    this.#queue = this.#queue.filter((w) => !streams.has(w.stream));
    for (const w of gone) {
      this.#queued -= bytesOf(w.batch);
      this.#p.miss(w.key, w.batch, null);
    }
    return gone.map((w) => w.key);
  }

  #clear(): void {
    this.#queue = [];
    this.#hurried = false;
    this.#queued = 0;
    this.#known.reset();
    this.#sampling.giveUp();
    this.#awake();
  }

  #awake(): void {
    this.#sampling.hurry(false);
    for (const done of this.#idle.splice(0)) done();
  }

  #overflow(): void {
    // Only those that ask for duplicates go without what is waited for. What waits goes on once this turn is over.
    this.#hurried ||= this.#p.duplicates?.hurry() === true;
    if (this.#hurried) return;
    const text = `${this.#queued} bytes of records wait for a schema or a table`;
    const failure = new Failure("sink.behind", text, { retry: true });
    for (const w of this.#queue) this.#p.miss(w.key, w.batch, failure);
    this.#clear();
  }

  async #drain(): Promise<void> {
    this.#draining = true;
    let mayLearn = true;
    try {
      for (let w = this.#queue[0]; w !== undefined; w = this.#queue[0]) {
        const missing = this.#try(w.stream, w.key, w.batch, mayLearn);
        this.#hurried = false;
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
    const unready = this.#p.duplicates?.ready(batch) ?? null;
    if (unready !== null) return unready;
    this.#reader.news = null;
    const keys: DecodedPart<DecodedGroup> = { groups: [], refused: [] };
    const values: DecodedPart<DecodedGroup> = { groups: [], refused: [] };
    const grow = (known: Known[], part: Part) => this.#grow(known, part);
    const unread =
      this.#reader.read(batch, "key", keys, grow) ?? this.#reader.read(batch, "value", values, grow);
    // Sinks open sets for positions without rows, too.
    const missing = unread ?? (this.#fitted ? null : () => this.#fit(this.#fields, null));
    if (missing !== null) return missing;
    const news: News | null = this.#reader.news;
    if (news !== null && mayLearn) return () => this.#learn(topic, news);
    const { groups, refused } = withKeys(batch, keys, values);
    const [bad] = refused;
    if (bad !== undefined && this.#p.failsOnError(topic)) throw undecodable(batch, bad);
    this.#p.give(stream, key, this.#derived(batch, groups, refused, keys.groups));
    if (refused.length > 0) this.#p.undecodable(undecodables(batch, refused));
    return null;
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
    this.#known.replace(one, unlike(one, differences));
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
    const made = { span, rows, ingestTs, offsets, source: batch, table, tableRows, rejects, refused };
    const { duplicates } = this.#p;
    if (duplicates === null) return made;
    return { ...made, distinct: distinctOf(made, duplicates.judge(batch, groups, refused)) };
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

  /** Returns when the schema has further fields, or will not have this one. */
  async #learn(topic: string, { known, rows, reason }: News): Promise<"futile" | "known"> {
    const { open, futile } = known;
    if (open === null) return "futile";
    const take = this.#taker(
      topic,
      rows.toSorted((a, b) => a - b),
    );
    const schema = await this.#known.patiently(() => this.#p.learn(topic, open, take));
    // Others may have the same field and be taken.
    if (schema === "refused") return "futile";
    if (schema !== null && !(schema instanceof Failure) && schema.id !== open.id) {
      this.#known.relearned(known, topic, schema);
      return "known";
    }
    if (futile.size >= MOST_FUTILE) futile.clear();
    futile.add(reason);
    return "futile";
  }

  /** Values of the topic that wait; of the batch that is being tried those in `rows`, null: all. */
  #taker(topic: string, rows: readonly number[] | null): TakeSample {
    const waiting = () => this.#queue.map((w) => w.batch).filter((b) => b.stream.topic === topic);
    return this.#sampling.taker(waiting, rows, () => this.#isFull);
  }
}
