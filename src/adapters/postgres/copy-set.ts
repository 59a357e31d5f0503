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
import type { RefusedOrigin, RowOrigins } from "../../core/ports/table-sink.ts";
import type { Span, StreamKey } from "../../core/records/stream.ts";
import { type ClientParts, type CopyIn, PgConnection } from "./client.ts";
import { CopyBlocks, trailerMessage } from "./copy/blocks.ts";
import { CopiedRows } from "./copy/copied-rows.ts";
import { SetOrigins } from "./copy/set-origins.ts";
import { SetRejects } from "./copy/set-rejects.ts";
import type { CopySetOptions } from "./copy-set-options.ts";
import type { PostgresSettings } from "./settings.ts";
import { type RefusedBy, refusedCode, siftRows } from "./sift.ts";
import { mayBeStale, onlyWidened, requireTypes, staleStaging, type TypedColumn } from "./stale-types.ts";
import { beginStatements, commitSet, type SetToCommit, settleCommit, UnknownCommit } from "./state/commit.ts";
import { rejectsKept } from "./state/rejects.ts";
import { type SinkKey, stateNames } from "./state/tables.ts";
import { quoted, quotedTable } from "./table/names.ts";
import { makeThere, mayBeThere, moveNew, type RowKey, rowsThere } from "./table/row-key.ts";
import { emptyStaging, intoStaging, mergeStatement, type Upsert } from "./table/upsert.ts";
import { rowRefusal } from "./wire/errors.ts";

/** Less than this waits for the seal: a transaction that stays open for a few records holds back the server's vacuum. */
const STREAM_BYTES = 1024 * 1024;

/** The moments of a transaction, in order; a test ends the process there. */
export type TransactionPoint = (typeof TRANSACTION_POINTS)[number];

export interface CopySetParts extends ClientParts {
  /** Unique to this lane of this process. */
  readonly writer: string;
  readonly hook?: (point: TransactionPoint) => void;
  /** Columns became wider since rows are encoded for them: new ones should be for what they are now. */
  readonly widened?: () => void;
}

interface SetParts extends CopySetParts {
  /** Line of a row that the server refused. */
  readonly refusedLine: (row: RefusedBy) => string;
}

/** What becomes of rows that the server refuses, where it is the job's limit that counts and not the sink's. */
export interface LeftOutRows {
  /** More are not looked for. `lines` throws then, at the latest. */
  readonly enough: number;
  readonly lines: (rows: readonly RefusedBy[]) => readonly string[];
}

export class CopySet {
  readonly #o: CopySetOptions;
  readonly #p: SetParts;
  readonly #key: SinkKey;
  /** Columns that the rows hold, in their order, quoted. */
  readonly #columns: string;
  readonly #names: readonly string[];
  /** Null: rows are added. */
  readonly #upsert: Upsert | null;
  #settings: PostgresSettings;
  readonly blocks: CopyBlocks = new CopyBlocks();
  readonly #byStream = new Map<StreamKey, { rows: number; bytes: number }>();
  readonly #origins = new SetOrigins();
  readonly #rejects = new SetRejects();
  /** The server refused a row of the open set: nothing is sent before it is known which. */
  #sifting = false;
  /** Some rows of the open set are in the table already, or may be since those of the set before it were. */
  #looking = false;
  /** How many were. */
  #there = 0;
  #leftOut: LeftOutRows | null = null;
  #id: string | null = null;
  #count = 0;
  #connection: PgConnection | null = null;
  #copy: CopyIn | null = null;
  /** Blocks that the open COPY has. */
  #sent = 0;
  /** Rows are for types that columns of the table had before. */
  #stale = false;
  readonly #types: readonly TypedColumn[];
  /** Its columns may become wider. */
  readonly #grows: boolean;
  /** The open set may have been committed already, and comes to this if it was. */
  #unknown: { readonly set: SetToCommit; readonly files: SetFiles } | null = null;

  constructor(
    options: CopySetOptions,
    parts: SetParts,
    columns: readonly TypedColumn[],
    upsert: Upsert | null,
    grows: boolean,
  ) {
    this.#o = options;
    this.#settings = options.settings;
    this.#p = parts;
    this.#key = { pipeline: options.pipeline, sink: options.sink };
    this.#names = columns.map((c) => c.name);
    this.#columns = this.#names.map(quoted).join(", ");
    this.#upsert = upsert;
    this.#types = columns;
    this.#grows = grows;
  }

  /** Connections that are opened from now on use these. */
  renew(settings: PostgresSettings): void {
    this.#settings = settings;
  }

  /** Bytes of memory for the open set, and its bytes in all. */
  get held(): number {
    return this.blocks.held + this.#rejects.bytes + this.#origins.bytes;
  }

  get size(): number {
    return this.blocks.length + this.#rejects.bytes;
  }

  get rows(): number {
    return this.#count;
  }

  open(id: string): void {
    if (this.#count > 0) throw new Failure("internal.bug", `set ${id} begins while ${this.#id} is open`);
    this.#id = id;
  }

  /** Rows that were appended to `blocks`. `stream` null: it is known at the seal. */
  added(stream: StreamKey | null, rows: number, bytes: number, origins?: RowOrigins): void {
    if (this.#id === null) throw new Failure("internal.bug", "rows before a set was opened");
    this.#count += rows;
    if (origins !== undefined) this.#origins.add(origins, rows);
    if (stream === null) return;
    const sizes = this.#byStream.get(stream) ?? { rows: 0, bytes: 0 };
    sizes.rows += rows;
    sizes.bytes += bytes;
    this.#byStream.set(stream, sizes);
  }

  /** A refused row, one line of text; it becomes durable with the set. */
  reject(line: string, of?: RefusedOrigin): void {
    this.#rejects.add(line, of ?? null);
  }

  /** Sends the blocks that are full. What the server does not take yet keeps the lane from reading on. */
  async flush(): Promise<void> {
    if (this.#sifting || (this.#copy === null && this.blocks.length < STREAM_BYTES)) return;
    try {
      await this.#orStartAnew(() => this.#send(this.blocks.full));
    } catch (e) {
      if (await this.#orStartAnew(() => this.#isStale(e))) return;
      if (this.#looksFrom(e)) return;
      if (!this.#isOfRow(e)) throw e;
      this.#sifting = true;
    }
  }

  async seal(
    spans: readonly Span[],
    authorities: readonly Authority[],
    leftOut?: LeftOutRows,
  ): Promise<SetFiles | SetRefusal> {
    if (this.#id === null) throw new Failure("internal.bug", "a seal without a set");
    const set: SetToCommit = {
      id: this.#id,
      writer: this.#p.writer,
      spans,
      authorities,
      rows: this.#count,
      bytes: this.blocks.length,
      byStream: this.#sizes(spans),
      indexed: this.#o.indexed === true,
    };
    this.#leftOut = leftOut ?? null;
    const ended = await this.#orStartAnew(() => this.#end(set));
    this.#clear();
    return ended;
  }

  async abort(): Promise<void> {
    this.#disconnect();
    this.#clear();
  }

  #clear(): void {
    this.blocks.reset();
    this.#byStream.clear();
    this.#rejects.clear();
    this.#origins.clear();
    this.#sifting = false;
    this.#looking = this.#there > 0;
    this.#there = 0;
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
    const { make, copy } = this.#statements();
    this.#copy = await connection.copyIn([this.#beginText(), ...make, copy].join(";"));
    this.#sent = 0;
    this.#p.hook?.("copy_begun");
    return this.#copy;
  }

  /** What makes the table that rows are copied into, what copies them, and what moves them on from there. */
  #statements() {
    const { table } = this.#o;
    const upsert = this.#upsert;
    const rowKey = this.#compares;
    const stale = this.#stale ? staleStaging(table, this.#types) : null;
    const staged = upsert !== null || rowKey !== null;
    const target = stale ?? (staged ? intoStaging(table, this.#columns) : null);
    const move =
      upsert !== null
        ? mergeStatement(table, this.#columns, upsert)
        : rowKey === null
          ? stale?.move
          : moveNew(table, this.#columns, rowKey);
    return {
      make: [...(target?.make ?? []), ...(rowKey === null ? [] : [makeThere(table, this.#columns)])],
      copy: `COPY ${target?.name ?? quotedTable(table)} (${this.#columns}) FROM STDIN (FORMAT binary)`,
      merge: move === undefined ? [] : [move, emptyStaging()],
    };
  }

  /** By what rows of the set are compared with those that are there; null: they are not. */
  get #compares(): RowKey | null {
    return this.#looking || this.#sifting ? this.#o.rowKey : null;
  }

  /** The server says that a row is there already, which may be one of ours: from now on the set is compared. */
  #looksFrom(e: unknown): boolean {
    if (this.#o.rowKey === null || this.#compares !== null || !mayBeThere(e)) return false;
    this.#looking = true;
    return true;
  }

  /** Columns became wider, and it was not known; from now on it is. Throws what else became of them, by name. */
  async #isStale(e: unknown): Promise<boolean> {
    if (this.#stale || !mayBeStale(e)) return false;
    const connection = await this.#connected();
    this.#stale = this.#grows && (await onlyWidened(connection, this.#o.table, this.#types));
    if (this.#stale) this.#p.widened?.();
    else await requireTypes(connection, this.#o.table, this.#types);
    return this.#stale;
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

  async #end(set: SetToCommit): Promise<SetFiles | SetRefusal> {
    if (this.#unknown !== null && (await this.#settled(this.#unknown.set))) return this.#unknown.files;
    this.#unknown = null;
    try {
      return this.#sifting ? await this.#sifted(set) : await this.#whole(set);
    } catch (e) {
      this.#disconnect();
      if ((await this.#isStale(e)) || this.#looksFrom(e)) return this.#end(set);
      if (this.#sifting || !this.#isOfRow(e)) throw e;
      this.#sifting = true;
      this.#disconnect();
      return this.#end(set);
    }
  }

  /** A row is at fault that can be left out, since it is known whose it is. */
  #isOfRow(e: unknown): boolean {
    return e instanceof Failure && rowRefusal(e) !== null && this.#origins.rows === this.#count;
  }

  async #whole(set: SetToCommit): Promise<SetFiles | SetRefusal> {
    if (set.rows > 0) await this.#copyAll(set.rows);
    else await (await this.#connected()).script(this.#beginText());
    return this.#commit(set, this.#rejects);
  }

  /** All rows but those that the server refuses. */
  async #sifted(set: SetToCommit): Promise<SetFiles | SetRefusal> {
    const connection = await this.#connected();
    const { make, copy, merge } = this.#statements();
    await connection.script([this.#beginText(), ...make].join(";"));
    await this.#requireTypes();
    this.#p.hook?.("copy_begun");
    const rows = new CopiedRows(this.blocks, this.#count);
    const most = this.#leftOut === null ? this.#o.maxRejects : Number.POSITIVE_INFINITY;
    const enough = this.#leftOut?.enough ?? Number.POSITIVE_INFINITY;
    const refused = await siftRows(connection, rows, { copy, merge, most, enough });
    const rejects = this.#refusedToo(
      refused.map(({ row, notice }) => ({ ...this.#origins.of(row), fields: rows.fields(row), notice })),
    );
    if (refused.length > enough)
      throw new Failure("internal.bug", "a set of which not all rows were looked at");
    const byStream = this.#origins.less(
      set.byStream,
      refused.map((r) => r.row),
    );
    return this.#commit({ ...set, rows: set.rows - refused.length, byStream }, rejects);
  }

  /** The rejects of the set with these. */
  #refusedToo(rows: readonly RefusedBy[]): SetRejects {
    const rejects = this.#rejects.copy();
    const lines = this.#leftOut?.lines(rows) ?? rows.map((row) => this.#p.refusedLine(row));
    for (const [i, { stream, offset, notice }] of rows.entries())
      rejects.add(lines[i]!, { code: refusedCode(notice), stream, offset });
    return rejects;
  }

  /** With the rows in the transaction: rejects, coverage, COMMIT. */
  async #commit(all: SetToCommit, rejects: SetRejects): Promise<SetFiles | SetRefusal> {
    await this.#requireTypes();
    this.#there = await this.#alreadyThere(all.rows);
    const failure = await this.#keep(all.id, rejects);
    const set = failure === null ? all : { ...all, spans: rejects.without(all.spans) };
    this.#p.hook?.("rows_copied");
    const { rows, bytes } = set;
    const there = this.#there === 0 ? {} : { there: this.#there };
    const files: SetFiles = { targets: [], covered: true, rows, bytes, ...rejects.told(failure), ...there };
    try {
      const names = stateNames(this.#o.stateSchema);
      const hook = (point: "before_commit") => this.#p.hook?.(point);
      const refused = await commitSet(this.#begunOn(), names, this.#key, set, hook);
      this.#p.hook?.("commit_answered");
      return refused ?? files;
    } catch (e) {
      if (e instanceof UnknownCommit) this.#unknown = { set, files };
      throw e;
    }
  }

  /** What stands in a table of the types that it was made for is made into others by the server. */
  async #requireTypes(): Promise<void> {
    if (this.#count > 0 && !this.#stale) await requireTypes(this.#begunOn(), this.#o.table, this.#types);
  }

  async #alreadyThere(rows: number): Promise<number> {
    const rowKey = this.#compares;
    if (rowKey === null || rows === 0) return 0;
    return rowsThere(this.#begunOn(), this.#o.table, this.#names, rowKey);
  }

  /** Null: the rejects are in the transaction. Else why not, and their positions may stay uncovered. */
  async #keep(setId: string, rejects: SetRejects): Promise<Failure | null> {
    if (rejects.lines.length === 0) return null;
    const { stateSchema, leavesHoles } = this.#o;
    const named = this.#o.rejects;
    const table = named === null ? stateNames(stateSchema).table("reject") : quotedTable(named);
    const mayFail = leavesHoles && rejects.placed;
    return rejectsKept(this.#begunOn(), table, this.#key, setId, rejects.lines, mayFail);
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
    const { merge } = this.#statements();
    if (merge.length > 0) await this.#begunOn().script(merge.join(";"));
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
