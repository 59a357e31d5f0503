/**
 * The Postgres sink's end in a lane: rows go into one transaction by COPY while they come, and `seal` ends it with
 * receipt and coverage (state/commit.ts).
 *
 * The encoded rows of the open set are kept until it is committed. So a server that goes away, at any moment, costs a
 * new connection and the same bytes once more, and nothing has to be fetched again.
 */
import type { TRANSACTION_POINTS } from "../../core/delivery/crash-points.ts";
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { Authority } from "../../core/ports/coverage.ts";
import type { RawWriter, SetFiles, SetRefusal } from "../../core/ports/lane-parts.ts";
import type { RawBatch } from "../../core/records/raw-batch.ts";
import type { Span, StreamKey } from "../../core/records/stream.ts";
import { type ClientParts, type CopyIn, PgConnection } from "./client.ts";
import { CopyBlocks, trailerMessage } from "./copy/blocks.ts";
import { RawRows } from "./copy/raw-rows.ts";
import type { PostgresSettings } from "./settings.ts";
import { beginStatements, commitSet, type SetToCommit, settleCommit, UnknownCommit } from "./state/commit.ts";
import { type SinkKey, stateNames } from "./state/tables.ts";
import { quoted, quotedTable, type TableName } from "./table/names.ts";
import { COPIED_COLUMNS } from "./table/raw-columns.ts";

/** Less than this waits for the seal: a transaction that stays open for a few records holds back the server's vacuum. */
const STREAM_BYTES = 1024 * 1024;

/** The moments of a transaction, in order; a test ends the process there. */
export type TransactionPoint = (typeof TRANSACTION_POINTS)[number];

/** Plain data: it crosses to the lane's thread. */
export interface PostgresWriterOptions {
  readonly settings: PostgresSettings;
  readonly table: TableName;
  readonly prefix: string;
  readonly pipeline: string;
  readonly sink: string;
  readonly stateSchema: string;
  readonly lockTimeoutMs: number;
  /** A set that holds so much takes no further batch. */
  readonly commitBytes: number;
  /** Longest that a set stays open: what a COPY may take beside the time for an answer. */
  readonly intervalMs: number;
}

export interface PostgresWriterParts extends ClientParts {
  /** Unique to this lane of this process. */
  readonly writer: string;
  readonly hook?: (point: TransactionPoint) => void;
}

export class PostgresWriter implements RawWriter {
  readonly #o: PostgresWriterOptions;
  readonly #p: PostgresWriterParts;
  readonly #key: SinkKey;
  readonly #rows: RawRows;
  readonly #blocks = new CopyBlocks();
  readonly #byStream = new Map<StreamKey, { rows: number; bytes: number }>();
  #id: string | null = null;
  #count = 0;
  #connection: PgConnection | null = null;
  #copy: CopyIn | null = null;
  /** Blocks that the open COPY has. */
  #sent = 0;
  /** The open set may have been committed already. */
  #unknown: SetToCommit | null = null;

  constructor(options: PostgresWriterOptions, parts: PostgresWriterParts) {
    this.#o = options;
    this.#p = parts;
    this.#key = { pipeline: options.pipeline, sink: options.sink };
    this.#rows = new RawRows(options.pipeline);
  }

  get held(): number {
    return this.#blocks.held;
  }

  get largest(): number {
    return this.#blocks.length;
  }

  open(id: string): void {
    if (this.#count > 0) throw new Failure("internal.bug", `set ${id} begins while ${this.#id} is open`);
    this.#id = id;
  }

  write(batch: RawBatch): number {
    if (this.#id === null) throw new Failure("internal.bug", "rows before a set was opened");
    if (this.#count > 0 && this.#blocks.length >= this.#o.commitBytes) return 0;
    const before = this.#blocks.length;
    this.#rows.append(batch, this.#p.clock.now(), this.#blocks);
    this.#count += batch.rows;
    const sizes = this.#byStream.get(batch.span.stream) ?? { rows: 0, bytes: 0 };
    sizes.rows += batch.rows;
    sizes.bytes += this.#blocks.length - before;
    this.#byStream.set(batch.span.stream, sizes);
    return batch.rows;
  }

  /** Sends the blocks that are full. What the server does not take yet keeps the lane from reading on. */
  async flush(): Promise<void> {
    if (this.#copy === null && this.#blocks.length < STREAM_BYTES) return;
    await this.#orStartAnew(() => this.#send(this.#blocks.full));
  }

  async seal(spans: readonly Span[], authorities: readonly Authority[]): Promise<SetFiles | SetRefusal> {
    if (this.#id === null) throw new Failure("internal.bug", "a seal without a set");
    const set: SetToCommit = {
      id: this.#id,
      writer: this.#p.writer,
      spans,
      authorities,
      rows: this.#count,
      bytes: this.#blocks.length,
      byStream: this.#byStream,
    };
    const refused = await this.#orStartAnew(() => this.#commit(set));
    const { rows, bytes } = set;
    this.#clear();
    return refused ?? { targets: [], covered: true, rows, bytes };
  }

  async abort(): Promise<void> {
    this.#disconnect();
    this.#clear();
  }

  #clear(): void {
    this.#blocks.reset();
    this.#byStream.clear();
    this.#count = 0;
    this.#id = null;
    this.#copy = null;
    this.#sent = 0;
    this.#unknown = null;
  }

  #disconnect(): void {
    this.#connection?.close();
    this.#connection = null;
    this.#copy = null;
    this.#sent = 0;
  }

  /** After any failure the transaction begins again on a new connection, with everything that is kept. */
  async #orStartAnew<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (e) {
      this.#disconnect();
      throw asFailure(e);
    }
  }

  async #connected(): Promise<PgConnection> {
    if (this.#connection !== null && this.#connection.failure === null) return this.#connection;
    this.#disconnect();
    this.#connection = await PgConnection.open(this.#o.settings, this.#p);
    return this.#connection;
  }

  async #begun(): Promise<CopyIn> {
    if (this.#copy !== null) return this.#copy;
    const connection = await this.#connected();
    const prefix = (name: string) => quoted(this.#o.prefix + name);
    const columns = COPIED_COLUMNS.map(prefix).join(", ");
    const copy = `COPY ${quotedTable(this.#o.table)} (${columns}) FROM STDIN (FORMAT binary)`;
    this.#copy = await connection.copyIn(`${this.#beginText()};${copy}`);
    this.#sent = 0;
    this.#p.hook?.("copy_begun");
    return this.#copy;
  }

  #beginText(): string {
    const { lockTimeoutMs, intervalMs, settings } = this.#o;
    return beginStatements(lockTimeoutMs, intervalMs + 2 * settings.answerTimeoutMs);
  }

  /** Sends blocks up to, not including, number `end`. */
  async #send(end: number): Promise<void> {
    const copy = await this.#begun();
    while (this.#sent < end) await copy.write(this.#blocks.message(this.#sent++));
  }

  async #commit(set: SetToCommit): Promise<SetRefusal | null> {
    if (this.#unknown !== null && (await this.#settled(this.#unknown))) return null;
    this.#unknown = null;
    if (set.rows > 0) await this.#copyAll(set.rows);
    else await (await this.#connected()).script(this.#beginText());
    this.#p.hook?.("rows_copied");
    try {
      const names = stateNames(this.#o.stateSchema);
      const hook = (point: "before_commit") => this.#p.hook?.(point);
      const refused = await commitSet(await this.#connected(), names, this.#key, set, hook);
      this.#p.hook?.("commit_answered");
      return refused;
    } catch (e) {
      if (e instanceof UnknownCommit) this.#unknown = set;
      throw e;
    }
  }

  async #copyAll(rows: number): Promise<void> {
    await this.#send(this.#blocks.count);
    const copy = await this.#begun();
    await copy.write(trailerMessage());
    const taken = await copy.end();
    this.#copy = null;
    if (taken === rows) return;
    throw new Failure("postgres.table_mismatch", `the server took ${taken} of ${rows} rows`, {
      at: `${this.#connection?.at ?? ""} ${quotedTable(this.#o.table)}`,
      hint: "A trigger or a rule of the table leaves rows out: the raw lane keeps every record",
    });
  }

  async #settled(set: SetToCommit): Promise<boolean> {
    const connection = await this.#connected();
    const names = stateNames(this.#o.stateSchema);
    return settleCommit(connection, names, this.#key, set, this.#o.lockTimeoutMs);
  }
}
