/** What a set of raw files is read in: pieces that are small enough to be held, and up to where each brings a stream. */
import { intersectRanges } from "../coverage/ranges.ts";
import type { StreamKey } from "../records/stream.ts";
import type { PackedPiece } from "./packed-groups.ts";
import type { ReplayPart } from "./replay-order.ts";

/** Rows of one stream that follow one another, their positions rising. */
export interface PieceTurn {
  readonly stream: StreamKey;
  readonly first: bigint;
  readonly last: bigint;
}

export interface SetPiece extends Pick<PackedPiece, "form" | "twoLives"> {
  /** In the order of rows. Over all pieces of a set the positions of each stream rise. Null: rows of any, in any order. */
  readonly turns: readonly PieceTurn[] | null;
  /** Most that `fill` writes. */
  readonly bytes: number;
  fill(body: Uint8Array): Promise<FilledPiece>;
}

export interface FilledPiece {
  /** Of the body. */
  readonly bytes: number;
  /** Gives back what it holds besides the body, once no lane reads it any more; null: nothing. */
  readonly release: (() => void) | null;
}

export interface OpenedSet {
  readonly pieces: readonly SetPiece[];
  close(): void;
}

export interface Stop {
  readonly stream: StreamKey;
  /** Up to there the stream is read after it. */
  next: bigint;
}

export interface Leg {
  /** Null: positions alone, of which no record is. */
  readonly piece: SetPiece | null;
  readonly stops: readonly Stop[];
}

/** Pieces that hold something wanted, and what to read of each. Every part ends where it says. */
export function legsOf(pieces: readonly SetPiece[], parts: readonly ReplayPart[]): readonly Leg[] {
  const byStream = new Map(parts.map((p) => [p.stream, p]));
  const legs: { piece: SetPiece | null; stops: Stop[] }[] = [];
  const last = new Map<StreamKey, Stop>();
  for (const piece of pieces) {
    const turns =
      piece.turns ?? parts.map((p) => ({ stream: p.stream, first: p.ranges[0]!.from, last: p.next - 1n }));
    const stops: Stop[] = [];
    for (const turn of turns) {
      const part = byStream.get(turn.stream);
      if (part === undefined || !isWanted(turn, part)) continue;
      const next = turn.last + 1n < part.next ? turn.last + 1n : part.next;
      const stop = { stream: turn.stream, next };
      stops.push(stop);
      last.set(turn.stream, stop);
    }
    if (stops.length > 0) legs.push({ piece, stops });
  }
  const without: Stop[] = [];
  for (const { stream, next } of parts) {
    const stop = last.get(stream);
    if (stop === undefined) without.push({ stream, next });
    else stop.next = next;
  }
  if (without.length > 0) legs.push({ piece: null, stops: without });
  return legs;
}

const isWanted = ({ first, last }: PieceTurn, { ranges }: ReplayPart): boolean =>
  intersectRanges([{ from: first, next: last + 1n }], ranges).length > 0;
