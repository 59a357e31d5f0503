/**
 * Leases of windows, over whatever holds the coverage of a sink (decision 0033): live ingest and recovery beside each
 * other never write the same positions, and whoever lost a window has no effect. Several processes share one sink; time
 * passes only where a test says so.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { recoveryInstance } from "../../src/core/coverage/windows.ts";
import type { Authority, WindowCoverage } from "../../src/core/ports/coverage.ts";
import type { Life } from "../../src/core/ports/host-identity.ts";
import type { Span } from "../../src/core/records/stream.ts";

export interface WindowProcess {
  readonly coverage: WindowCoverage;
  /** One set of these positions, as far as it gets. */
  land(span: Span, authorities: readonly Authority[]): Promise<"landed" | "fenced" | "overlap">;
}

export interface WindowBench {
  process(instance: string): WindowProcess;
  /** What every machine says of the process. */
  life(instance: string, life: Life): void;
  /** As long as a lease, and a little. */
  pass(): Promise<void>;
  run<T>(work: Promise<T>): Promise<T>;
  close(): Promise<void>;
  /** Sinks whose commits compare nothing: that live ingest keeps above its head is all that keeps it out of windows. */
  readonly trustsHeads?: boolean;
}

export function windowContract(name: string, stream: string, make: () => Promise<WindowBench>): void {
  const span = (from: number, next: number): Span => ({ stream, from: BigInt(from), next: BigInt(next) });
  const [A, B] = [recoveryInstance("a"), recoveryInstance("b")];

  describe(`windows over ${name}`, () => {
    let bench: WindowBench;
    beforeEach(async () => {
      bench = await make();
    });
    afterEach(() => bench.close());

    const run = <T>(work: Promise<T>): Promise<T> => bench.run(work);

    async function opened(instance: string): Promise<WindowProcess> {
      const p = bench.process(instance);
      await run(p.coverage.open());
      return p;
    }

    /** A process that reads the source, with the head that it told. */
    async function ingest(head: number | null, instance = "live") {
      const p = await opened(instance);
      const [claim] = await run(p.coverage.claim([stream], null));
      if (head !== null) await run(p.coverage.heartbeat(new Map([[stream, BigInt(head)]])));
      return { ...p, authorities: [claim!.authority] };
    }

    async function leased(p: WindowProcess, from: number, next: number) {
      const windows = await run(p.coverage.leaseWindows([span(from, next)]));
      return {
        range: windows.map((w) => [Number(w.range.from), Number(w.range.next)]).at(0) ?? null,
        covered: windows.flatMap((w) => w.covered.map((c) => [Number(c.from), Number(c.next)])),
        authorities: windows.map((w) => w.authority),
        holds: () => windows.every((w) => p.coverage.holds(w)),
      };
    }
    const ranges = async (p: WindowProcess) => {
      await run(p.coverage.heartbeat());
      return (await run(p.coverage.covered(stream))).map((r) => [Number(r.from), Number(r.next)]);
    };

    test("where nobody reads the source all is free but what is covered; the window is trimmed to what is missing", async () => {
      const a = await opened(A);
      const whole = await leased(a, 0, 100);
      expect(whole.range).toEqual([0, 100]);
      expect(await run(a.land(span(0, 10), whole.authorities))).toBe("landed");
      expect(await run(a.land(span(40, 60), whole.authorities))).toBe("landed");
      const rest = await leased(a, 0, 60);
      expect([rest.range, rest.covered]).toEqual([
        [10, 40],
        [
          [0, 10],
          [40, 60],
        ],
      ]);
      expect(await ranges(a)).toEqual([
        [0, 10],
        [40, 60],
      ]);
    });

    test("of a stream that somebody reads only what is below the head, and nothing without one", async () => {
      const live = await ingest(null);
      const a = await opened(A);
      expect((await leased(a, 0, 100)).range).toBeNull();
      await run(live.coverage.heartbeat(new Map([[stream, 50n]])));
      await run(a.coverage.heartbeat());
      expect((await leased(a, 0, 100)).range).toEqual([0, 50]);
      expect((await leased(a, 50, 100)).range).toBeNull();
      await run(live.coverage.heartbeat(new Map([[stream, 70n]])));
      await run(a.coverage.heartbeat());
      expect((await leased(a, 50, 100)).range).toEqual([50, 70]);
      await run(live.coverage.close());
      await run(a.coverage.heartbeat());
      expect((await leased(a, 50, 100)).range).toEqual([50, 100]);
    });

    test("live ingest and recovery land beside each other, neither in what is the other's", async () => {
      const live = await ingest(50);
      const a = await opened(A);
      const { authorities } = await leased(a, 10, 50);
      expect(await run(live.land(span(50, 60), live.authorities))).toBe("landed");
      expect(await run(a.land(span(10, 20), authorities))).toBe("landed");
      if (bench.trustsHeads !== true)
        expect(await run(live.land(span(40, 45), live.authorities))).toBe("overlap");
      expect(await run(a.land(span(60, 70), authorities))).toBe("fenced");
      expect(await run(a.land(span(45, 51), authorities))).toBe("fenced");
      expect(await ranges(live)).toEqual([
        [10, 20],
        [50, 60],
      ]);
    });

    test("a lease that nobody gave allows nothing", async () => {
      const a = await opened(A);
      const none: Authority = { kind: "lease", window: "", lease: 0, stream };
      expect(await run(a.land(span(0, 10), [none]))).toBe("fenced");
      expect(await ranges(a)).toEqual([]);
    });

    test("two share a backlog, and no position is given twice", async () => {
      const [a, b] = [await opened(A), await opened(B)];
      const first = await leased(a, 0, 40);
      expect((await leased(b, 0, 40)).range).toBeNull();
      const second = await leased(b, 20, 100);
      expect(second.range).toEqual([40, 100]);
      expect(await run(b.land(span(40, 50), second.authorities))).toBe("landed");
      expect(await run(b.land(span(30, 40), second.authorities))).toBe("fenced");
      expect(await run(a.land(span(30, 40), first.authorities))).toBe("landed");
      expect(await ranges(b)).toEqual([[30, 50]]);
    });

    test("what others hold is told for as long as they live: no heads, and nothing of one's own", async () => {
      const held = async (p: WindowProcess) => {
        await run(p.coverage.heartbeat());
        return (await run(p.coverage.othersHold())).map((s) => [s.stream, Number(s.from), Number(s.next)]);
      };
      await ingest(50);
      const [a, b] = [await opened(A), await opened(B)];
      await leased(a, 10, 40);
      expect([await held(a), await held(b)]).toEqual([[], [[stream, 10, 40]]]);
      await leased(b, 0, 10);
      expect(await held(a)).toEqual([[stream, 0, 10]]);
      await run(b.coverage.releaseWindows());
      expect(await held(a)).toEqual([]);
      await held(b);
      await bench.pass();
      expect(await held(b)).toEqual([]);
    });

    test("what is given back is another's, and nothing lands under it any more", async () => {
      const [a, b] = [await opened(A), await opened(B)];
      const first = await leased(a, 0, 40);
      await run(a.coverage.releaseWindows());
      expect(first.holds()).toBe(false);
      expect(await run(a.land(span(0, 5), first.authorities))).toBe("fenced");
      await run(b.coverage.heartbeat());
      expect((await leased(b, 0, 40)).range).toEqual([0, 40]);
    });

    test("a holder that writes nothing for a lease has lost it, though it lives; one that beats keeps it", async () => {
      bench.life(A, "alive");
      const [a, b] = [await opened(A), await opened(B)];
      const lost = await leased(a, 0, 40);
      await run(b.coverage.heartbeat());
      await bench.pass();
      await run(a.coverage.heartbeat());
      await run(b.coverage.heartbeat());
      expect((await leased(b, 0, 40)).range).toBeNull();
      await bench.pass();
      await run(b.coverage.heartbeat());
      const taken = await leased(b, 0, 40);
      expect(taken.range).toEqual([0, 40]);
      expect(await run(a.land(span(0, 5), lost.authorities).catch(() => "fenced"))).toBe("fenced");
      await run(a.coverage.heartbeat().catch(() => {}));
      expect([a.coverage.fenced?.code, lost.holds()]).toEqual(["coverage.fenced", false]);
      expect(await run(b.land(span(0, 40), taken.authorities))).toBe("landed");
      expect(await ranges(b)).toEqual([[0, 40]]);
    });

    test("a holder that is known to be dead is followed at once", async () => {
      const a = await opened(A);
      await leased(a, 0, 40);
      bench.life(A, "dead");
      const b = await opened(B);
      expect((await leased(b, 0, 40)).range).toEqual([0, 40]);
    });

    test("recovery keeps nobody out who reads the source, and goes on when that one begins", async () => {
      const a = await opened(A);
      const window = await leased(a, 0, 40);
      const live = await ingest(40);
      expect(await run(a.land(span(0, 40), window.authorities))).toBe("landed");
      expect(await run(live.land(span(40, 50), live.authorities))).toBe("landed");
      expect(await ranges(live)).toEqual([[0, 50]]);
    });

    test("whoever read the source and fell silent is followed; if it lives it claims its streams once more", async () => {
      const live = await ingest(null);
      const a = await opened(A);
      await run(a.coverage.heartbeat());
      expect((await leased(a, 0, 40)).range).toBeNull();
      await bench.pass();
      await run(a.coverage.heartbeat());
      expect((await leased(a, 0, 40)).range).toEqual([0, 40]);
      expect(await run(live.land(span(50, 60), live.authorities))).toBe("fenced");
      expect(live.coverage.fenced).toBeNull();
      const [again] = await run(live.coverage.claim([stream], null));
      expect(await run(live.land(span(50, 60), [again!.authority]))).toBe("landed");
    });
  });
}
