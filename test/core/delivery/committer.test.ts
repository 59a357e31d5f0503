/**
 * Goal: a sealed set is intended, published and covered in this order, each after the one before; only then it is
 * told, in the order of submission; an outage is waited out; what is refused leaves nothing behind.
 * Method: a coverage and an object store that note each call in one list and fail as told, under a simulated clock.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { Committer, type CommitterParts } from "../../../src/core/delivery/committer.ts";
import type { Code } from "../../../src/core/failure/codes.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { CoverageStore, IntendResult, Intent } from "../../../src/core/ports/coverage.ts";
import type { SealedSet } from "../../../src/core/ports/lane.ts";
import type { ObjectStore, Target, TargetState } from "../../../src/core/ports/object-store.ts";
import { drive } from "../../contract/drive.ts";
import { SimTime } from "../../sim/clock.ts";

const S = "kafka/c/orders/0/0";

let calls: string[];
/** Failures to come, by call; each is thrown once. */
let failures: Map<string, Failure[]>;
/** Answers of intend and cover that are not ok, by set. */
let answers: Map<string, IntendResult>;
/** Files that are neither staged nor published, or are what is said here; the others are staged. */
let states: Map<string, TargetState>;
let time: SimTime;
let committer: Committer;
let told: string[];

function call(what: string): void {
  calls.push(what);
  const failure = failures.get(what)?.shift();
  if (failure !== undefined) throw failure;
}

const answer = (verb: string, id: string): IntendResult => answers.get(`${verb} ${id}`) ?? { ok: true };

// Only what the committer calls; anything else is a mistake that shows as "not a function".
const coverage = {
  intend: async (intents: readonly Intent[]) => {
    call(`intend ${intents.map((i) => i.id).join()}`);
    return intents.map((i) => answer("intend", i.id));
  },
  cover: async (ids: readonly string[]) => {
    call(`cover ${ids.join()}`);
    return ids.map((id) => answer("cover", id));
  },
  settle: async (id: string) => call(`settle ${id}`),
} as unknown as CoverageStore;

const objects = {
  place: "here",
  probe: async (t: Target) => states.get(t.key) ?? "staged",
  publish: async (t: Target) => {
    call(`publish ${t.key}`);
    if (states.get(t.key) === "absent") throw new Failure("store.absent", `${t.key} is gone`);
    states.set(t.key, "published");
  },
  discard: async (t: Target) => {
    call(`discard ${t.key}`);
    if ((states.get(t.key) ?? "staged") === "staged") states.set(t.key, "absent");
  },
} as unknown as ObjectStore;

function make(parts: Partial<CommitterParts> = {}): Committer {
  return new Committer({
    sink: "raw",
    coverage,
    objects,
    clock: time.clock(null),
    observer: { emit: (e) => told.push("id" in e ? `${e.e} ${e.id}` : e.e) },
    listener: {
      committed: (id, spans) =>
        told.push(`committed ${id} ${spans.map((s) => `${s.from}-${s.next}`).join()}`),
      refused: (id, lane, reason) => told.push(`refused ${id} of lane ${lane}: ${reason}`),
      failed: (f) => told.push(`failed ${f.code}`),
      trouble: (f) => told.push(f === null ? "well again" : `trouble ${f.code}`),
    },
    ...parts,
  });
}

beforeEach(() => {
  calls = [];
  told = [];
  failures = new Map();
  answers = new Map();
  states = new Map();
  time = new SimTime();
  committer = make();
});

function set(id: string, files: number, from = 0n): SealedSet {
  const targets = Array.from({ length: files }, (_, i) => ({
    key: `${id}/${i}`,
    staging: `s-${id}-${i}`,
    bytes: 1,
    rows: 1,
  }));
  const spans = [{ stream: S, from, next: from + 10n }];
  return {
    id,
    lane: 1,
    epoch: 0,
    openedAt: 0,
    sealMs: 0,
    targets,
    spans,
    covered: false,
    rows: files,
    bytes: files,
    reason: "bytes",
  };
}

const submit = (s: SealedSet): void =>
  committer.submit(s, [{ kind: "generation", stream: S, generation: 1 }]);
const settled = (): Promise<void> => drive(time, committer.idle());
/** What the listener was told, without the events that the observer saw. */
const outcomes = (): string[] => told.filter((t) => !t.startsWith("set."));
const outage = (code: Code = "store.unavailable"): Failure => new Failure(code, "away");

describe("the way of a set", () => {
  test("intend, publish each file, cover, tell", async () => {
    submit(set("a", 2));
    await settled();
    expect(calls).toEqual(["intend a", "publish a/0", "publish a/1", "cover a"]);
    expect(told).toEqual(["set.intended a", "set.published a", "set.covered a", "committed a 0-10"]);
  });

  test("the points of delivery are passed between the durable events", async () => {
    committer = make({ hook: (point) => void calls.push(`> ${point}`) });
    submit(set("a", 2));
    await settled();
    expect(calls).toEqual([
      "> before_intend",
      "intend a",
      "> after_intend",
      "publish a/0",
      "> after_publish_one",
      "publish a/1",
      "> after_publish_one",
      "> before_cover",
      "cover a",
      "> after_cover",
    ]);
  });

  test("a set without rows has nothing to publish and is covered all the same", async () => {
    submit(set("a", 0));
    await settled();
    expect(calls).toEqual(["intend a", "cover a"]);
    expect(outcomes()).toEqual(["committed a 0-10"]);
  });

  test("sets that come while a round is under way go together in the next, told in their order", async () => {
    submit(set("a", 1));
    submit(set("b", 1, 10n));
    submit(set("c", 1, 20n));
    await settled();
    expect(calls.filter((c) => !c.startsWith("publish"))).toEqual([
      "intend a",
      "cover a",
      "intend b,c",
      "cover b,c",
    ]);
    expect(outcomes()).toEqual(["committed a 0-10", "committed b 10-20", "committed c 20-30"]);
  });

  test("idle waits for a set that is submitted while it waits", async () => {
    submit(set("a", 1));
    const idle = committer.idle();
    submit(set("b", 1, 10n));
    await drive(time, idle);
    expect(outcomes()).toHaveLength(2);
  });

  test("what a lane has submitted is settled while it goes on submitting, and other lanes with it", async () => {
    let next = 0n;
    const more = (lane: number) => {
      submit({ ...set(`l${lane}x${next}`, 0, next), lane });
      next += 10n;
    };
    // By each step of a round there are new ones: neither lane is ever idle.
    const hook = async () => {
      await Promise.resolve();
      if (next < 1000n) for (const lane of [1, 2]) more(lane);
    };
    committer = make({ hook });
    more(1);
    more(2);
    more(1);
    let seen: { ended: string[]; next: bigint } | null = null;
    const look = () => {
      seen = { ended: outcomes().map((o) => o.split(" ")[1] ?? ""), next };
    };
    await drive(time, committer.settledOf(1).then(look));
    const { ended, next: by } = seen!;
    expect(["l1x0", "l1x20"].filter((id) => !ended.includes(id))).toEqual([]);
    expect(by).toBeLessThan(1000n);
    await settled();
    expect(outcomes()).toHaveLength(101);
  });
});

describe("refused", () => {
  test("a refused set loses its staged files and is told with the reason; the others go on", async () => {
    answers.set("intend b", { ok: false, reason: "overlap", detail: "in part" });
    submit(set("x", 0));
    submit(set("a", 1));
    submit(set("b", 2, 10n));
    await settled();
    expect(calls).toContain("discard b/0");
    expect(calls).toContain("discard b/1");
    expect(calls.filter((c) => c.startsWith("publish"))).toEqual(["publish a/0"]);
    expect(outcomes()).toEqual(["committed x 0-10", "refused b of lane 1: overlap", "committed a 0-10"]);
  });

  test("if all are refused nothing is published and nothing covered", async () => {
    answers.set("intend a", { ok: false, reason: "fenced", detail: "later generation" });
    submit(set("a", 1));
    await settled();
    expect(calls).toEqual(["intend a", "discard a/0"]);
  });

  test("staged files that can't be removed are left to the next sweep", async () => {
    answers.set("intend a", { ok: false, reason: "fenced", detail: "" });
    failures.set("discard a/0", [outage()]);
    submit(set("a", 1));
    await settled();
    expect(outcomes()).toEqual(["refused a of lane 1: fenced"]);
  });

  test("a set that was void before it was submitted only loses its files", async () => {
    committer.discard(set("a", 1));
    await settled();
    expect([calls, told]).toEqual([["discard a/0"], []]);
  });
});

describe("an outage is waited out, told once when it ends", () => {
  const steps = ["intend a", "publish a/0", "cover a"];
  test.each(steps)("at %s", async (step) => {
    failures.set(step, [outage("store.full"), outage("coverage.denied")]);
    submit(set("a", 1));
    await settled();
    expect(outcomes()).toEqual([
      "trouble store.full",
      "trouble coverage.denied",
      "well again",
      "committed a 0-10",
    ]);
    // Each step is repeated, none is left out.
    expect(calls.filter((c) => c === step)).toHaveLength(3);
    expect(steps.every((s) => calls.includes(s))).toBe(true);
  });

  test("pauses grow from 100 ms to 5 s", async () => {
    failures.set(
      "publish a/0",
      Array.from({ length: 9 }, () => outage()),
    );
    submit(set("a", 1));
    await settled();
    expect(time.nowMs).toBe(100 + 200 + 400 + 800 + 1600 + 3200 + 3 * 5000);
  });

  test("closing ends the wait; nothing is told as committed or failed", async () => {
    failures.set(
      "publish a/0",
      Array.from({ length: 99 }, () => outage()),
    );
    submit(set("a", 1));
    submit(set("b", 1, 10n));
    time.clock(null).after(1000, () => committer.close());
    await settled();
    expect(outcomes().every((t) => t.startsWith("trouble"))).toBe(true);
    expect(calls).not.toContain("intend b");
  });
});

describe("what does not pass ends the work", () => {
  test.each(["coverage.fenced", "coverage.corrupt", "coverage.newer_version", "internal.bug"] as const)(
    "%s",
    async (code) => {
      failures.set("intend a", [outage(code)]);
      submit(set("a", 1));
      await settled();
      expect(outcomes()).toEqual([`failed ${code}`]);
      expect(calls).toEqual(["intend a"]);
    },
  );

  test("fenced between publish and cover: never told as committed", async () => {
    failures.set("cover a", [outage("coverage.fenced")]);
    submit(set("a", 1));
    await settled();
    expect(outcomes()).toEqual(["failed coverage.fenced"]);
  });

  test("published, yet its intent is gone: people must look, as reading again would double it", async () => {
    answers.set("cover a", { ok: false, reason: "gone", detail: "neither open nor in the index" });
    submit(set("a", 1));
    await settled();
    expect(outcomes()).toEqual(["failed coverage.intent_torn"]);
  });
});

describe("staged files that vanished", () => {
  test("all of them: the intent is given up, the set refused, the round goes on", async () => {
    states.set("a/0", "absent").set("a/1", "absent");
    submit(set("x", 0));
    submit(set("a", 2));
    submit(set("b", 1, 10n));
    await settled();
    expect(calls).toContain("settle a");
    expect(calls).toContain("cover b");
    expect(outcomes()).toEqual(["committed x 0-10", "refused a of lane 1: gone", "committed b 10-20"]);
  });

  test("some of them, none published: the rest is discarded too", async () => {
    states.set("a/0", "absent");
    submit(set("a", 2));
    await settled();
    expect(calls.indexOf("discard a/1")).toBeLessThan(calls.indexOf("settle a"));
    expect(calls).not.toContain("cover a");
    expect(outcomes()).toEqual(["refused a of lane 1: gone"]);
  });

  test("some of them after others were published: torn, nothing is covered or dropped", async () => {
    states.set("a/1", "absent");
    submit(set("a", 2));
    await settled();
    expect(outcomes()).toEqual(["failed coverage.intent_torn"]);
    expect(calls).not.toContain("settle a");
    expect(calls).not.toContain("cover a");
  });

  test("a successor published them meanwhile: covered as if we had", async () => {
    failures.set("publish a/0", [new Failure("store.absent", "gone for a moment")]);
    states.set("a/0", "published");
    submit(set("a", 1));
    await settled();
    expect(outcomes()).toEqual(["committed a 0-10"]);
  });
});
