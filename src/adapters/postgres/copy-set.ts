/**
 * One set of rows on its way into a table: they go into one transaction by COPY while they come, and `seal` ends it with
 * receipt and coverage (state/commit.ts).
 *
 * The encoded rows of the open set are kept until it is committed. So a server that goes away, at any moment, costs a
 * new connection and the same bytes once more, and nothing has to be fetched again.
 */
import type { TRANSACTION_POINTS } from "../../core/delivery/crash-points.ts";
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { Authority } from "../../core/ports/coverage.ts";
import type { SetFiles, SetRefusal } from "../../core/ports/lane-parts.ts";
import type { Span, StreamKey } from "../../core/records/stream.ts";
import { type ClientParts, type CopyIn, PgConnection } from "./client.ts";
import { CopyBlocks, trailerMessage } from "./copy/blocks.ts";
import type { PostgresSettings } from "./settings.ts";
import { beginStatements, commitSet, type SetToCommit, settleCommit, UnknownCommit } from "./state/commit.ts";
import { insertRejects } from "./state/rejects.ts";
import { type SinkKey, stateNames } from "./state/tables.ts";
import { quoted, quotedTable, type TableName } from "./table/names.ts";
import { intoStaging, mergeStatement, type Upsert } from "./table/upsert.ts";

/** Less than this waits for the seal: a transaction that stays open for a few records holds back the server's vacuum. */
const STREAM_BYTES = 1024 * 1024;

/** The moments of a transaction, in order; a test ends the process there. */
export type TransactionPoint = (typeof TRANSACTION_POINTS)[number];

/** Plain data: it crosses to the lane's thread. */
export interface CopySetOptions {
  readonly settings: PostgresSettings;
  readonly table: TableName;
  readonly pipeline: string;
  readonly sink: string;
  readonly stateSchema: string;
  /** Table of refused rows; null: the one beside the coverage. */
  readonly rejects: TableName | null;
  readonly lockTimeoutMs: number;
  /** Longest that a set stays open: what a COPY may take beside the time for an answer. */
  readonly intervalMs: number;
}

export interface CopySetParts extends ClientParts {
  /** Unique to this lane of this process. */
  readonly writer: string;
  readonly hook?: (point: TransactionPoint) => void;
}

export class CopySet {
  readonly #o: CopySetOptions;
  readonly #p: CopySetParts;
  readonly #key: SinkKey;
  /** Columns that the rows hold, in their order, quoted. */
  readonly #columns: string;
  /** Null: rows are added. */
  readonly #upsert: Upsert | null;
  #settings: PostgresSettings;
  readonly blocks: CopyBlocks = new CopyBlocks();
  readonly #byStream = new Map<StreamKey, { rows: number; bytes: number }>();
  #rejects: string[] = [];
  #rejectBytes = 0;
  #id: string | null = null;
  #count = 0;
  #connection: PgConnection | null = null;
  #copy: CopyIn | null = null;
  /** Blocks that the open COPY has. */
  #sent = 0;
  /** The open set may have been committed already. */
  #unknown: SetToCommit | null = null;

  constructor(
    options: CopySetOptions,
    parts: CopySetParts,
    columns: readonly string[],
    upsert: Upsert | null,
  ) {
    this.#o = options;
    this.#settings = options.settings;
    this.#p = parts;
    this.#key = { pipeline: options.pipeline, sink: options.sink };
    this.#columns = columns.map(quoted).join(", ");
    this.#upsert = upsert;
  }

  /** Connections that are opened from now on use these. */
  renew(settings: PostgresSettings): void {
    this.#settings = settings;
  }

  /** Bytes of memory for the open set, and its bytes in all. */
  get held(): number {
    return this.blocks.held + this.#rejectBytes;
  }

  get size(): number {
    return this.blocks.length + this.#rejectBytes;
  }

  get rows(): number {
    return this.#count;
  }

  open(id: string): void {
    if (this.#count > 0) throw new Failure("internal.bug", `set ${id} begins while ${this.#id} is open`);
    this.#id = id;
  }

  /** Rows that were appended to `blocks`. `stream` null: it is known at the seal. */
  added(stream: StreamKey | null, rows: number, bytes: number): void {
    if (this.#id === null) throw new Failure("internal.bug", "rows before a set was opened");
    this.#count += rows;
    if (stream === null) return;
    const sizes = this.#byStream.get(stream) ?? { rows: 0, bytes: 0 };
    sizes.rows += rows;
    sizes.bytes += bytes;
    this.#byStream.set(stream, sizes);
  }

  /** A refused row, one line of text; it becomes durable with the set. */
  reject(line: string): void {
    this.#rejects.push(line);
    this.#rejectBytes += line.length;
  }

  /** Sends the blocks that are full. What the server does not take yet keeps the lane from reading on. */
  async flush(): Promise<void> {
    if (this.#copy === null && this.blocks.length < STREAM_BYTES) return;
    await this.#orStartAnew(() => this.#send(this.blocks.full));
  }

  async seal(spans: readonly Span[], authorities: readonly Authority[]): Promise<SetFiles | SetRefusal> {
    if (this.#id === null) throw new Failure("internal.bug", "a seal without a set");
    const set: SetToCommit = {
      id: this.#id,
      writer: this.#p.writer,
      spans,
      authorities,
      rows: this.#count,
      bytes: this.blocks.length,
      byStream: this.#sizes(spans),
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
    this.blocks.reset();
    this.#byStream.clear();
    this.#rejects = [];
    this.#rejectBytes = 0;
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
    this.#connection = await PgConnection.open(this.#settings, this.#p);
    return this.#connection;
  }

  async #begun(): Promise<CopyIn> {
    if (this.#copy !== null) return this.#copy;
    const connection = await this.#connected();
    const { table } = this.#o;
    const target = this.#upsert === null ? null : intoStaging(table, this.#columns);
    const into = target?.name ?? quotedTable(table);
    const copy = `COPY ${into} (${this.#columns}) FROM STDIN (FORMAT binary)`;
    this.#copy = await connection.copyIn([this.#beginText(), ...(target?.make ?? []), copy].join(";"));
    this.#sent = 0;
    this.#p.hook?.("copy_begun");
    return this.#copy;
  }

  /**
   * The connection that has the set's rows. Never another one: what is said there of a transaction that went with its
   * connection would cover rows that are nowhere.
   */
  #begunOn(): PgConnection {
    const connection = this.#connection;
    if (connection === null) throw new Failure("internal.bug", "the end of a set that was not begun");
    if (connection.failure !== null) throw connection.failure;
    return connection;
  }

  #beginText(): string {
    const { lockTimeoutMs, intervalMs } = this.#o;
    return beginStatements(lockTimeoutMs, intervalMs + 2 * this.#settings.answerTimeoutMs);
  }

  /** Sends blocks up to, not including, number `end`. */
  async #send(end: number): Promise<void> {
    const copy = await this.#begun();
    while (this.#sent < end) await copy.write(this.blocks.message(this.#sent++));
  }

  async #commit(set: SetToCommit): Promise<SetRefusal | null> {
    if (this.#unknown !== null && (await this.#settled(this.#unknown))) return null;
    this.#unknown = null;
    if (set.rows > 0) await this.#copyAll(set.rows);
    else await (await this.#connected()).script(this.#beginText());
    await this.#insertRejects(set.id);
    this.#p.hook?.("rows_copied");
    try {
      const names = stateNames(this.#o.stateSchema);
      const hook = (point: "before_commit") => this.#p.hook?.(point);
      const refused = await commitSet(this.#begunOn(), names, this.#key, set, hook);
      this.#p.hook?.("commit_answered");
      return refused;
    } catch (e) {
      if (e instanceof UnknownCommit) this.#unknown = set;
      throw e;
    }
  }

  async #copyAll(rows: number): Promise<void> {
    await this.#send(this.blocks.count);
    const copy = await this.#begun();
    await copy.write(trailerMessage());
    const taken = await copy.end();
    this.#copy = null;
    if (taken === rows) return this.#merge();
    throw new Failure("postgres.table_mismatch", `the server took ${taken} of ${rows} rows`, {
      at: `${this.#connection?.at ?? ""} ${quotedTable(this.#o.table)}`,
      hint: "A trigger or a rule of the table leaves rows out: the raw lane keeps every record",
    });
  }

  /** Rows of an upsert stand in a table of the transaction's own until here. */
  async #merge(): Promise<void> {
    if (this.#upsert === null) return;
    await this.#begunOn().script(mergeStatement(this.#o.table, this.#columns, this.#upsert));
  }

  async #insertRejects(setId: string): Promise<void> {
    if (this.#rejects.length === 0) return;
    const { rejects, stateSchema } = this.#o;
    const table = rejects === null ? stateNames(stateSchema).table("reject") : quotedTable(rejects);
    await insertRejects(this.#begunOn(), table, this.#key, setId, this.#rejects);
  }

  /** What was written without a stream stands with the first one. */
  #sizes(spans: readonly Span[]): SetToCommit["byStream"] {
    const first = spans[0];
    if (this.#byStream.size > 0 || first === undefined) return this.#byStream;
    return new Map([[first.stream, { rows: this.#count, bytes: this.blocks.length }]]);
  }

  async #settled(set: SetToCommit): Promise<boolean> {
    const connection = await this.#connected();
    const names = stateNames(this.#o.stateSchema);
    return settleCommit(connection, names, this.#key, set, this.#o.lockTimeoutMs);
  }
}
