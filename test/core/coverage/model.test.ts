/**
 * Model of delivery: processes take over from each other, are killed, stopped and woken between any two steps, and
 * every store fails in every way it may. fast-check finds the shortest story that breaks a promise:
 *
 *   at all times  what the source is told is covered, by the stored state, and published
 *   at the end    after a claim by a fresh owner: every position is covered once and in exactly one published object,
 *                 every published object is in the index once, and nothing staged is left
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { sharedObject, type WriteFault } from "../../../src/adapters/coverage/memory.ts";
import { containsRange } from "../../../src/core/coverage/ranges.ts";
import type { Target } from "../../../src/core/ports/object-store.ts";
import type { Span } from "../../../src/core/records/stream.ts";
import { SeededChance } from "../../sim/chance.ts";
import { SimTime } from "../../sim/clock.ts";
import { SimFolder } from "../../sim/store.ts";
import { Actor, END, isHole, type ModelWorld, STREAMS } from "./actor.ts";

type Step =
  | { readonly do: "start"; readonly machine: number }
  | { readonly do: "kill" | "pause" | "wake"; readonly who: number }
  | { readonly do: "store"; readonly fail: number; readonly failAfter: number; readonly fullMs: number }
  | { readonly do: "vanish" }
  | { readonly do: "write"; readonly fault: WriteFault }
  | { readonly do: "wait"; readonly ms: number };

const percent = fc.integer({ min: 0, max: 40 }).map((n) => n / 100);
const faults = fc.constantFrom<WriteFault[]>("lost", "unknown_applied", "unknown_not_applied");
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("start" as const), machine: fc.nat(1) }),
  fc.record({ do: fc.constantFrom("kill" as const, "pause" as const, "wake" as const), who: fc.nat(7) }),
  fc.record({ do: fc.constant("store" as const), fail: percent, failAfter: percent, fullMs: fc.nat(300) }),
  fc.record({ do: fc.constant("write" as const), fault: faults }),
  fc.record({ do: fc.constant("vanish" as const) }),
  { arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.nat(120) }), weight: 5 },
  { arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.nat(3_000) }), weight: 1 },
);

const story = fc.array(step, { minLength: 10, maxLength: 60 });

interface StoredState {
  readonly streams: readonly { readonly stream: string; readonly covered: readonly [string, string][] }[];
  readonly intents: readonly { readonly targets: readonly Target[] }[];
  readonly index: readonly {
    readonly targets: readonly { readonly key: string }[];
    readonly spans: readonly [string, string, string][];
  }[];
  readonly segments: readonly unknown[];
}

class World implements ModelWorld {
  readonly time = new SimTime();
  readonly chance: SeededChance;
  readonly coverage = sharedObject();
  readonly folder: SimFolder;
  readonly actors: Actor[] = [];
  readonly complaints: string[] = [];
  readonly shared: boolean;
  readonly #faults: WriteFault[] = [];

  constructor(seed: number, shared: boolean) {
    this.shared = shared;
    this.chance = new SeededChance(seed);
    this.folder = new SimFolder(this.time, this.chance.fork());
  }

  readonly writeFault = (): WriteFault | null => this.#faults.shift() ?? null;

  readonly acknowledged = (spans: readonly Span[]): void => {
    for (const s of spans) {
      const covered = this.stored().streams.find((x) => x.stream === s.stream)?.covered ?? [];
      const ranges = covered.map(([from, next]) => ({ from: BigInt(from), next: BigInt(next) }));
      if (!containsRange(ranges, s))
        this.complaints.push(`told of ${s.stream} ${s.from} before it was covered`);
    }
    const published = this.published();
    for (const r of expected(spans))
      if (!published.includes(r)) this.complaints.push(`told of ${r}, not published`);
  };

  stored(): StoredState {
    const newest = Math.max(0, ...this.coverage.versions.keys());
    if (newest === 0) return { streams: [], intents: [], index: [], segments: [] };
    return JSON.parse(new TextDecoder().decode(this.coverage.versions.get(newest))) as StoredState;
  }

  published(): string[] {
    return [...this.folder.published.values()].flatMap((b) => new TextDecoder().decode(b).split("\n"));
  }

  async take(s: Step): Promise<void> {
    const running = this.actors.filter((a) => a.running);
    switch (s.do) {
      case "start":
        if (running.length < 3) this.actors.push(new Actor(this, s.machine, this.shared));
        return;
      case "wait":
        await this.time.runUntil(() => false, this.time.nowMs + s.ms);
        return;
      case "store":
        Object.assign(this.folder.faults, { fail: s.fail, failAfter: s.failAfter });
        this.folder.faults.fullUntil = this.time.nowMs + s.fullMs;
        return;
      case "vanish":
        return this.#vanish();
      case "write":
        this.#faults.push(s.fault);
        return;
    }
    const actor = running[s.who % Math.max(1, running.length)];
    if (actor === undefined) return;
    if (s.do === "kill") actor.process.alive = false;
    else actor.process.paused = s.do === "pause";
  }

  /** Staged bytes of an intent that has nothing published are gone: the disk lost them, or somebody tidied up. */
  #vanish(): void {
    const open = this.stored().intents.find((i) => !i.targets.some((t) => this.folder.published.has(t.key)));
    // The first is published first, so with it none of the others can become visible.
    const first = open?.targets[0];
    if (first !== undefined) this.folder.staged.delete(first.staging);
  }

  /** Everything works again, who slept wakes among the others, then one fresh owner after the other. */
  async heal(): Promise<void> {
    Object.assign(this.folder.faults, { fail: 0, failAfter: 0, fullUntil: -1 });
    this.#faults.length = 0;
    for (const a of this.actors) a.process.paused = false;
    await this.time.runUntil(() => false, this.time.nowMs + 1_000);
    for (const a of this.actors) a.process.alive = false;
    const last = new Actor(this, 0, false);
    this.actors.push(last);
    await this.time.runUntil(() => last.outcome !== "running", this.time.nowMs + 60_000);
    if (last.outcome !== "done") this.complaints.push(`the fresh owner ended with ${String(last.outcome)}`);
  }

  judge(): readonly string[] {
    const out = [...this.complaints];
    const whole = STREAMS.map((stream) => ({ stream, from: 0n, next: END }));
    const found = this.published().sort();
    const wanted = expected(whole).sort();
    if (found.join() !== wanted.join()) out.push(`published ${difference(found, wanted)}`);
    const s = this.stored();
    const covered = s.streams.map((x) => `${x.stream} ${x.covered.join(" ")}`).sort();
    if (covered.join() !== STREAMS.map((x) => `${x} 0,${END}`).join()) out.push(`covered ${covered.join()}`);
    const spans = s.index.flatMap((e) =>
      e.spans.flatMap(([stream, from, next]) => positions(stream, BigInt(from), BigInt(next))),
    );
    const every = whole.flatMap((x) => positions(x.stream, x.from, x.next));
    if (spans.sort().join() !== every.sort().join())
      out.push(`spans of the index ${difference(spans, every)}`);
    const keys = s.index.flatMap((e) => e.targets.map((t) => t.key)).sort();
    const files = [...this.folder.published.keys()].sort();
    if (keys.join() !== files.join()) out.push(`files of the index ${difference(files, keys)}`);
    if (this.folder.staged.size > 0) out.push(`${this.folder.staged.size} staged objects are left`);
    if (s.intents.length > 0) out.push(`${s.intents.length} intents are open`);
    return out;
  }
}

function positions(stream: string, from: bigint, next: bigint): string[] {
  return Array.from({ length: Number(next - from) }, (_, i) => `${stream}@${from + BigInt(i)}`);
}

/** The records that files must hold for these spans. */
function expected(spans: readonly Span[]): string[] {
  return spans.flatMap((s) =>
    positions(s.stream, s.from, s.next).filter((p) => !isHole(BigInt(p.split("@")[1]!))),
  );
}

function difference(found: readonly string[], wanted: readonly string[]): string {
  const doubled = found.filter((x, i) => found.indexOf(x) !== i);
  const lost = wanted.filter((x) => !found.includes(x));
  const strange = found.filter((x) => !wanted.includes(x));
  return JSON.stringify({
    doubled: doubled.slice(0, 5),
    lost: lost.slice(0, 5),
    strange: strange.slice(0, 5),
  });
}

test("whatever is killed, stopped or fails: told is covered, covered is published once, nothing strays", async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(), fc.boolean(), story, async (seed, shared, steps) => {
      const world = new World(seed, shared);
      for (const s of steps) await world.take(s);
      await world.heal();
      expect(world.judge()).toEqual([]);
    }),
    { numRuns: 120, endOnFailure: true },
  );
}, 60_000);
