/**
 * What must be true of leases in every state that is stored. Read as plain JSON, with names taken apart here: not by what is
 * judged. "holder from-next stream" is a window, "holder from- stream" a head.
 */
export interface LeaseJson {
  readonly window: string;
  readonly lease: number;
}

type SpanJson = readonly [stream: string, from: string, next: string, ...unknown[]];

export interface LeasesJson {
  readonly owners: readonly { readonly instance: string }[];
  readonly streams: readonly {
    readonly stream: string;
    readonly owner: string | null;
  }[];
  readonly leases: readonly LeaseJson[];
  readonly intents: readonly {
    readonly id: string;
    readonly spans: readonly SpanJson[];
    readonly authorities: readonly {
      readonly kind: string;
      readonly window?: string;
      readonly lease?: number;
    }[];
  }[];
}

interface Named {
  readonly holder: string;
  readonly from: bigint;
  readonly next: bigint | null;
  readonly stream: string;
}

function named({ window }: LeaseJson): Named {
  const [holder = "", range = "", ...stream] = window.split(" ");
  const [from = "", next = ""] = range.split("-");
  return { holder, stream: stream.join(" "), from: BigInt(from), next: next === "" ? null : BigInt(next) };
}

const meet = (
  a: Named,
  b: { readonly stream: string; readonly from: bigint; readonly next: bigint },
): boolean => a.stream === b.stream && a.next !== null && a.from < b.next && b.from < a.next;

/** What the step from one state to the next must not do. `before` null: there was none. */
export function leaseComplaints(before: LeasesJson | null, now: LeasesJson): string[] {
  const there = new Set(now.owners.map((o) => o.instance));
  const all = now.leases.map(named).filter((l) => there.has(l.holder));
  const windows = all.filter((l) => l.next !== null);
  return [
    ...windows.flatMap((a, i) =>
      windows
        .slice(i + 1)
        .filter((b) => a.holder !== b.holder && meet(a, { ...b, next: b.next! }))
        .map((b) => `${a.holder} and ${b.holder} have leased the same of ${a.stream}`),
    ),
    ...newOnes(before?.leases, now.leases, (l) => l.window).flatMap((l) => aboveHead(named(l), all, now)),
    ...newOnes(before?.intents, now.intents, (i) => i.id).flatMap((i) => [
      ...unleased(i, windows, now),
      ...belowHead(i, all, now),
    ]),
  ];
}

function newOnes<T>(
  before: readonly T[] | undefined,
  now: readonly T[],
  key: (of: T) => string,
): readonly T[] {
  const known = new Set((before ?? []).map(key));
  return now.filter((of) => !known.has(key(of)));
}

function aboveHead(window: Named, all: readonly Named[], { streams, owners }: LeasesJson): string[] {
  const owner = streams.find((s) => s.stream === window.stream)?.owner ?? null;
  if (window.next === null || !owners.some((o) => o.instance === owner)) return [];
  const head = all.find((l) => l.holder === owner && l.next === null && l.stream === window.stream);
  if (head !== undefined && window.next <= head.from) return [];
  return [
    `${window.holder} has leased ${window.stream} up to ${window.next}, which ${owner} has not let go of`,
  ];
}

function unleased(
  { id, spans, authorities }: LeasesJson["intents"][number],
  windows: readonly Named[],
  { leases }: LeasesJson,
): string[] {
  const lost = authorities.filter(
    (a) => a.kind === "lease" && !leases.some((l) => l.window === a.window && l.lease === a.lease),
  );
  const mine = new Set(authorities.map((a) => a.window?.split(" ")[0]));
  const others = spans.flatMap(([stream, from, next]) =>
    windows.filter((w) => !mine.has(w.holder) && meet(w, { stream, from: BigInt(from), next: BigInt(next) })),
  );
  return [
    ...lost.map((a) => `${id} is intended under ${a.window}, which is over`),
    ...others.map((w) => `${id} is intended in the window of ${w.holder}`),
  ];
}

/** A sink that compares nothing when it commits rests on this: whoever told a head lands nothing below it. */
function belowHead(
  { id, spans, authorities }: LeasesJson["intents"][number],
  all: readonly Named[],
  { streams }: LeasesJson,
): string[] {
  if (authorities.some((a) => a.kind === "lease")) return [];
  return spans.flatMap(([stream, from]) => {
    const owner = streams.find((s) => s.stream === stream)?.owner ?? null;
    const head = all.find((l) => l.holder === owner && l.next === null && l.stream === stream);
    return head === undefined || BigInt(from) >= head.from
      ? []
      : [`${id} is intended from ${from} on, and ${owner} has let go of ${stream} below ${head.from}`];
  });
}
