/**
 * Which part of a sink's gaps recovery may fill now, by the owners, heads and windows that the sink's coverage names. It
 * decides only whether a try is worth its connections: what is granted is decided where windows are.
 */
import { intersectRanges, type Ranges, subtractRanges, unionRanges } from "../coverage/ranges.ts";
import type { CoverageState } from "../coverage/state.ts";
import { headOf, type Window, windowsOf } from "../coverage/windows.ts";
import type { StreamKey } from "../records/stream.ts";
import type { Wanted } from "./replay-order.ts";

export interface FreeGaps {
  /** Nobody's. */
  readonly free: Wanted;
  /** Those, and what other processes of recovery are at. */
  readonly behind: Wanted;
}

type Sink = Pick<CoverageState, "owners" | "leases" | "streams">;

/** `gone`: instances that were judged gone. */
export function freeGaps(lacks: Wanted, sink: Sink, gone: ReadonlySet<string>): FreeGaps {
  const owners = sink.owners.filter((o) => !gone.has(o.instance));
  const there = new Set(owners.map((o) => o.instance));
  const windows = windowsOf({ leases: sink.leases, owners });
  const free = new Map<StreamKey, Ranges>();
  const behind = new Map<StreamKey, Ranges>();
  for (const [stream, ranges] of lacks) {
    const mine = windows.filter((w) => w.stream === stream);
    const owner = sink.streams.get(stream)?.owner ?? null;
    const below = owner === null || !there.has(owner) ? ranges : belowHead(ranges, headOf(mine, owner));
    const left = subtractRanges(below, leased(mine));
    if (below.length > 0) behind.set(stream, below);
    if (left.length > 0) free.set(stream, left);
  }
  return { free, behind };
}

function belowHead(ranges: Ranges, head: bigint | null): Ranges {
  return head === null || head === 0n ? [] : intersectRanges(ranges, [{ from: 0n, next: head }]);
}

function leased(windows: readonly Window[]): Ranges {
  return windows.reduce<Ranges>(
    (all, { from, next }) => (next === null ? all : unionRanges(all, [{ from, next }])),
    [],
  );
}
