/** What coverage knows of the streams of one sink: reading it, and the changes that a claim and its like make. */
import { normalRanges } from "../../../core/coverage/ranges.ts";
import type { CoverageState, StreamState } from "../../../core/coverage/state.ts";
import { EMPTY_STATE } from "../../../core/coverage/state.ts";
import { parseWindow } from "../../../core/coverage/windows.ts";
import { Failure } from "../../../core/failure/failure.ts";
import type {
  Authority,
  Claim,
  LostRange,
  Origin,
  Range,
  TopicMemory,
} from "../../../core/ports/coverage.ts";
import type { StreamKey } from "../../../core/records/stream.ts";
import type { PgConnection } from "../client.ts";
import { closeGate } from "./gate.ts";
import { readOwners } from "./owners.ts";
import { readRecovered } from "./receipts.ts";
import { FORMAT, type SinkKey, type StateNames } from "./tables.ts";

type Lost = Omit<LostRange, "stream">;

interface Known {
  readonly covered: ReadonlyMap<StreamKey, readonly Range[]>;
  readonly lost: ReadonlyMap<StreamKey, readonly Lost[]>;
}

/** `streams` null: all of the sink. */
export async function rangesOf(
  connection: PgConnection,
  names: StateNames,
  { pipeline, sink }: SinkKey,
  streams: readonly StreamKey[] | null,
): Promise<Known> {
  // By the table's own columns: `first` alone would be the answer's, which is text and has 1265 before 722.
  const parameters = [pipeline, sink, streams === null ? null : JSON.stringify(streams)];
  const among = "($3::jsonb IS NULL OR stream IN (SELECT jsonb_array_elements_text($3::jsonb)))";
  const [covered, lost] = await connection.pipeline([
    {
      sql: `SELECT stream, first::text, next::text FROM ${names.table("coverage")} AS t
             WHERE pipeline = $1 AND sink = $2 AND ${among} ORDER BY t.stream, t.first`,
      parameters,
    },
    {
      sql: `SELECT stream, first::text, next::text, reason FROM ${names.table("lost")} AS t
             WHERE pipeline = $1 AND sink = $2 AND ${among} ORDER BY t.stream, t.first`,
      parameters,
    },
  ]);
  const coveredBy = new Map<StreamKey, Range[]>();
  for (const [stream, first, next] of covered?.rows ?? []) {
    push(coveredBy, stream ?? "", { from: BigInt(first ?? 0), next: BigInt(next ?? 0) });
  }
  const lostBy = new Map<StreamKey, Lost[]>();
  for (const [stream, first, next, reason] of lost?.rows ?? []) {
    const range = { from: BigInt(first ?? 0), next: BigInt(next ?? 0) };
    push(lostBy, stream ?? "", { ...range, reason: (reason ?? "truncated") as LostRange["reason"] });
  }
  // Rows may touch.
  const sorted = new Map([...coveredBy].map(([stream, all]) => [stream, normalRanges(all)] as const));
  return { covered: sorted, lost: lostBy };
}

/**
 * Ranges that touch become one: commits under leases leave what lies beside their window as it is. Within a transaction that
 * has locked the streams' rows against live ingest. `leases`: names of leases, whose windows' ranges are left as they are, as
 * commits may be under way there.
 */
export async function joinTouching(
  connection: PgConnection,
  names: StateNames,
  { pipeline, sink }: SinkKey,
  streams: readonly StreamKey[],
  leases: readonly string[] = [],
): Promise<void> {
  const coverage = names.table("coverage");
  const windows = leases.flatMap((name) => {
    const { stream, from, next = null } = parseWindow(name) ?? {};
    return next === null ? [] : [{ stream, first: String(from), next: String(next) }];
  });
  await connection.query(
    `WITH placed AS (
       SELECT stream, first, next, coalesce(first > max(next) OVER (PARTITION BY stream ORDER BY first
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), true) AS leads
         FROM ${coverage} r WHERE pipeline = $1 AND sink = $2 AND stream IN (SELECT jsonb_array_elements_text($3::jsonb))
          AND NOT EXISTS (SELECT FROM jsonb_to_recordset($4::jsonb) AS w(stream text, first bigint, next bigint)
                           WHERE w.stream = r.stream AND w.first < r.next AND r.first < w.next)),
     numbered AS (
       SELECT stream, first, next, leads, count(*) FILTER (WHERE leads) OVER (PARTITION BY stream ORDER BY first) AS run
         FROM placed),
     joined AS (
       SELECT stream, run, min(first) AS first, max(next) AS next FROM numbered GROUP BY stream, run HAVING count(*) > 1),
     gone AS (
       DELETE FROM ${coverage} c USING numbered n WHERE c.pipeline = $1 AND c.sink = $2
          AND c.stream = n.stream AND c.first = n.first AND NOT n.leads)
     UPDATE ${coverage} c SET next = j.next FROM joined j
      WHERE c.pipeline = $1 AND c.sink = $2 AND c.stream = j.stream AND c.first = j.first AND c.next < j.next`,
    pipeline,
    sink,
    JSON.stringify(streams),
    JSON.stringify(windows),
  );
}

function push<T>(map: Map<StreamKey, T[]>, key: StreamKey, value: T): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

/** Raises the generation of each stream and reads what is covered then. Within a transaction of the sink's owner. */
export async function claimStreams(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  instance: string,
  streams: readonly StreamKey[],
  groupEpoch: number | null,
): Promise<readonly Claim[]> {
  const of = [key.pipeline, key.sink, JSON.stringify([...new Set(streams)])];
  const listed = "(SELECT jsonb_array_elements_text($3::jsonb))";
  const [, , locked] = await connection.pipeline([
    closeGate(key),
    {
      sql: `INSERT INTO ${names.table("stream")} (pipeline, sink, stream, generation)
            SELECT $1, $2, s, 0 FROM jsonb_array_elements_text($3::jsonb) s ORDER BY s ON CONFLICT DO NOTHING`,
      parameters: of,
    },
    {
      // Waits for a commit that is under way; whatever it covers is read below.
      sql: `SELECT stream, group_epoch::text FROM ${names.table("stream")}
             WHERE pipeline = $1 AND sink = $2 AND stream IN ${listed} ORDER BY stream FOR UPDATE`,
      parameters: of,
    },
  ]);
  for (const [stream, stored] of locked?.rows ?? []) checkEpoch(stream ?? "", groupEpoch, stored ?? null);
  const raised = await connection.query(
    `UPDATE ${names.table("stream")} SET generation = generation + 1, owner = $4, group_epoch = coalesce($5::bigint, group_epoch)
      WHERE pipeline = $1 AND sink = $2 AND stream IN ${listed}
      RETURNING stream, generation::text, origin::text, stale_commit::text`,
    ...of,
    instance,
    groupEpoch === null ? null : String(groupEpoch),
  );
  await joinTouching(connection, names, key, streams);
  const byStream = new Map(raised.rows.map((r) => [r[0] ?? "", r]));
  const known = await rangesOf(connection, names, key, streams);
  return streams.map((stream): Claim => {
    const [, generation = null, origin = null, staleCommit = null] = byStream.get(stream) ?? [];
    const authority: Authority = { kind: "generation", stream, generation: Number(generation) };
    return {
      stream,
      authority,
      covered: known.covered.get(stream) ?? [],
      lost: normalRanges(known.lost.get(stream) ?? []),
      origin: origin === null ? null : BigInt(origin),
      staleCommit: staleCommit === null ? null : BigInt(staleCommit),
    };
  });
}

function checkEpoch(stream: StreamKey, epoch: number | null, stored: string | null): void {
  if (epoch === null || stored === null || epoch >= Number(stored)) return;
  throw new Failure(
    "coverage.epoch_behind",
    `claim with group epoch ${epoch}, the stream was claimed with ${stored}`,
    {
      at: stream,
      hint: "Another member of the group owns it by now; claim again after a heartbeat confirmed the membership",
    },
  );
}

export async function coveredOf(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  stream: StreamKey,
): Promise<readonly Range[]> {
  return (await rangesOf(connection, names, key, [stream])).covered.get(stream) ?? [];
}

/** Unions the ranges with those of the same reason that are there. Within a transaction that has the sink's lock. */
export async function addLost(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  added: readonly LostRange[],
): Promise<void> {
  const streams = [...new Set(added.map((r) => r.stream))];
  const { lost } = await rangesOf(connection, names, key, streams);
  for (const stream of streams) {
    const all = [...(lost.get(stream) ?? []), ...added.filter((r) => r.stream === stream)];
    const reasons = [...new Set(all.map((r) => r.reason))];
    const rows = reasons.flatMap((reason) =>
      normalRanges(all.filter((r) => r.reason === reason)).map((r) => ({
        first: String(r.from),
        next: String(r.next),
        reason,
      })),
    );
    await connection.pipeline([
      {
        sql: `DELETE FROM ${names.table("lost")} WHERE pipeline = $1 AND sink = $2 AND stream = $3`,
        parameters: [key.pipeline, key.sink, stream],
      },
      {
        sql: `INSERT INTO ${names.table("lost")} (pipeline, sink, stream, first, next, reason)
              SELECT $1, $2, $3, first, next, reason
                FROM jsonb_to_recordset($4::jsonb) AS r(first bigint, next bigint, reason text)`,
        parameters: [key.pipeline, key.sink, stream, JSON.stringify(rows)],
      },
    ]);
  }
}

/** Where streams began that nobody has begun before; the first origin stays. */
export async function addOrigins(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  origins: readonly Origin[],
): Promise<void> {
  const rows = origins.map(({ stream, position, staleCommit }) => ({
    stream,
    origin: String(position),
    stale_commit: staleCommit === null ? null : String(staleCommit),
  }));
  await connection.query(
    `INSERT INTO ${names.table("stream")} AS s (pipeline, sink, stream, generation, origin, stale_commit)
     SELECT $1, $2, stream, 0, origin, stale_commit
       FROM jsonb_to_recordset($3::jsonb) AS o(stream text, origin bigint, stale_commit bigint) ORDER BY stream
     ON CONFLICT (pipeline, sink, stream) DO UPDATE SET origin = excluded.origin, stale_commit = excluded.stale_commit
      WHERE s.origin IS NULL`,
    key.pipeline,
    key.sink,
    JSON.stringify(rows),
  );
}

export async function readTopic(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  name: string,
): Promise<TopicMemory | null> {
  const { rows } = await connection.query(
    `SELECT topic_id, incarnation::text FROM ${names.table("topic")} WHERE pipeline = $1 AND sink = $2 AND name = $3`,
    key.pipeline,
    key.sink,
    name,
  );
  const row = rows[0];
  return row === undefined ? null : { topicId: row[0] ?? "", incarnation: Number(row[1]) };
}

export async function writeTopic(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  name: string,
  memory: TopicMemory,
): Promise<TopicMemory> {
  await connection.query(
    `INSERT INTO ${names.table("topic")} AS t (pipeline, sink, name, topic_id, incarnation) VALUES ($1, $2, $3, $4, $5::integer)
     ON CONFLICT (pipeline, sink, name) DO UPDATE SET topic_id = excluded.topic_id, incarnation = excluded.incarnation
     WHERE t.incarnation < excluded.incarnation OR (t.incarnation = excluded.incarnation AND t.topic_id = '')`,
    key.pipeline,
    key.sink,
    name,
    memory.topicId,
    String(memory.incarnation),
  );
  return (await readTopic(connection, names, key, name)) ?? memory;
}

export async function raiseLease(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  window: string,
  instance: string,
): Promise<Authority> {
  const { rows } = await connection.query(
    `INSERT INTO ${names.table("lease")} AS l (pipeline, sink, name, lease, owner) VALUES ($1, $2, $3, 1, $4)
     ON CONFLICT (pipeline, sink, name) DO UPDATE SET lease = l.lease + 1, owner = excluded.owner RETURNING lease::text`,
    key.pipeline,
    key.sink,
    window,
    instance,
  );
  return { kind: "lease", window, lease: Number(rows[0]?.[0]) };
}

/** All of a sink as one value, for those who only look. Within one transaction: a consistent picture. */
export async function readState(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
): Promise<CoverageState> {
  const found = await connection.query(
    `SELECT stream, generation::text, group_epoch::text, owner, origin::text, stale_commit::text, rows::text, bytes::text
       FROM ${names.table("stream")} WHERE pipeline = $1 AND sink = $2 ORDER BY stream`,
    key.pipeline,
    key.sink,
  );
  const known = await rangesOf(connection, names, key, null);
  const streams = new Map<StreamKey, StreamState>();
  const landed = { ...(await readRecovered(connection, names, key)) };
  for (const [
    stream,
    generation,
    groupEpoch = null,
    owner = null,
    origin = null,
    staleCommit = null,
    rows,
    bytes,
  ] of found.rows) {
    const name = stream ?? "";
    streams.set(name, {
      generation: Number(generation),
      groupEpoch: groupEpoch === null ? null : Number(groupEpoch),
      owner,
      origin: origin === null ? null : BigInt(origin),
      staleCommit: staleCommit === null ? null : BigInt(staleCommit),
      covered: known.covered.get(name) ?? [],
      lost: known.lost.get(name) ?? [],
    });
    landed.rows += Number(rows);
    landed.bytes += Number(bytes);
  }
  const owners = await readOwners(connection, names, key);
  // No files: what landed stands as one entry of the index that is not kept anywhere.
  const segments = [{ name: "table", entries: 0, files: 0, level: 0, ...landed }];
  return { ...EMPTY_STATE, serial: FORMAT, owners, streams, segments };
}
