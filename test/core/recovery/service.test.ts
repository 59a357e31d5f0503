/**
 * Goal: a process that recovers looks, fills and rests: less often the less there is to do, never for ever because something
 * failed, and it comes to its end where that is asked for. Method: looks and rounds that the test scripts, on its clock.
 */
import { expect, test } from "bun:test";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import { type Outlook, RecoveryService, type Round } from "../../../src/core/recovery/service.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";

const OPTIONS = { firstMs: 0, pollMs: 1_000, mostMs: 4_000, untilRecovered: false };
/** In the middle: no jitter. */
const CHANCE = { next: () => 0.5, bytes: (n: number) => new Uint8Array(n) };
const AWAY = new Failure("net.refused", "nobody listens");

const nothing: Outlook = { free: 0n, behind: 0n, away: new Map() };
const free = (n: bigint): Outlook => ({ free: n, behind: n, away: new Map() });
const filled = (n: bigint, failure: Failure | null = null): Round => ({ filled: n, failure });

class Bench {
  readonly clock = new ManualClock();
  readonly looks: number[] = [];
  readonly events: TwgEvent[] = [];
  fills = 0;
  next: () => Promise<Outlook> = async () => nothing;
  round: () => Promise<Round> = async () => filled(1n);
  readonly service: RecoveryService<Outlook>;
  ended: "running" | "done" | Failure = "running";

  constructor(options: Partial<typeof OPTIONS> = {}, chance = CHANCE) {
    this.service = new RecoveryService(
      { ...OPTIONS, ...options },
      {
        ...{ clock: this.clock, chance, observer: { emit: (e) => this.events.push(e) } },
        look: () => {
          this.looks.push(this.clock.monotonic());
          return this.next();
        },
        fill: () => {
          this.fills++;
          return this.round();
        },
      },
    );
  }

  async run(seconds: number): Promise<this> {
    void this.service.run().then(
      () => {
        this.ended = "done";
      },
      (e) => {
        this.ended = e as Failure;
      },
    );
    return this.pass(seconds);
  }

  async pass(seconds: number): Promise<this> {
    for (let i = 0; i <= seconds * 10; i++) {
      for (let turns = 0; turns < 50; turns++) await Promise.resolve();
      if (i < seconds * 10) this.clock.advance(100);
    }
    return this;
  }
}

test("it looks less often while nothing is to be done, and rests no longer than is allowed", async () => {
  const bench = await new Bench().run(16);
  expect(bench.looks).toEqual([0, 1_000, 3_000, 7_000, 11_000, 15_000]);
  expect(bench.fills).toBe(0);
});

test("a pause is a fifth longer or shorter by chance", async () => {
  const early = await new Bench({}, { ...CHANCE, next: () => 0 }).run(1);
  const late = await new Bench({}, { ...CHANCE, next: () => 0.999 }).run(2);
  expect([early.looks, late.looks.length]).toEqual([[0, 800], 2]);
  expect(late.looks[1]).toBeGreaterThan(1_190);
});

test("after a round that filled something it looks at once, and rests as shortly as at first", async () => {
  const bench = new Bench();
  const outlooks = [nothing, nothing, free(2n), nothing, nothing];
  bench.next = async () => outlooks.shift() ?? nothing;
  await bench.run(5);
  expect(bench.looks).toEqual([0, 1_000, 3_000, 3_000, 4_000]);
  expect(bench.events.map((e) => e.e)).toEqual(["recovery.began", "recovery.rests"]);
});

test("a sink that fails, or coverage that cannot be read, costs a longer pause and no end", async () => {
  const bench = new Bench();
  bench.next = async () => free(2n);
  bench.round = async () => filled(0n, AWAY);
  await bench.run(4);
  expect([bench.looks, bench.ended]).toEqual([[0, 1_000, 3_000], "running"]);
  bench.round = () => Promise.reject(new Error("a fault of ours"));
  await bench.pass(4);
  bench.next = () => Promise.reject(AWAY);
  await bench.pass(4);
  expect([bench.looks.length, bench.ended]).toEqual([5, "running"]);
  const told = bench.events.map((e): string => ("failure" in e && e.failure !== null ? e.failure.code : e.e));
  expect(told).toEqual([
    ...["recovery.began", "net.refused", "recovery.began", "net.refused", "recovery.began", "net.refused"],
    ...["recovery.began", "internal.bug", "net.refused"],
  ]);
});

test("stopped, it begins nothing more and does not rest to the end", async () => {
  const bench = await new Bench().run(1);
  bench.service.stop();
  await bench.pass(0);
  expect([bench.ended, bench.clock.waiting]).toEqual(["done", 0]);
});

test("stopped in the middle of a round, it ends with it", async () => {
  const bench = new Bench();
  const round = Promise.withResolvers<Round>();
  bench.next = async () => free(2n);
  bench.round = () => round.promise;
  await bench.run(0);
  bench.service.stop();
  await bench.pass(0);
  expect(bench.ended).toBe("running");
  round.resolve(filled(1n));
  await bench.pass(0);
  expect([bench.ended, bench.looks]).toEqual(["done", [0]]);
});

test("until nothing is behind: also what others of its kind are at is waited for", async () => {
  const bench = new Bench({ untilRecovered: true });
  const outlooks = [free(2n), { ...nothing, behind: 2n }, nothing];
  bench.next = async () => outlooks.shift() ?? nothing;
  await bench.run(1);
  expect([bench.ended, bench.looks]).toEqual(["done", [0, 0, 1_000]]);
});

test("until nothing is behind: a round that brings nothing is the end, and so is a sink that cannot be seen", async () => {
  const stuck = new Bench({ untilRecovered: true });
  stuck.next = async () => free(2n);
  stuck.round = async () => filled(0n, AWAY);
  const blind = new Bench({ untilRecovered: true });
  blind.next = async () => ({ ...nothing, away: new Map([["table", AWAY]]) });
  const wrong = new Bench({ untilRecovered: true });
  wrong.next = () => Promise.reject(new Failure("coverage.corrupt", "not JSON"));
  for (const bench of [stuck, blind]) expect((await bench.run(0)).ended).toBe(AWAY);
  expect((await wrong.run(0)).ended).toMatchObject({ code: "coverage.corrupt" });
});
