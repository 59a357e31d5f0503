/** Windows and heads in the table of leases: core/coverage/windows.ts says what they are. */

import type { LeaseState, Owner } from "../../../core/coverage/state.ts";
import {
  freeWindow,
  isRecovery,
  parseWindow,
  type Window,
  windowName,
  windowsOf,
} from "../../../core/coverage/windows.ts";
import type { LeasedWindow } from "../../../core/ports/coverage.ts";
import type { Span, StreamKey } from "../../../core/records/stream.ts";
import type { PgConnection } from "../client.ts";
import { closeGate } from "./gate.ts";
import { lockOwners, readOwners } from "./owners.ts";
import { receiptsEnd } from "./receipts.ts";
import { joinTouching, rangesOf } from "./streams.ts";
import type { SinkKey, StateNames } from "./tables.ts";

export async function readLeases(
  connection: PgConnection,
  names: StateNames,
  { pipeline, sink }: SinkKey,
): Promise<Map<string, LeaseState>> {
  const { rows } = await connection.query(
    `SELECT name, lease::text, owner FROM ${names.table("lease")} WHERE pipeline = $1 AND sink = $2`,
    pipeline,
    sink,
  );
  return new Map(
    rows.map(([name, lease, owner]) => [name ?? "", { lease: Number(lease), owner: owner ?? "" }]),
  );
}

export interface WindowWish {
  readonly holder: string;
  /** Never given twice by the holder. */
  readonly serial: number;
  readonly wanted: readonly Span[];
  /** Owners that were judged, each with its beat then: one that has not written since is taken out. */
  readonly gone: ReadonlyMap<string, number>;
}

/**
 * Ends all windows and heads of the owners in $3, a list as JSON; $1 and $2 are pipeline and sink. Windows alone: other leases
 * are counters, which outlive whoever raised them.
 */
export function windowsEnd(names: StateNames): string {
  return `DELETE FROM ${names.table("lease")} WHERE pipeline = $1 AND sink = $2
             AND owner IN (SELECT jsonb_array_elements_text($3::jsonb)) AND starts_with(name, owner || ' ')`;
}

/**
 * Ends what they hold: their lanes can commit no more, since their streams have a new generation and their windows are
 * gone. One of recovery is out; one of live ingest stays, and claims its streams again if it lives.
 */
async function evictOwners(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  out: readonly string[],
): Promise<void> {
  if (out.length === 0) return;
  const parameters = [key.pipeline, key.sink, JSON.stringify(out)];
  const recovery = [key.pipeline, key.sink, JSON.stringify(out.filter(isRecovery))];
  const listed = "(SELECT jsonb_array_elements_text($3::jsonb))";
  await connection.pipeline([
    {
      sql: `UPDATE ${names.table("stream")} SET generation = generation + 1, owner = NULL
             WHERE pipeline = $1 AND sink = $2 AND owner IN ${listed}`,
      parameters,
    },
    {
      sql: windowsEnd(names),
      parameters,
    },
    {
      sql: `DELETE FROM ${names.table("owner")} WHERE pipeline = $1 AND sink = $2 AND instance IN ${listed}`,
      parameters: recovery,
    },
    {
      sql: receiptsEnd(names),
      parameters: recovery,
    },
  ]);
}

/** An older version takes owners out and leaves their windows, which would refuse what others commit there. */
function dropOrphans(connection: PgConnection, names: StateNames, { pipeline, sink }: SinkKey) {
  return connection.query(
    `DELETE FROM ${names.table("lease")} l WHERE pipeline = $1 AND sink = $2 AND starts_with(name, 'recovery-')
        AND NOT EXISTS (SELECT FROM ${names.table("owner")} o
                         WHERE o.pipeline = $1 AND o.sink = $2 AND o.instance = l.owner)`,
    pipeline,
    sink,
  );
}

/** Within a transaction that has the sink's lock and the holder's row. Streams are locked before windows, as every commit does. */
export async function grantWindows(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  { holder, serial, wanted, gone }: WindowWish,
): Promise<readonly LeasedWindow[]> {
  const streams = [...new Set(wanted.map((s) => s.stream))];
  const of = [key.pipeline, key.sink, JSON.stringify(streams)] as const;
  await lockOwners(connection, names, key, [...gone.keys()]);
  const before = await readOwners(connection, names, key);
  const out = before.filter((o) => gone.get(o.instance) === o.beat).map((o) => o.instance);
  await connection.pipeline([
    // Nobody who is taken out is between the locks of its windows.
    ...(out.length === 0 ? [] : [closeGate(key)]),
    {
      sql: `INSERT INTO ${names.table("stream")} (pipeline, sink, stream, generation)
            SELECT $1, $2, s, 0 FROM jsonb_array_elements_text($3::jsonb) s ORDER BY s ON CONFLICT DO NOTHING`,
      parameters: [...of],
    },
    {
      // Waits for live ingest's commits; whatever they cover is read below. Those under leases go on: they are in windows of
      // others, of which nothing is given. Where a window ends, its end waits for them.
      sql: `SELECT FROM ${names.table("stream")} WHERE pipeline = $1 AND sink = $2
               AND (stream IN (SELECT jsonb_array_elements_text($3::jsonb))
                    OR owner IN (SELECT jsonb_array_elements_text($4::jsonb)))
             ORDER BY stream FOR NO KEY UPDATE`,
      parameters: [...of, JSON.stringify(out)],
    },
  ]);
  await evictOwners(connection, names, key, out);
  await dropOrphans(connection, names, key);
  await dropWindows(connection, names, key, holder);
  const owners = before.filter((o) => !isRecovery(o.instance) || !out.includes(o.instance));
  const leases = await readLeases(connection, names, key);
  await joinTouching(connection, names, key, streams, [...leases.keys()]);
  const granted = await freeOf(connection, names, key, { holder, serial, wanted }, { owners, leases });
  const added = granted.map(({ stream, range }) => ({ holder, stream, ...range }));
  await insertWindows(connection, names, key, { holder, serial }, added);
  return granted;
}

/**
 * Whether `grantWindows` might give something, or take somebody out. Locks nothing and is no part of a transaction, so that
 * a span that another holds costs no commit; what is given is decided under the locks.
 */
export async function mayGrant(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  wish: WindowWish,
): Promise<boolean> {
  const owners = await readOwners(connection, names, key);
  if (owners.some((o) => wish.gone.get(o.instance) === o.beat)) return true;
  const leases = await readLeases(connection, names, key);
  return (await freeOf(connection, names, key, wish, { owners, leases })).length > 0;
}

/** What of a wish is free, as a grant. */
async function freeOf(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  { holder, serial, wanted }: Omit<WindowWish, "gone">,
  seen: { readonly owners: readonly Owner[]; readonly leases: ReadonlyMap<string, LeaseState> },
): Promise<readonly LeasedWindow[]> {
  const streams = [...new Set(wanted.map((s) => s.stream))];
  const found = await connection.query(
    `SELECT stream, owner FROM ${names.table("stream")}
      WHERE pipeline = $1 AND sink = $2 AND stream IN (SELECT jsonb_array_elements_text($3::jsonb))`,
    key.pipeline,
    key.sink,
    JSON.stringify(streams),
  );
  const there = new Set(seen.owners.map((o) => o.instance));
  const windows = windowsOf(seen);
  const { covered } = await rangesOf(connection, names, key, streams);
  const claimed = new Map(found.rows.map(([stream, owner = null]) => [stream ?? "", owner]));
  return wanted.flatMap((span): LeasedWindow[] => {
    const { stream } = span;
    const has = covered.get(stream) ?? [];
    const owner = claimed.get(stream) ?? null;
    const living = owner !== null && there.has(owner) ? owner : null;
    const range = freeWindow(span, { owner: living, covered: has }, windows, holder);
    if (range === null) return [];
    const window = windowName({ holder, stream, ...range });
    return [{ stream, range, covered: has, authority: { kind: "lease", window, lease: serial, stream } }];
  });
}

async function insertWindows(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  { holder, serial }: Pick<WindowWish, "holder" | "serial">,
  windows: readonly Window[],
): Promise<void> {
  if (windows.length === 0) return;
  await connection.query(
    `INSERT INTO ${names.table("lease")} (pipeline, sink, name, lease, owner)
     SELECT $1, $2, n, $4::bigint, $5 FROM jsonb_array_elements_text($3::jsonb) n ON CONFLICT DO NOTHING`,
    key.pipeline,
    key.sink,
    JSON.stringify(windows.map(windowName)),
    String(serial),
    holder,
  );
}

/** All windows and heads of the holder end. Within a transaction. */
export async function dropWindows(
  connection: PgConnection,
  names: StateNames,
  { pipeline, sink }: SinkKey,
  holder: string,
): Promise<void> {
  await connection.query(windowsEnd(names), pipeline, sink, JSON.stringify([holder]));
}

/** Names of the holder's windows. */
export async function heldWindows(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  holder: string,
): Promise<ReadonlySet<string>> {
  const leases = await readLeases(connection, names, key);
  return new Set([...leases].flatMap(([name, { owner }]) => (owner === holder ? [name] : [])));
}

/** In the place of what the owner said before of these streams. Within a transaction. */
export async function writeHeads(
  connection: PgConnection,
  names: StateNames,
  key: SinkKey,
  holder: string,
  heads: ReadonlyMap<StreamKey, bigint>,
): Promise<void> {
  const before = [...(await heldWindows(connection, names, key, holder))].filter((name) => {
    const w = parseWindow(name);
    return w !== null && w.next === null && heads.has(w.stream);
  });
  await connection.query(
    `DELETE FROM ${names.table("lease")}
      WHERE pipeline = $1 AND sink = $2 AND name IN (SELECT jsonb_array_elements_text($3::jsonb))`,
    key.pipeline,
    key.sink,
    JSON.stringify(before),
  );
  const now = [...heads].map(([stream, from]) => ({ holder, stream, from, next: null }));
  await insertWindows(connection, names, key, { holder, serial: 0 }, now);
}
