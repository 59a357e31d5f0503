/**
 * In which order raw files are read again: each stream's positions rise, and a set of files is read once for all of the
 * streams that have come to it, wherever that is possible. Where a stream goes on may change while it is read.
 */
import { intersectRanges, normalRanges, type Ranges, subtractRanges } from "../coverage/ranges.ts";
import type { IndexEntry } from "../coverage/state.ts";
import type { StreamKey } from "../records/stream.ts";

/** What a sink lacks, by stream; in normal form, none empty. */
export type Wanted = ReadonlyMap<StreamKey, Ranges>;

export interface ReplayPart {
  readonly stream: StreamKey;
  /** What the set has of the stream, of what is wanted. */
  readonly ranges: Ranges;
  /** End of the last of them. */
  readonly next: bigint;
}

export interface ReplayStep {
  readonly set: IndexEntry;
  readonly parts: readonly ReplayPart[];
}

interface Piece {
  /** In the order in which sets were covered. */
  readonly set: number;
  readonly from: bigint;
  readonly next: bigint;
}

export class ReplayOrder {
  readonly #index: readonly IndexEntry[];
  /** Of each stream, sorted by position. */
  readonly #pieces = new Map<StreamKey, readonly Piece[]>();
  readonly #next = new Map<StreamKey, number>();

  constructor(index: readonly IndexEntry[], wanted: Wanted) {
    this.#index = index;
    const found = new Map<StreamKey, Piece[]>();
    for (const [set, { spans }] of index.entries()) {
      for (const s of spans) {
        const pieces = intersectRanges([{ from: s.from, next: s.next }], wanted.get(s.stream) ?? []);
        for (const p of pieces) listOf(found, s.stream).push({ set, ...p });
      }
    }
    for (const [stream, pieces] of found) {
      this.#pieces.set(
        stream,
        pieces.toSorted((a, b) => (a.from < b.from ? -1 : 1)),
      );
      this.#next.set(stream, 0);
    }
  }

  /** What is wanted and in no set of the index. */
  missing(wanted: Wanted): Wanted {
    const gone = [...wanted].map(([stream, ranges]) => {
      const there = normalRanges(this.#pieces.get(stream) ?? []);
      return [stream, subtractRanges(ranges, there)] as const;
    });
    return new Map(gone.filter(([, ranges]) => ranges.length > 0));
  }

  /** Null: all of it was given. */
  take(): ReplayStep | null {
    const heads = [...this.#next].flatMap(([stream, at]) => {
      const piece = this.#pieces.get(stream)?.[at];
      return piece === undefined ? [] : [{ stream, set: piece.set }];
    });
    if (heads.length === 0) return null;
    const set = Math.min(...heads.map((h) => h.set));
    const parts = heads.filter((h) => h.set === set).map(({ stream }) => this.#pass(stream, set));
    return { set: this.#index[set]!, parts };
  }

  /** The stream goes on at that position. */
  seek(stream: StreamKey, position: bigint): void {
    const pieces = this.#pieces.get(stream) ?? [];
    const at = pieces.findIndex((p) => p.next > position);
    this.#next.set(stream, at < 0 ? pieces.length : at);
  }

  /** Over all pieces that stand in the set one after the other. */
  #pass(stream: StreamKey, set: number): ReplayPart {
    const pieces = this.#pieces.get(stream)!;
    const first = this.#next.get(stream)!;
    let at = first;
    while (pieces[at + 1]?.set === set) at++;
    this.#next.set(stream, at + 1);
    return { stream, ranges: pieces.slice(first, at + 1), next: pieces[at]!.next };
  }
}

function listOf(map: Map<StreamKey, Piece[]>, key: StreamKey): Piece[] {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made: Piece[] = [];
  map.set(key, made);
  return made;
}
