/**
 * Rows of a raw table, read again page by page: each page is a stretch of positions of one stream, as many as fit into so many bytes.
 * A page is read in a transaction of its own, so that no snapshot stays open that vacuum would have to wait for.
 *
 * Rows are found by an index that leads to them in order (topic, partition, offset). Whose a row is, its id says: of all records of a
 * stream the first half is the same, and another topic of the same name has another one.
 */
import { Failure } from "../../../core/failure/failure.ts";
import type { Range } from "../../../core/ports/coverage.ts";
import { recordIdBase } from "../../../core/records/record-id.ts";
import type { StreamId } from "../../../core/records/stream.ts";
import { type ClientParts, PgConnection } from "../client.ts";
import type { Result } from "../session/session.ts";
import type { PostgresSettings } from "../settings.ts";
import { literal, quoted, quotedTable, shownTable, type TableName } from "../table/names.ts";
import { PAGE_COLUMNS } from "./page-rows.ts";

export interface RawPagesOptions {
  readonly settings: PostgresSettings;
  readonly table: TableName;
  /** Of the column names. */
  readonly prefix: string;
  /** Null: each record is there once, whoever wrote it. */
  readonly pipeline: string | null;
}

export interface RawPage {
  readonly first: bigint;
  readonly last: bigint;
  readonly rows: number;
  /** Most of its rows as COPY gives them. */
  readonly bytes: number;
}

/** Rows that are looked at for a page: small ones stay below its bytes. */
const PAGE_ROWS = 20_000;
/** Rows that are counted in one statement. */
const COUNTED_ROWS = 100_000;
/** Number of fields, their sizes, and the fields that have a fixed one; text of a timestamp type. */
const ROW_BYTES = 2 + 4 * PAGE_COLUMNS.length + 5 * 8 + 16 + 3 * 4 + 1 + 16;
const ARRAY_HEAD_BYTES = 28;
/** Head and end of a COPY. */
const FRAME_BYTES = 64;

export interface CountedRows extends Range {
  readonly rows: number;
}

export class RawPages {
  readonly #o: RawPagesOptions;
  readonly #p: ClientParts;
  #connection: PgConnection | null = null;

  constructor(options: RawPagesOptions, parts: ClientParts) {
    this.#o = options;
    this.#p = parts;
  }

  /** Throws recovery.no_index where rows of a stream can only be found by reading the whole table, or by sorting. */
  async checkIndex(stream: StreamId): Promise<void> {
    const offset = this.#column("source_offset");
    const page = `SELECT ${offset} FROM ${this.#table} WHERE ${this.#where(stream, { from: 0n, next: 1n })} ORDER BY ${offset} LIMIT 1`;
    const { rows } = await this.#read(`EXPLAIN (COSTS OFF) ${page}`);
    if (!rows.some(([line]) => /\b(Seq Scan|Sort|Bitmap Heap Scan)\b/.test(line ?? ""))) return;
    const name = shownTable(this.#o.table);
    const columns = ["source_topic", "source_partition", "source_offset"].map((c) => this.#column(c));
    throw new Failure(
      "recovery.no_index",
      `${name} has no index that leads to the rows of a partition in order`,
      {
        at: `${this.#connection?.at ?? ""} ${name}`,
        hint: `Run: CREATE INDEX CONCURRENTLY ON ${this.#table} (${columns.join(", ")})`,
      },
    );
  }

  /** The rows from there on that fit into so many bytes, or the first one; null: there is none. */
  async page(stream: StreamId, range: Range, maxBytes: number): Promise<RawPage | null> {
    const [offset, key, value, headers] = ["offset", "key", "value", "headers"].map((c) =>
      this.#column(`source_${c}`),
    );
    const inHeaders = `CASE WHEN coalesce(cardinality(${headers}), 0) = 0 THEN 0
       ELSE 4 * cardinality(${headers}) + (SELECT coalesce(sum(octet_length(h)), 0) FROM unnest(${headers}) AS h) END`;
    const bytes = `${ROW_BYTES + ARRAY_HEAD_BYTES}::bigint + coalesce(octet_length(${key}), 0) + coalesce(octet_length(${value}), 0) + ${inHeaders}`;
    const { rows } = await this.#read(
      `SELECT min(o)::text, max(o)::text, count(*)::text, sum(n)::text
         FROM (SELECT o, n, sum(n) OVER (ORDER BY o ROWS UNBOUNDED PRECEDING) AS upto
                 FROM (SELECT ${offset} AS o, ${bytes} AS n FROM ${this.#table}
                        WHERE ${this.#where(stream, range)} ORDER BY ${offset} LIMIT ${PAGE_ROWS}) AS found) AS summed
        WHERE upto <= ${maxBytes} OR upto = n`,
    );
    const [first = null, last = null, count, size] = rows[0] ?? [];
    if (first === null || last === null) return null;
    return {
      ...{ first: BigInt(first), last: BigInt(last) },
      ...{ rows: Number(count), bytes: Number(size) + FRAME_BYTES },
    };
  }

  /** The page into `body`; how many bytes it has. Throws recovery.raw_missing where it has other rows by now. */
  async copy(stream: StreamId, page: RawPage, body: Uint8Array): Promise<number> {
    const offset = this.#column("source_offset");
    const columns = PAGE_COLUMNS.map((c) => this.#column(c)).join(", ");
    const where = this.#where(stream, { from: page.first, next: page.last + 1n });
    const rows = `SELECT ${columns} FROM ${this.#table} WHERE ${where} ORDER BY ${offset}`;
    const changed = () =>
      new Failure("recovery.raw_missing", "rows of the raw table were changed while they were read", {
        at: `${shownTable(this.#o.table)} ${stream.topic}/${stream.partition} [${page.first}, ${page.last}]`,
      });
    return await this.#orLetGo(async (c) => {
      let at = 0;
      const copied = await c.copyOut(
        `${this.#begin()};COPY (${rows}) TO STDOUT (FORMAT binary);COMMIT`,
        page.bytes,
        (piece) => {
          if (at + piece.length > page.bytes) throw changed();
          body.set(piece, at);
          at += piece.length;
        },
      );
      if (copied !== page.rows) throw changed();
      return at;
    });
  }

  /** How many rows there are of these ranges, in parts that are counted in one statement each. */
  async count(stream: StreamId, ranges: readonly Range[]): Promise<readonly CountedRows[]> {
    const offset = this.#column("source_offset");
    const all: CountedRows[] = [];
    for (const { from: start, next } of ranges)
      for (let from = start; from < next; ) {
        const { rows } = await this.#read(
          `SELECT max(o)::text, count(*)::text FROM (SELECT ${offset} AS o FROM ${this.#table}
            WHERE ${this.#where(stream, { from, next })} ORDER BY ${offset} LIMIT ${COUNTED_ROWS}) AS found`,
        );
        const [last = null, count] = rows[0] ?? [];
        const isAll = last === null || Number(count) < COUNTED_ROWS;
        const end = isAll ? next : BigInt(last) + 1n;
        all.push({ from, next: end, rows: Number(count ?? 0) });
        from = end;
      }
    return all;
  }

  close(): void {
    this.#connection?.close();
    this.#connection = null;
  }

  get #table(): string {
    return quotedTable(this.#o.table);
  }

  #column(name: string): string {
    return quoted(this.#o.prefix + name);
  }

  #where(stream: StreamId, { from, next }: Range): string {
    const is = (name: string, value: string | number) => `${this.#column(name)} = ${value}`;
    const id = this.#column("record_id");
    const [least, most] = idsOf(stream);
    return [
      is("source_topic", literal(stream.topic)),
      is("source_partition", stream.partition),
      `${this.#column("source_offset")} >= ${from} AND ${this.#column("source_offset")} < ${next}`,
      `${id} >= ${literal(least)} AND ${id} <= ${literal(most)}`,
      ...(this.#o.pipeline === null ? [] : [is("pipeline", literal(this.#o.pipeline))]),
    ].join(" AND ");
  }

  /** Of a transaction that only reads, and never the whole table. */
  #begin(): string {
    const ms = Math.round(this.#o.settings.answerTimeoutMs);
    return [
      "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
      `SET LOCAL statement_timeout = ${ms}`,
      `SET LOCAL lock_timeout = ${ms}`,
      `SET LOCAL idle_in_transaction_session_timeout = ${ms}`,
      ...["enable_seqscan", "enable_bitmapscan", "enable_sort", "jit"].map((o) => `SET LOCAL ${o} = off`),
      "SET LOCAL max_parallel_workers_per_gather = 0",
    ].join(";");
  }

  #read(select: string): Promise<Result> {
    return this.#orLetGo(async (c) => {
      const result = (await c.script(`${this.#begin()};${select};COMMIT`)).at(-2);
      if (result === undefined) throw new Failure("internal.bug", "a statement without a result");
      return result;
    });
  }

  /** After any failure the connection is another one. */
  async #orLetGo<T>(work: (c: PgConnection) => Promise<T>): Promise<T> {
    // Between two pages it may have been idle for as long as a lane had no room: poolers end such connections.
    if (this.#connection !== null && this.#connection.failure !== null) this.close();
    try {
      this.#connection ??= await PgConnection.open(this.#o.settings, this.#p);
      return await work(this.#connection);
    } catch (e) {
      this.close();
      throw e;
    }
  }
}

/** The first and the last id that a record of the stream can have. */
function idsOf(stream: StreamId): readonly [string, string] {
  const id = new Uint8Array(recordIdBase(stream).slice().buffer);
  const view = new DataView(id.buffer);
  view.setInt32(4, view.getInt32(4) ^ stream.partition);
  const hex = [...id.subarray(0, 8)].map((b) => b.toString(16).padStart(2, "0")).join("");
  const text = (tail: string) =>
    (hex + tail.repeat(16)).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  return [text("0"), text("f")];
}
