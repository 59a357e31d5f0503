/**
 * The end of a sink's transaction: rows are in it already; here the right to write is proven and the positions become
 * covered, all in the same COMMIT.
 *
 *   1. lock the rows of the set's streams, and those of its windows (each in the order of their names, so that two of us
 *      never wait for each other)
 *   2. under the lock: is every generation still the one we claimed, every window still ours, and is nothing of the spans
 *      covered yet
 *   3. coverage, receipt, COMMIT
 *
 * COMMIT is sent only after the answer to 2. So whoever gets the lock later knows that this transaction has ended,
 * and its receipt tells how: that settles a COMMIT whose answer was lost.
 *
 * Commits that could meet exclude each other (decision 0041): under generations by the stream's row, under one lease by that
 * of its window. Others cover positions that are apart, so they go on side by side, and none changes a range that
 * another may be changing. Claims exclude all of them, grants those of live ingest.
 */
import { normalRanges, unionRanges } from "../../../core/coverage/ranges.ts";
import { parseWindow, type Window, windowInTheWay } from "../../../core/coverage/windows.ts";
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import type { Authority, Range } from "../../../core/ports/coverage.ts";
import type { SetRefusal } from "../../../core/ports/lane-parts.ts";
import type { Span, StreamKey } from "../../../core/records/stream.ts";
import type { PgConnection } from "../client.ts";
import type { Statement } from "../wire/frontend.ts";
import { passGate } from "./gate.ts";
import { rawIndexStatements } from "./raw-index.ts";
import { addRecovered } from "./receipts.ts";
import type { SinkKey, StateNames } from "./tables.ts";

export interface SetToCommit {
  readonly id: string;
  /** Whoever writes: one receipt is kept for each. */
  readonly writer: string;
  readonly spans: readonly Span[];
  readonly authorities: readonly Authority[];
  readonly rows: number;
  readonly bytes: number;
  /** Rows and bytes by stream. */
  readonly byStream: ReadonlyMap<StreamKey, { readonly rows: number; readonly bytes: number }>;
  /** Raw records, which recovery may read again: the raw index tells of them. */
  readonly indexed: boolean;
}

/**
 * Between two statements of ours lie milliseconds. A process that was stopped there, or whose network went, must not hold
 * the locks of its streams against a successor for longer.
 */
const IDLE_MS = 30_000;

/** How a transaction begins: what a role or a database has set otherwise does not reach into it. */
export function beginStatements(lockTimeoutMs: number, statementTimeoutMs: number): string {
  return [
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    // A commit that was told is on disk, whatever the default is.
    "SET LOCAL synchronous_commit = on",
    `SET LOCAL lock_timeout = ${Math.round(lockTimeoutMs)}`,
    `SET LOCAL statement_timeout = ${Math.round(statementTimeoutMs)}`,
    `SET LOCAL idle_in_transaction_session_timeout = ${IDLE_MS}`,
  ].join(";");
}

/** Thrown when the answer to a COMMIT did not come: the set may be durable or not. */
export class UnknownCommit extends Failure {}

interface Locked {
  readonly generations: ReadonlyMap<StreamKey, bigint>;
  readonly covered: ReadonlyMap<StreamKey, readonly Range[]>;
  /**
   * Windows of recovery by name. Those of the set are locked, so that nobody takes one away meanwhile, and on streams of the
   * set none comes.
   */
  readonly leases: ReadonlyMap<string, number>;
  readonly windows: readonly Window[];
}

/** All under leases: such a set leaves the rows of its streams as they are. */
const isLeased = (authorities: readonly Authority[]): boolean =>
  authorities.length > 0 && authorities.every((a) => a.kind === "lease");

const streamsOf = (spans: readonly Span[]): string =>
  JSON.stringify([...new Set(spans.map((s) => s.stream))]);

/** Locks the streams, then the windows of the set, and reads what touches the spans. Within a transaction. */
async function lockStreams(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  { spans, authorities }: Pick<SetToCommit, "spans" | "authorities">,
): Promise<Locked> {
  const own = authorities.flatMap((a) => (a.kind === "lease" ? [a.window] : []));
  const leased = isLeased(authorities);
  const locking = {
    sql: `SELECT FROM ${names.table("lease")} WHERE pipeline = $1 AND sink = $2
             AND name IN (SELECT jsonb_array_elements_text($3::jsonb)) ORDER BY name FOR UPDATE`,
    parameters: [key.pipeline, key.sink, JSON.stringify(own)],
  };
  const answers = await connection.pipeline([
    ...(leased ? [passGate(key)] : []),
    {
      // The two go together, and neither with FOR UPDATE, as claims take it.
      sql: `SELECT stream, generation::text FROM ${names.table("stream")}
             WHERE pipeline = $1 AND sink = $2 AND stream IN (SELECT jsonb_array_elements_text($3::jsonb))
             ORDER BY stream FOR ${leased ? "KEY SHARE" : "NO KEY UPDATE"}`,
      parameters: [key.pipeline, key.sink, streamsOf(spans)],
    },
    ...(own.length === 0 ? [] : [locking]),
    {
      // A statement of its own: it sees what was committed while the lock was waited for.
      sql: `SELECT DISTINCT c.stream, c.first::text, c.next::text FROM ${names.table("coverage")} c
              JOIN jsonb_to_recordset($3::jsonb) AS s(stream text, first bigint, next bigint)
                ON s.stream = c.stream AND c.first <= s.next AND c.next >= s.first
             WHERE c.pipeline = $1 AND c.sink = $2`,
      parameters: [key.pipeline, key.sink, rangesJson(spans.map((s) => [s.stream, s]))],
    },
    {
      // Whoever grants a window holds the streams' locks, too.
      sql: `SELECT name, lease::text FROM ${names.table("lease")}
             WHERE pipeline = $1 AND sink = $2 AND starts_with(name, 'recovery-')`,
      parameters: [key.pipeline, key.sink],
    },
  ]);
  const locked = answers[leased ? 1 : 0];
  const [touching, granted] = answers.slice(-2);
  const leases = new Map((granted?.rows ?? []).map(([name, lease]) => [name ?? "", Number(lease)]));
  const generations = new Map((locked?.rows ?? []).map(([stream, g]) => [stream ?? "", BigInt(g ?? -1)]));
  const covered = new Map<StreamKey, Range[]>();
  for (const [stream, first, next] of touching?.rows ?? []) {
    const ranges = covered.get(stream ?? "") ?? [];
    ranges.push({ from: BigInt(first ?? 0), next: BigInt(next ?? 0) });
    covered.set(stream ?? "", ranges);
  }
  const windows = [...leases.keys()].flatMap((name) => parseWindow(name) ?? []);
  return { generations, covered, leases, windows };
}

function rangesJson(ranges: readonly (readonly [StreamKey, Range])[]): string {
  // As text: JSON's numbers would be exact in the server, but not in everything that may print them.
  return JSON.stringify(
    ranges.map(([stream, r]) => ({ stream, first: String(r.from), next: String(r.next) })),
  );
}

/** Why the set may not be committed; null if it may. */
function refusal(set: SetToCommit, locked: Locked): SetRefusal | null {
  const authorities = byStreamOf(set.authorities);
  for (const span of set.spans) {
    const authority = authorities.get(span.stream);
    const fenced = fencing(authority, span, locked);
    if (fenced !== null) return { refused: "fenced", detail: fenced };
    const hit = locked.covered.get(span.stream)?.find((c) => c.from < span.next && span.from < c.next);
    if (hit !== undefined) {
      const detail = `${textOf(span)} is covered in part by [${hit.from}, ${hit.next})`;
      return { refused: "overlap", detail };
    }
    const other = windowInTheWay(locked.windows, span, holderOf(authority));
    if (other !== null) return { refused: "overlap", detail: `${textOf(span)} is leased by ${other.holder}` };
  }
  return null;
}

const textOf = (s: Span): string => `${s.stream} [${s.from}, ${s.next})`;

const byStreamOf = (authorities: readonly Authority[]): ReadonlyMap<StreamKey, Authority> =>
  new Map(authorities.map((a) => [a.stream ?? "", a]));

const windowOf = (a: Authority | undefined): Window | null =>
  a?.kind === "lease" ? parseWindow(a.window) : null;

const holderOf = (a: Authority | undefined): string | null => windowOf(a)?.holder ?? null;

/** Why the authority does not allow the span any more; null if it does. */
function fencing(a: Authority | undefined, span: Span, { generations, leases }: Locked): string | null {
  if (a?.kind === "lease") {
    const w = windowOf(a);
    if (leases.get(a.window) !== a.lease) return `lease ${a.lease} of ${a.window} is over`;
    const within = w?.stream === span.stream && w.from <= span.from && w.next !== null && span.next <= w.next;
    return within ? null : `${textOf(span)} is not within ${a.window}`;
  }
  const held = generations.get(span.stream);
  if (a !== undefined && held === BigInt(a.generation)) return null;
  const ours = a === undefined ? "no generation" : a.generation;
  return `${ours} of ${span.stream} was superseded by ${held ?? "none"}`;
}

/**
 * Ends the transaction that `connection` is in: null when it is durable, or why it was refused (then it is rolled
 * back). Throws UnknownCommit where the answer to COMMIT was lost; after any other Failure nothing was committed.
 */
export async function commitSet(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  set: SetToCommit,
  hook: (point: "before_commit") => void,
): Promise<SetRefusal | null> {
  // Outside of a transaction the positions would be covered by themselves, without the rows.
  if (!connection.inTransaction) {
    const why = { at: connection.at, retry: true };
    throw (
      connection.failure ?? new Failure("postgres.disconnected", "the transaction of the rows is gone", why)
    );
  }
  const locked = await lockStreams(connection, names, key, set);
  const refused = refusal(set, locked);
  if (refused !== null) {
    await connection.script("ROLLBACK");
    return refused;
  }
  hook("before_commit");
  const statements = commitStatements(names, key, set, locked);
  let tag: string;
  try {
    tag = (await connection.commit(statements)).at(-1)?.tag ?? "";
  } catch (e) {
    const failure = asFailure(e);
    // An error that leaves the session alive was answered: COMMIT was skipped or refused. A session that ended says
    // nothing, whatever its last words were: the server may have ended it after the commit was durable.
    if (connection.failure === null) throw failure;
    throw new UnknownCommit("postgres.disconnected", `no answer to COMMIT: ${failure.message}`, {
      at: connection.at,
      cause: failure,
      retry: true,
    });
  }
  if (tag !== "COMMIT") {
    throw new Failure("postgres.conflict", `the server answered COMMIT with ${tag}`, { at: connection.at });
  }
  return null;
}

/**
 * Whether no other commit may change this range now: under a lease one within its window, else one that no window
 * touches. What cannot be joined for that stays as a range beside ours, until the next grant or claim (joinTouching).
 */
function isOurs(authority: Authority | undefined, stream: StreamKey, range: Range, { windows }: Locked) {
  const own = windowOf(authority);
  if (own !== null) return own.from <= range.from && own.next !== null && range.next <= own.next;
  return windowInTheWay(windows, { stream, ...range }, null) === null;
}

function commitStatements(names: StateNames, key: SinkKey, set: SetToCommit, locked: Locked) {
  const of = [key.pipeline, key.sink] as const;
  const authorities = byStreamOf(set.authorities);
  const merged: [StreamKey, Range][] = [];
  const gone: [StreamKey, Range][] = [];
  for (const stream of new Set(set.spans.map((s) => s.stream))) {
    const ours = (range: Range) => isOurs(authorities.get(stream), stream, range, locked);
    const before = (locked.covered.get(stream) ?? []).filter(ours);
    const spans = normalRanges(set.spans.filter((s) => s.stream === stream));
    const after = unionRanges(normalRanges(before), spans);
    merged.push(...after.map((r) => [stream, r] as [StreamKey, Range]));
    const kept = new Set(after.map((r) => r.from));
    gone.push(...before.filter((r) => !kept.has(r.from)).map((r) => [stream, r] as [StreamKey, Range]));
  }
  const joined = `DELETE FROM ${names.table("coverage")} c USING jsonb_to_recordset($3::jsonb) AS g(stream text, first bigint)
     WHERE c.pipeline = $1 AND c.sink = $2 AND c.stream = g.stream AND c.first = g.first`;
  return [
    // Not to cancel the wait for a synchronous standby: the commit would be told as done without it.
    { sql: "SET LOCAL statement_timeout = 0", parameters: [] },
    ...(gone.length === 0 ? [] : [{ sql: joined, parameters: [...of, rangesJson(gone)] }]),
    {
      sql: `INSERT INTO ${names.table("coverage")} (pipeline, sink, stream, first, next)
            SELECT $1, $2, stream, first, next FROM jsonb_to_recordset($3::jsonb) AS m(stream text, first bigint, next bigint)
            ON CONFLICT (pipeline, sink, stream, first) DO UPDATE SET next = excluded.next`,
      parameters: [...of, rangesJson(merged)],
    },
    isLeased(set.authorities) ? addRecovered(names, key, set) : addLanded(names, key, set),
    ...(set.indexed ? rawIndexStatements(names, key, set) : []),
    {
      sql: `INSERT INTO ${names.table("receipt")} (pipeline, sink, writer, set_id, rows, bytes)
            VALUES ($1, $2, $3, $4, $5::bigint, $6::bigint)
            ON CONFLICT (pipeline, sink, writer) DO UPDATE
            SET set_id = excluded.set_id, rows = excluded.rows, bytes = excluded.bytes, committed_at = clock_timestamp()`,
      parameters: [...of, set.writer, set.id, String(set.rows), String(set.bytes)],
    },
    { sql: "COMMIT", parameters: [] },
  ];
}

function addLanded(names: StateNames, { pipeline, sink }: SinkKey, { byStream }: SetToCommit): Statement {
  const sizes = [...byStream].map(([stream, { rows, bytes }]) => ({ stream, rows, bytes }));
  return {
    sql: `UPDATE ${names.table("stream")} s SET rows = s.rows + n.rows, bytes = s.bytes + n.bytes
            FROM jsonb_to_recordset($3::jsonb) AS n(stream text, rows bigint, bytes bigint)
           WHERE s.pipeline = $1 AND s.sink = $2 AND s.stream = n.stream`,
    parameters: [pipeline, sink, JSON.stringify(sizes)],
  };
}

/**
 * Whether a set whose COMMIT was never answered is durable. Waits for the rows that its transaction had locked, so
 * that the answer is final. On a connection that is in no transaction.
 */
export async function settleCommit(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  set: SetToCommit,
  timeoutMs: number,
): Promise<boolean> {
  await connection.script(beginStatements(timeoutMs, timeoutMs));
  await lockStreams(connection, names, key, set);
  const { rows } = await connection.query(
    `SELECT set_id FROM ${names.table("receipt")} WHERE pipeline = $1 AND sink = $2 AND writer = $3`,
    key.pipeline,
    key.sink,
    set.writer,
  );
  await connection.script("ROLLBACK");
  return rows[0]?.[0] === set.id;
}
