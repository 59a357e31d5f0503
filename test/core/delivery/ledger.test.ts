// Goal: acknowledged <= committed <= sealed <= delivered, whatever happens in whatever order, and a step that would
// break it changes nothing. Method: single cases, then random walks against a model that keeps one bit per position.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Ledger } from "../../../src/core/delivery/ledger.ts";
import { Failure } from "../../../src/core/failure/failure.ts";

const KEY = "kafka/c/orders/0/3";
const OTHER = "kafka/c/orders/0/4";
const span = (from: bigint, next: bigint, stream = KEY) => ({ stream, from, next });

function ledgerAt(position: bigint, covered: { from: bigint; next: bigint }[] = []): Ledger {
  const ledger = new Ledger();
  ledger.begin({ stream: 3, key: KEY, position, acknowledged: null, covered });
  return ledger;
}

/** The four positions, in the order in which they may lag. */
function positions(l: Ledger): readonly bigint[] {
  const s = l.state(3);
  return [s.acknowledged, s.committed, s.sealed, s.delivered];
}

function bug(fn: () => unknown): Failure {
  try {
    fn();
  } catch (e) {
    if (e instanceof Failure && e.code === "internal.bug") return e;
    throw e;
  }
  throw new Error("it was allowed");
}

test("records go through the four positions in order", () => {
  const l = ledgerAt(10n);
  expect(positions(l)).toEqual([10n, 10n, 10n, 10n]);
  expect(l.deliver(3, 0, 10n, 20n)).toBe(true);
  expect(positions(l)).toEqual([10n, 10n, 10n, 20n]);
  l.seal([span(10n, 15n)]);
  expect(positions(l)).toEqual([10n, 10n, 15n, 20n]);
  expect(l.pending()).toEqual([]);
  l.commit([span(10n, 15n)]);
  expect(l.pending()).toEqual([{ stream: 3, next: 15n }]);
  expect(l.settled()).toBe(false);
  l.acknowledge([{ stream: 3, next: 15n }]);
  expect(positions(l)).toEqual([15n, 15n, 15n, 20n]);
  expect(l.pending()).toEqual([]);
  l.seal([span(15n, 20n)]);
  l.commit([span(15n, 20n)]);
  l.acknowledge(l.pending());
  expect(l.settled()).toBe(true);
});

test("a set that is covered before an earlier one waits for it", () => {
  const l = ledgerAt(0n);
  l.deliver(3, 0, 0n, 30n);
  l.seal([span(10n, 20n)]);
  expect(l.state(3).sealed).toBe(0n);
  l.seal([span(0n, 10n)]);
  l.seal([span(20n, 30n)]);
  expect(l.state(3).sealed).toBe(30n);
  l.commit([span(20n, 30n)]);
  l.commit([span(10n, 20n)]);
  expect(l.pending()).toEqual([]);
  l.commit([span(0n, 10n)]);
  expect(l.pending()).toEqual([{ stream: 3, next: 30n }]);
});

test("every step that would lead is refused and changes nothing", () => {
  const l = ledgerAt(0n);
  l.deliver(3, 0, 0n, 10n);
  l.seal([span(0n, 5n)]);
  const before = positions(l);
  expect(bug(() => l.seal([span(5n, 11n)])).message).toContain("delivered up to 10");
  expect(bug(() => l.seal([span(4n, 6n)])).message).toContain("in a set already");
  expect(bug(() => l.seal([span(7n, 6n)])).message).toContain("span from 7 to 6");
  expect(bug(() => l.commit([span(0n, 6n)])).message).toContain("sealed up to 5");
  expect(bug(() => l.acknowledge([{ stream: 3, next: 1n }])).message).toContain("committed up to 0");
  expect(bug(() => l.deliver(3, 0, 11n, 12n)).message).toContain("delivered up to 10");
  expect(bug(() => l.deliver(3, 0, 10n, 9n)).message).toContain("delivered up to 10");
  expect(bug(() => l.deliver(3, 1, 10n, 12n)).message).toContain("attempt 0");
  expect(bug(() => l.rewind(3, 11n)).message).toContain("cannot go back to 11");
  expect(bug(() => l.skip(3, 12n)).message).toContain("not covered");
  expect(bug(() => l.lose(3, 0n, 12n)).message).toContain("cannot lose");
  expect(bug(() => l.seal([span(5n, 6n), span(0n, 1n, OTHER)])).at).toBe(OTHER);
  expect(positions(l)).toEqual(before);
});

test("of several spans none counts if one is wrong", () => {
  const l = ledgerAt(0n);
  l.begin({ stream: 4, key: OTHER, position: 0n, acknowledged: null, covered: [] });
  l.deliver(3, 0, 0n, 10n);
  expect(() => l.seal([span(0n, 10n), span(0n, 1n, OTHER)])).toThrow();
  expect(l.state(3).sealed).toBe(0n);
  l.seal([span(0n, 10n)]);
  expect(() => l.commit([span(0n, 10n), span(0n, 1n, OTHER)])).toThrow();
  expect(l.state(3).committed).toBe(0n);
  l.commit([span(0n, 10n)]);
  expect(() =>
    l.acknowledge([
      { stream: 3, next: 10n },
      { stream: 4, next: 1n },
    ]),
  ).toThrow();
  expect(l.state(3).acknowledged).toBe(0n);
});

test("a rewind voids what is not committed and frames of the older attempt", () => {
  const l = ledgerAt(0n);
  l.deliver(3, 0, 0n, 30n);
  l.seal([span(0n, 10n)]);
  l.seal([span(10n, 20n)]);
  l.commit([span(0n, 10n)]);
  expect(l.rewind(3)).toBe(1);
  expect(positions(l)).toEqual([0n, 10n, 10n, 10n]);
  expect(l.deliver(3, 0, 30n, 40n)).toBe(false);
  expect(l.current(3, 0)).toBe(false);
  expect(l.current(3, 1)).toBe(true);
  expect(l.deliver(3, 1, 10n, 20n)).toBe(true);
  l.seal([span(10n, 20n)]);
  expect(bug(() => l.rewind(3, 5n)).message).toContain("committed 10");
});

test("a rewind keeps what is covered beyond a hole, so it is not written again", () => {
  const l = ledgerAt(0n);
  l.deliver(3, 0, 0n, 30n);
  l.seal([span(0n, 10n)]);
  l.seal([span(10n, 20n)]);
  l.commit([span(10n, 20n)]);
  l.rewind(3);
  expect(positions(l)).toEqual([0n, 0n, 0n, 0n]);
  l.deliver(3, 1, 0n, 20n);
  expect(bug(() => l.seal([span(0n, 20n)])).message).toContain("in a set already");
  l.seal([span(0n, 10n)]);
  l.commit([span(0n, 10n)]);
  expect(l.state(3).committed).toBe(20n);
});

test("a rewind may keep delivered data that is sealed", () => {
  const l = ledgerAt(0n);
  l.deliver(3, 0, 0n, 30n);
  l.seal([span(0n, 10n)]);
  l.rewind(3, 10n);
  expect(positions(l)).toEqual([0n, 0n, 10n, 10n]);
  l.commit([span(0n, 10n)]);
  expect(l.state(3).committed).toBe(10n);
});

test("ranges that are covered already do not count before reading has passed them", () => {
  const l = ledgerAt(0n, [
    { from: 10n, next: 20n },
    { from: 20n, next: 25n },
  ]);
  l.deliver(3, 0, 0n, 10n);
  l.seal([span(0n, 10n)]);
  l.commit([span(0n, 10n)]);
  expect(positions(l)).toEqual([0n, 10n, 10n, 10n]);
  l.skip(3, 25n);
  expect(positions(l)).toEqual([0n, 25n, 25n, 25n]);
  expect(bug(() => l.skip(3, 26n)).message).toContain("not covered");
});

test("reading over a covered range in the middle of a frame commits it with its neighbours", () => {
  const l = ledgerAt(0n, [{ from: 5n, next: 8n }]);
  l.deliver(3, 0, 0n, 12n);
  l.seal([span(0n, 5n), span(8n, 12n)]);
  l.commit([span(0n, 5n), span(8n, 12n)]);
  expect(l.pending()).toEqual([{ stream: 3, next: 12n }]);
});

test("a lost range is passed, never held as a hole for ever", () => {
  const l = ledgerAt(5n);
  l.lose(3, 5n, 50n);
  expect(positions(l)).toEqual([5n, 50n, 50n, 50n]);
  l.deliver(3, 0, 50n, 60n);
  expect(l.state(3).delivered).toBe(60n);
});

test("a broker that is behind our coverage is told at once", () => {
  const l = new Ledger();
  l.begin({ stream: 3, key: KEY, position: 100n, acknowledged: 40n, covered: [], attempt: 7 });
  expect(l.pending()).toEqual([{ stream: 3, next: 100n }]);
  expect(l.state(3).attempt).toBe(7);
});

test("a stream begins once and never below what is acknowledged", () => {
  const l = ledgerAt(0n);
  const again = { stream: 9, key: OTHER, position: 5n, acknowledged: 6n, covered: [] };
  expect(bug(() => l.begin(again)).message).toContain("below the acknowledged position 6");
  expect(bug(() => l.begin({ ...again, key: KEY, acknowledged: null })).message).toContain("begins twice");
  expect(bug(() => l.begin({ ...again, stream: 3, acknowledged: null })).message).toContain("begins twice");
});

test("answers of the broker may come late, out of order, and for streams that ended", () => {
  const l = ledgerAt(0n);
  l.deliver(3, 0, 0n, 10n);
  l.seal([span(0n, 10n)]);
  l.commit([span(0n, 10n)]);
  l.acknowledge([{ stream: 3, next: 10n }]);
  l.acknowledge([{ stream: 3, next: 5n }]);
  expect(l.state(3).acknowledged).toBe(10n);
  l.end(3);
  l.acknowledge([{ stream: 3, next: 10n }]);
  expect(l.deliver(3, 0, 10n, 11n)).toBe(false);
  expect(l.current(3, 0)).toBe(false);
  expect(l.states()).toEqual([]);
  expect(bug(() => l.state(3)).message).toContain("stream 3");
});

test("lag counts what is not committed, is unknown without an end and never negative", () => {
  const l = ledgerAt(10n);
  l.begin({ stream: 4, key: OTHER, position: 0n, acknowledged: null, covered: [] });
  expect(l.lag(3)).toBeNull();
  expect(l.totalLag()).toBe(0);
  l.watermark(3, 50n);
  l.deliver(3, 0, 10n, 50n);
  expect(l.lag(3)).toBe(40);
  expect(l.totalLag()).toBe(40);
  l.watermark(3, 5n);
  expect(l.lag(3)).toBe(0);
});

/** One bit per position in [0, SIZE); everything from SIZE on is never delivered. */
const SIZE = 40;

class Model {
  delivered = 0;
  sealed = new Set<number>();
  committed = new Set<number>();
  acknowledged = 0;

  frontier(bits: Set<number>): number {
    let at = 0;
    while (at < this.delivered && bits.has(at)) at++;
    return at;
  }
}

const action = fc.record({
  kind: fc.constantFrom("deliver", "seal", "commit", "acknowledge", "rewind", "stale", "lose"),
  from: fc.nat(SIZE - 1),
  length: fc.integer({ min: 1, max: 12 }),
});

const range = (from: number, next: number): number[] =>
  Array.from({ length: next - from }, (_, i) => from + i);

/** Performs the action on both; the ledger must allow it exactly if the model says so. */
function perform(
  l: Ledger,
  m: Model,
  attempt: number,
  a: { kind: string; from: number; length: number },
): number {
  const next = Math.min(SIZE, a.from + a.length);
  const bits = range(a.from, next);
  const spans = [span(BigInt(a.from), BigInt(next))];
  const expectAllowed = (allowed: boolean, step: () => void) => {
    if (allowed) step();
    else bug(step);
    return allowed;
  };
  switch (a.kind) {
    case "deliver": {
      const to = Math.min(SIZE, m.delivered + a.length);
      expect(l.deliver(3, attempt, BigInt(m.delivered), BigInt(to))).toBe(true);
      m.delivered = to;
      return attempt;
    }
    case "seal":
      if (expectAllowed(next <= m.delivered && !bits.some((b) => m.sealed.has(b)), () => l.seal(spans))) {
        for (const b of bits) m.sealed.add(b);
      }
      return attempt;
    case "commit":
      if (
        expectAllowed(
          bits.every((b) => m.sealed.has(b)),
          () => l.commit(spans),
        )
      ) {
        for (const b of bits) m.committed.add(b);
      }
      return attempt;
    case "acknowledge":
      if (
        expectAllowed(next <= m.frontier(m.committed), () =>
          l.acknowledge([{ stream: 3, next: BigInt(next) }]),
        )
      ) {
        m.acknowledged = Math.max(m.acknowledged, next);
      }
      return attempt;
    case "rewind": {
      const allowed = a.from >= m.frontier(m.committed) && a.from <= m.delivered;
      if (!expectAllowed(allowed, () => expect(l.rewind(3, BigInt(a.from))).toBe(attempt + 1)))
        return attempt;
      m.delivered = a.from;
      m.sealed = new Set([...m.sealed].filter((b) => b < a.from || m.committed.has(b)));
      return attempt + 1;
    }
    case "lose": {
      const to = Math.min(SIZE, m.delivered + a.length);
      l.lose(3, BigInt(m.delivered), BigInt(to));
      for (const b of range(m.delivered, to)) {
        m.sealed.add(b);
        m.committed.add(b);
      }
      m.delivered = to;
      return attempt;
    }
    default:
      if (attempt > 0) expect(l.deliver(3, attempt - 1, 0n, 1n)).toBe(false);
      return attempt;
  }
}

test("property: random walks agree with a model of one bit per position, and the order always holds", () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (walk) => {
      const l = ledgerAt(0n);
      const m = new Model();
      let attempt = 0;
      for (const a of walk) {
        attempt = perform(l, m, attempt, a);
        const s = l.state(3);
        expect(positions(l)).toEqual(
          [m.acknowledged, m.frontier(m.committed), m.frontier(m.sealed), m.delivered].map(BigInt),
        );
        expect(s.acknowledged <= s.committed && s.committed <= s.sealed && s.sealed <= s.delivered).toBe(
          true,
        );
        expect(s.attempt).toBe(attempt);
      }
    }),
    { numRuns: 400 },
  );
});
