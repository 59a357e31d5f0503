/**
 * How many rows of each stretch of a stream were landed: the raw index of a table. Offsets have holes (compaction, transactions), so
 * only this tells whether rows of a covered range were deleted since. It is written in the transaction of the rows.
 *
 * Sets that follow one another share an entry until it holds enough bytes, so entries grow with what landed and not with commits.
 */
import { normalRanges, type Ranges, subtractRanges } from "../../../core/coverage/ranges.ts";
import type { Span, StreamKey } from "../../../core/records/stream.ts";
import type { PgConnection } from "../client.ts";
import type { Statement } from "../wire/frontend.ts";
import { coveredOf } from "./streams.ts";
import type { SinkKey, StateNames } from "./tables.ts";

/** Of an entry, as they were copied: it takes no further set then. */
const ENTRY_BYTES = 16 * 1024 * 1024;

export interface RawEntry {
  readonly stream: StreamKey;
  readonly from: bigint;
  readonly next: bigint;
  readonly rows: number;
  /** As they were copied. */
  readonly bytes: number;
  /** Wall time of its first set, ms. */
  readonly at: number;
}

export interface IndexedSet {
  readonly spans: readonly Span[];
  readonly byStream: ReadonlyMap<StreamKey, { readonly rows: number; readonly bytes: number }>;
}

/**
 * A set that has two spans of a stream does not say how its rows are shared among them: these stay without an entry.
 * Under the locks of the set's streams.
 */
export function rawIndexStatements(names: StateNames, key: SinkKey, set: IndexedSet): readonly Statement[] {
  const entries = [...Map.groupBy(set.spans, (s) => s.stream)].flatMap(([stream, spans]) => {
    const [range, other] = normalRanges(spans);
    if (range === undefined || other !== undefined) return [];
    const { rows, bytes } = set.byStream.get(stream) ?? { rows: 0, bytes: 0 };
    return [{ stream, first: String(range.from), next: String(range.next), rows, bytes }];
  });
  const table = names.table("raw_index");
  const added = {
    sql: `WITH n AS MATERIALIZED (
                SELECT j.*, (SELECT max(b.first) FROM ${table} b WHERE b.pipeline = $1 AND b.sink = $2
                                AND b.stream = j.stream AND b.first < j.first) AS last
                  FROM jsonb_to_recordset($3::jsonb) AS j(stream text, first bigint, next bigint, rows bigint, bytes bigint)),
               grown AS (
                UPDATE ${table} i SET next = n.next, rows = i.rows + n.rows, bytes = i.bytes + n.bytes FROM n
                 WHERE i.pipeline = $1 AND i.sink = $2 AND i.stream = n.stream AND i.first = n.last AND i.next = n.first
                   AND i.bytes < ${ENTRY_BYTES}
                RETURNING i.stream)
          INSERT INTO ${table} (pipeline, sink, stream, first, next, rows, bytes)
          SELECT $1, $2, stream, first, next, rows, bytes FROM n WHERE stream NOT IN (SELECT stream FROM grown)`,
    parameters: [key.pipeline, key.sink, JSON.stringify(entries)],
  };
  return [entriesEnd(names, key, set.spans), added];
}

/**
 * Nothing of the spans was covered, so whatever tells of them tells of coverage that somebody deleted: they land once more, in
 * other stretches. Entries do not overlap: of those that begin before a span only the last can reach into it.
 */
function entriesEnd(names: StateNames, { pipeline, sink }: SinkKey, spans: readonly Span[]): Statement {
  const table = names.table("raw_index");
  const landed = spans.map((s) => ({ stream: s.stream, first: String(s.from), next: String(s.next) }));
  return {
    sql: `DELETE FROM ${table} i USING jsonb_to_recordset($3::jsonb) AS n(stream text, first bigint, next bigint)
           WHERE i.pipeline = $1 AND i.sink = $2 AND i.stream = n.stream AND i.first < n.next AND i.next > n.first
             AND i.first >= coalesce((SELECT max(b.first) FROM ${table} b WHERE b.pipeline = $1 AND b.sink = $2
                                         AND b.stream = n.stream AND b.first <= n.first), n.first)`,
    parameters: [pipeline, sink, JSON.stringify(landed)],
  };
}

/** Entries that hold some of what is wanted, in the order in which they were begun. Empty where none was ever made. */
export async function readRawIndex(
  connection: PgConnection,
  names: StateNames,
  { pipeline, sink }: SinkKey,
  wanted: ReadonlyMap<StreamKey, Ranges>,
): Promise<readonly RawEntry[]> {
  const table = names.table("raw_index");
  const there = await connection.query("SELECT to_regclass($1)::text", table);
  if ((there.rows[0]?.[0] ?? null) === null) return [];
  const ranges = [...wanted].flatMap(([stream, of]) =>
    of.map((r) => ({ stream, first: String(r.from), next: String(r.next) })),
  );
  const { rows } = await connection.query(
    `SELECT i.stream, i.first::text, i.next::text, i.rows::text, i.bytes::text, (extract(epoch FROM i.at) * 1000)::bigint::text
       FROM ${table} i
      WHERE i.pipeline = $1 AND i.sink = $2 AND EXISTS (
            SELECT FROM jsonb_to_recordset($3::jsonb) AS w(stream text, first bigint, next bigint)
             WHERE w.stream = i.stream AND w.first < i.next AND i.first < w.next)
      ORDER BY i.at, i.stream, i.first`,
    pipeline,
    sink,
    JSON.stringify(ranges),
  );
  return rows.map(([stream, first, next, n, bytes, at]) => ({
    stream: stream ?? "",
    from: BigInt(first ?? 0),
    next: BigInt(next ?? 0),
    rows: Number(n),
    bytes: Number(bytes),
    at: Number(at),
  }));
}

export interface Landed {
  /** In all. */
  readonly rows: number;
  readonly bytes: number;
  /** Of them those that entries tell of. */
  readonly indexed: number;
}

/** What was landed of a stream, and what of that the index tells of. */
export async function readLanded(
  connection: PgConnection,
  names: StateNames,
  { pipeline, sink }: SinkKey,
  stream: StreamKey,
): Promise<Landed> {
  const there = await connection.query("SELECT to_regclass($1)::text", names.table("raw_index"));
  const indexed =
    (there.rows[0]?.[0] ?? null) === null
      ? "0"
      : `(SELECT coalesce(sum(i.rows), 0) FROM ${names.table("raw_index")} i
           WHERE i.pipeline = s.pipeline AND i.sink = s.sink AND i.stream = s.stream)`;
  const { rows } = await connection.query(
    `SELECT s.rows::text, s.bytes::text, (${indexed})::text FROM ${names.table("stream")} s
      WHERE s.pipeline = $1 AND s.sink = $2 AND s.stream = $3`,
    pipeline,
    sink,
    stream,
  );
  const [all = 0, bytes = 0, of = 0] = rows[0] ?? [];
  return { rows: Number(all), bytes: Number(bytes), indexed: Number(of) };
}

export interface Unindexed {
  /** Covered, and in no entry. */
  readonly ranges: Ranges;
  /** That landed of them. */
  readonly rows: number;
}

/** What no entry tells of. On a connection that is in no transaction. */
export async function readUnindexed(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  stream: StreamKey,
): Promise<Unindexed> {
  await connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  const covered = normalRanges(await coveredOf(connection, names, key, stream));
  const entries = await readRawIndex(connection, names, key, new Map([[stream, covered]]));
  const { rows, indexed } = await readLanded(connection, names, key, stream);
  await connection.script("COMMIT");
  return { ranges: subtractRanges(covered, normalRanges(entries)), rows: rows - indexed };
}
