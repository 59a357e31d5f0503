/**
 * How far each stream has come, in four positions that may lag but never lead:
 *
 *   acknowledged <= committed <= sealed <= delivered
 *
 * delivered: handed to a lane. sealed: in durable files that nobody sees yet. committed: published and covered, the
 * durable event that allows an acknowledgement. acknowledged: the broker knows. Each is the position after the last
 * one reached without a hole; sets may be sealed and covered out of order, and what is ahead of a hole waits.
 *
 * A step that would break the order is refused with `internal.bug` before anything changes: it would be silent loss.
 */
import { Failure } from "../failure/failure.ts";
import type { Range } from "../ports/coverage.ts";
import type { AckMark } from "../ports/source.ts";
import type { Span, StreamKey } from "../records/stream.ts";

/** One position that grows, plus the ranges beyond its first hole. */
class Frontier {
  upTo: bigint;
  /** Sorted, disjoint, not touching, all above `upTo`. One entry per set under way, so it stays short. */
  #ahead: Range[] = [];

  constructor(upTo: bigint) {
    this.upTo = upTo;
  }

  get ahead(): readonly Range[] {
    return this.#ahead;
  }

  holds(from: bigint, next: bigint): boolean {
    return next <= this.upTo || from === next || this.#ahead.some((r) => r.from <= from && next <= r.next);
  }

  overlaps(from: bigint, next: bigint): boolean {
    return from < next && (from < this.upTo || this.#ahead.some((r) => from < r.next && r.from < next));
  }

  add(from: bigint, next: bigint): void {
    if (next <= this.upTo || from >= next) return;
    let low = from;
    let high = next;
    const apart: Range[] = [];
    for (const r of this.#ahead) {
      if (r.next < low || high < r.from) apart.push(r);
      else {
        if (r.from < low) low = r.from;
        if (r.next > high) high = r.next;
      }
    }
    if (low <= this.upTo) {
      // Nothing kept touches the union, so the next hole begins right here.
      this.upTo = high;
      this.#ahead = apart;
      return;
    }
    this.#ahead = [...apart, { from: low, next: high }].sort((a, b) => (a.from < b.from ? -1 : 1));
  }

  /** Forgets everything at and above `position`. */
  cut(position: bigint): void {
    if (this.upTo > position) this.upTo = position;
    this.#ahead = this.#ahead
      .filter((r) => r.from < position)
      .map((r) => (r.next > position ? { from: r.from, next: position } : r));
  }
}

interface Entry {
  readonly stream: number;
  readonly key: StreamKey;
  attempt: number;
  delivered: bigint;
  sealed: Frontier;
  committed: Frontier;
  acknowledged: bigint;
  end: bigint | null;
}

export interface StreamState {
  readonly stream: number;
  readonly key: StreamKey;
  /** Raised by every rewind; frames of an older attempt are void. */
  readonly attempt: number;
  readonly delivered: bigint;
  readonly sealed: bigint;
  readonly committed: bigint;
  readonly acknowledged: bigint;
  /** End of the log as last seen, null before the first answer. */
  readonly end: bigint | null;
}

export interface BeginStream {
  readonly stream: number;
  readonly key: StreamKey;
  /** Where reading begins; everything below is covered, lost on purpose or not asked for. */
  readonly position: bigint;
  /** What the broker holds for us, null if nothing. May be below `position`, never above. */
  readonly acknowledged: bigint | null;
  /** Ranges at or above the position that are durable already and will be skipped. */
  readonly covered: readonly Range[];
  /** Default 0. */
  readonly attempt?: number;
}

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);

export class Ledger {
  readonly #entries = new Map<number, Entry>();
  readonly #byKey = new Map<StreamKey, Entry>();

  begin(b: BeginStream): void {
    if (this.#entries.has(b.stream) || this.#byKey.has(b.key)) throw bug(b.key, "begins twice");
    const acknowledged = b.acknowledged ?? b.position;
    if (acknowledged > b.position) {
      throw bug(b.key, `begins at ${b.position}, below the acknowledged position ${acknowledged}`);
    }
    const entry: Entry = {
      stream: b.stream,
      key: b.key,
      attempt: b.attempt ?? 0,
      delivered: b.position,
      sealed: new Frontier(b.position),
      committed: new Frontier(b.position),
      acknowledged,
      end: null,
    };
    for (const r of b.covered) resolve(entry, r.from, r.next);
    this.#entries.set(b.stream, entry);
    this.#byKey.set(b.key, entry);
  }

  /** The stream is no longer ours. */
  end(stream: number): void {
    const entry = this.#entry(stream);
    this.#entries.delete(stream);
    this.#byKey.delete(entry.key);
  }

  /** True if a frame of this attempt still counts. */
  current(stream: number, attempt: number): boolean {
    return this.#entries.get(stream)?.attempt === attempt;
  }

  /** A frame went to a lane. False, and nothing changes, if it is of an older attempt or the stream has ended. */
  deliver(stream: number, attempt: number, from: bigint, next: bigint): boolean {
    const entry = this.#entries.get(stream);
    if (entry === undefined || attempt < entry.attempt) return false;
    if (attempt > entry.attempt)
      throw bug(entry.key, `has attempt ${entry.attempt}, got a frame of ${attempt}`);
    if (from !== entry.delivered || next < from) {
      throw bug(entry.key, `was delivered up to ${entry.delivered}, got a frame from ${from} to ${next}`);
    }
    entry.delivered = next;
    return true;
  }

  /** Steps over a range that is covered already. */
  skip(stream: number, next: bigint): void {
    const entry = this.#entry(stream);
    if (next < entry.delivered || !entry.committed.holds(entry.delivered, next)) {
      throw bug(entry.key, `would skip from ${entry.delivered} to ${next}, which is not covered`);
    }
    entry.delivered = next;
  }

  /** A range that nobody can read any more, whose loss is recorded in coverage. Reading goes on at `next`. */
  lose(stream: number, from: bigint, next: bigint): void {
    const entry = this.#entry(stream);
    if (from !== entry.delivered || next < from) {
      throw bug(entry.key, `was delivered up to ${entry.delivered}, cannot lose ${from} to ${next}`);
    }
    resolve(entry, from, next);
    entry.delivered = next;
  }

  /** The spans of one set are durable in staged files. All are checked before the first one counts. */
  seal(spans: readonly Span[]): void {
    for (const s of spans) {
      const entry = this.#known(s.stream);
      if (s.next < s.from) throw bug(s.stream, `has a span from ${s.from} to ${s.next}`);
      if (s.next > entry.delivered) {
        throw bug(s.stream, `was delivered up to ${entry.delivered}, a set claims up to ${s.next}`);
      }
      if (entry.sealed.overlaps(s.from, s.next)) {
        throw bug(s.stream, `has ${s.from} to ${s.next} in a set already`);
      }
    }
    for (const s of spans) this.#known(s.stream).sealed.add(s.from, s.next);
  }

  /** The spans are published and covered. */
  commit(spans: readonly Span[]): void {
    for (const s of spans) {
      const entry = this.#known(s.stream);
      if (!entry.sealed.holds(s.from, s.next)) {
        throw bug(s.stream, `is sealed up to ${entry.sealed.upTo}, cannot commit ${s.from} to ${s.next}`);
      }
    }
    for (const s of spans) this.#known(s.stream).committed.add(s.from, s.next);
  }

  /** What the broker may be told now: streams whose committed position is beyond the acknowledged one. */
  pending(): readonly AckMark[] {
    const marks: AckMark[] = [];
    for (const entry of this.#entries.values()) {
      const next = committed(entry);
      if (next > entry.acknowledged) marks.push({ stream: entry.stream, next });
    }
    return marks;
  }

  /** The broker has answered. Answers may come out of order, and for streams that ended meanwhile. */
  acknowledge(marks: readonly AckMark[]): void {
    for (const m of marks) {
      const entry = this.#entries.get(m.stream);
      if (entry !== undefined && m.next > committed(entry)) {
        throw bug(entry.key, `is committed up to ${committed(entry)}, cannot acknowledge ${m.next}`);
      }
    }
    for (const m of marks) {
      const entry = this.#entries.get(m.stream);
      if (entry !== undefined && m.next > entry.acknowledged) entry.acknowledged = m.next;
    }
  }

  /**
   * Goes back to `position`, by default the first one that is not committed. What was delivered or sealed at or
   * above it and is not committed is void. Returns the new attempt number.
   */
  rewind(stream: number, position?: bigint): number {
    const entry = this.#entry(stream);
    const to = position ?? committed(entry);
    if (to < committed(entry) || to > entry.delivered) {
      throw bug(
        entry.key,
        `cannot go back to ${to}: committed ${committed(entry)}, delivered ${entry.delivered}`,
      );
    }
    entry.attempt++;
    entry.delivered = to;
    entry.sealed.cut(to);
    entry.sealed.add(entry.sealed.upTo, entry.committed.upTo);
    for (const r of entry.committed.ahead) entry.sealed.add(r.from, r.next);
    return entry.attempt;
  }

  /** End of the log. It may go back (truncation, an election); what that means is for the source to decide. */
  watermark(stream: number, end: bigint): void {
    this.#entry(stream).end = end;
  }

  /** Positions that are not committed yet; null while the end is unknown. Never understated by work under way. */
  lag(stream: number): number | null {
    const entry = this.#entry(stream);
    if (entry.end === null) return null;
    const lag = entry.end - committed(entry);
    return lag > 0n ? Number(lag) : 0;
  }

  /** Over all streams; those whose end is unknown count as 0. */
  totalLag(): number {
    let sum = 0;
    for (const stream of this.#entries.keys()) sum += this.lag(stream) ?? 0;
    return sum;
  }

  /** True if everything that was delivered is acknowledged: a drain is complete. */
  settled(): boolean {
    for (const e of this.#entries.values()) if (e.acknowledged < e.delivered) return false;
    return true;
  }

  state(stream: number): StreamState {
    return stateOf(this.#entry(stream));
  }

  states(): readonly StreamState[] {
    return [...this.#entries.values()].map(stateOf);
  }

  #entry(stream: number): Entry {
    const entry = this.#entries.get(stream);
    if (entry === undefined) throw new Failure("internal.bug", `stream ${stream} is not in the ledger`);
    return entry;
  }

  #known(key: StreamKey): Entry {
    const entry = this.#byKey.get(key);
    if (entry === undefined) throw bug(key, "is not in the ledger");
    return entry;
  }
}

/**
 * Ranges that are durable, or recorded as lost, beyond what was delivered let the frontiers run ahead of it. The
 * positions that others see do not: they wait until reading has passed.
 */
function committed(entry: Entry): bigint {
  return least(entry.committed.upTo, entry.delivered);
}

function stateOf(entry: Entry): StreamState {
  return {
    stream: entry.stream,
    key: entry.key,
    attempt: entry.attempt,
    delivered: entry.delivered,
    sealed: least(entry.sealed.upTo, entry.delivered),
    committed: committed(entry),
    acknowledged: entry.acknowledged,
    end: entry.end,
  };
}

function resolve(entry: Entry, from: bigint, next: bigint): void {
  entry.sealed.add(from, next);
  entry.committed.add(from, next);
}

function bug(key: StreamKey, what: string): Failure {
  return new Failure("internal.bug", `stream ${what}`, { at: key });
}
