/**
 * Leases of windows: ranges of a stream that a recovery process fills in a sink while live ingest owns the head. They
 * stand by name in the list of leases of every kind of coverage (decision 0033):
 *
 *   <holder> <from>-<next> <stream>   a window: nobody else writes there
 *   <holder> <from>- <stream>         the head: from there on positions are the live owner's, below it has let go of them
 *
 * The holder is the instance of an owner; one that has left, or was taken out, holds nothing.
 */
import type { Range } from "../ports/coverage.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import { overlapsRange, type Ranges, subtractRanges } from "./ranges.ts";
import type { LeaseState, Owner } from "./state.ts";

/** How the instances of processes begin that fill gaps beside live ingest. */
const RECOVERY = "recovery-";

export const recoveryInstance = (id: string): string => RECOVERY + id;

export const isRecovery = (instance: string): boolean => instance.startsWith(RECOVERY);

export interface Window {
  readonly holder: string;
  readonly stream: StreamKey;
  readonly from: bigint;
  /** Null: a head, which has no end. */
  readonly next: bigint | null;
}

export function windowName({ holder, stream, from, next }: Window): string {
  return `${holder} ${from}-${next ?? ""} ${stream}`;
}

const NAME = /^(\S+) (\d{1,19})-(\d{0,19}) (.+)$/s;

/** Null: a lease of another kind. */
export function parseWindow(name: string): Window | null {
  const found = NAME.exec(name);
  if (found === null) return null;
  const [, holder = "", from = "", next = "", stream = ""] = found;
  return { holder, stream, from: BigInt(from), next: next === "" ? null : BigInt(next) };
}

export type Leases = ReadonlyMap<string, LeaseState>;

interface WindowState {
  readonly leases: Leases;
  readonly owners: readonly Pick<Owner, "instance">[];
}

/** Windows and heads of holders that are there. */
export function windowsOf({ leases, owners }: WindowState): readonly Window[] {
  const there = new Set(owners.map((o) => o.instance));
  return [...leases.keys()].flatMap((name) => {
    const window = parseWindow(name);
    return window !== null && there.has(window.holder) ? [window] : [];
  });
}

/** Windows, not heads, of all but the holder. `gone`: owners that were judged, each with its beat then. */
export function heldByOthers(
  { leases, owners }: { readonly leases: Leases; readonly owners: readonly Owner[] },
  holder: string,
  gone: ReadonlyMap<string, number>,
): readonly Span[] {
  const living = owners.filter((o) => o.instance !== holder && gone.get(o.instance) !== o.beat);
  return windowsOf({ leases, owners: living }).flatMap(({ stream, from, next }) =>
    next === null ? [] : [{ stream, from, next }],
  );
}

/** Without those of holders that are gone. The same object if there are none. */
export function tidiedLeases({ leases, owners }: WindowState): Leases {
  const there = new Set(owners.map((o) => o.instance));
  const kept = [...leases].filter(([name]) => {
    const window = parseWindow(name);
    return window === null || there.has(window.holder);
  });
  return kept.length === leases.size ? leases : new Map(kept);
}

/** The window that the span touches and that is not the holder's; null: none. */
export function windowInTheWay(windows: readonly Window[], span: Span, holder: string | null): Window | null {
  const touches = (w: Window) => w.next !== null && overlapsRange([{ from: w.from, next: w.next }], span);
  return windows.find((w) => w.stream === span.stream && w.holder !== holder && touches(w)) ?? null;
}

export interface StreamView {
  /** Instance that the stream was claimed by; null: by nobody who is there still. */
  readonly owner: string | null;
  readonly covered: Ranges;
}

/**
 * What of a span a recovery process may have now: the first piece that is nobody's, trimmed to what is not covered. Null:
 * nothing.
 */
export function freeWindow(
  span: Span,
  { owner, covered }: StreamView,
  windows: readonly Window[],
  holder: string,
): Range | null {
  const mine = windows.filter((w) => w.stream === span.stream);
  let next = span.next;
  if (owner !== null && owner !== holder) {
    const head = headOf(mine, owner);
    if (head === null) return null;
    if (head < next) next = head;
  }
  if (span.from >= next) return null;
  const taken = mine.flatMap((w) =>
    w.holder === holder || w.next === null ? [] : [{ from: w.from, next: w.next }],
  );
  taken.sort((a, b) => (a.from < b.from ? -1 : 1));
  for (const piece of subtractRanges([{ from: span.from, next }], taken)) {
    const lacks = subtractRanges([piece], covered);
    if (lacks.length > 0) return { from: lacks[0]!.from, next: lacks.at(-1)!.next };
  }
  return null;
}

/** Null: the owner has told none. */
export function headOf(windows: readonly Window[], owner: string): bigint | null {
  const heads = windows.filter((w) => w.holder === owner && w.next === null).map((w) => w.from);
  return heads.length === 0 ? null : heads.reduce((a, b) => (a > b ? a : b));
}
