/**
 * A process that lands positions in a folder as a pipeline does, over the real disk, and may be told to die at a
 * named point. Run by kill.test.ts:
 *
 *   bun child.ts '{"root": "/tmp/x", "crash": "after_intend", "at": 3}'
 *
 * It prints `opened`, `at POINT` where it is told to wait for a line on standard input, and at the end `done` or the
 * code of what ended it.
 */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { linuxIdentity } from "../../src/adapters/coverage/host-identity.ts";
import { coverageFolderOf, LocalVersionedStore } from "../../src/adapters/coverage/local.ts";
import { LocalObjectStore, stagingOf } from "../../src/adapters/object-store/local.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { CoverageKeeper } from "../../src/core/coverage/keeper.ts";
import { firstUncovered } from "../../src/core/coverage/ranges.ts";
import { Committer } from "../../src/core/delivery/committer.ts";
import { asFailure } from "../../src/core/failure/failure.ts";
import type { Claim } from "../../src/core/ports/coverage.ts";
import type { SealedSet } from "../../src/core/ports/lane.ts";
import type { Span } from "../../src/core/records/stream.ts";

export interface ChildOptions {
  readonly root: string;
  /** Positions of each stream that are to land. */
  readonly end: number;
  /** Name of the point and how often it is passed before the process kills itself there. */
  readonly crash?: string;
  readonly at?: number;
  /** Point at which it says so and waits for a line. */
  readonly wait?: string;
  /** Pretends to live in another container, so that nobody can tell whether it lives. */
  readonly namespace?: string;
  readonly leaseMs?: number;
}

export const STREAMS = ["kafka/c/t/0/0", "kafka/c/t/0/1"] as const;
const STEP = 3n;

async function main(o: ChildOptions): Promise<void> {
  const instance = `c${process.pid}`;
  const say = (line: string) => process.stdout.write(`${line}\n`);
  const lines = console[Symbol.asyncIterator]();
  let passed = 0;
  const hook = async (point: string): Promise<void> => {
    if (point === o.wait) {
      say(`at ${point}`);
      await lines.next();
    }
    // The kernel ends the process within the call: nothing after it runs.
    if (point === o.crash && passed++ === (o.at ?? 0)) process.kill(process.pid, "SIGKILL");
  };
  const real = linuxIdentity();
  const self = o.namespace === undefined ? real.self : { ...real.self, pidNamespace: o.namespace };
  const objects = new LocalObjectStore({ root: o.root, staging: stagingOf(o.root, "p", "s"), instance });
  const keeper = new CoverageKeeper(
    { instance, leaseMs: o.leaseMs ?? 60_000, minIntervalMs: 0 },
    {
      versions: new LocalVersionedStore(coverageFolderOf(o.root, "p", "s"), hook),
      objects,
      clock: systemClock,
      host: {
        self,
        isAlive: (other) => (other.pidNamespace === self.pidNamespace ? real.isAlive(other) : "unknown"),
      },
      hook,
    },
  );
  await keeper.open();
  say("opened");
  await hook("opened");
  const claims = await keeper.claim(STREAMS, null);
  await objects.sweep(keeper.stagedNames());

  let end: (e?: unknown) => void = () => {};
  const over = new Promise<void>((resolve, reject) => {
    end = (e) => (e === undefined ? resolve() : reject(e));
  });
  const committer = new Committer({
    sink: "s",
    coverage: keeper,
    objects,
    clock: systemClock,
    observer: { emit: () => {} },
    hook,
    listener: {
      committed: (_id, spans) => void acknowledge(spans),
      refused: (_id, _lane, reason, detail) => end(keeper.fenced ?? new Error(`${reason}: ${detail}`)),
      failed: (f) => end(keeper.fenced ?? f),
      trouble: () => {},
    },
  });

  async function acknowledge(spans: readonly Span[]): Promise<void> {
    await hook("before_acknowledge");
    // The broker's part is played by a file: whatever stands in it was told.
    for (const s of spans) appendFileSync(join(o.root, "told"), `${s.stream} ${s.next}\n`);
    await hook("after_acknowledge");
  }

  async function sealed(serial: number, spans: readonly Span[]): Promise<SealedSet> {
    const id = `${instance}-${serial}`;
    const targets = [];
    for (const s of spans) {
      const rows: string[] = [];
      for (let p = s.from; p < s.next; p++) rows.push(`${s.stream}@${p}`);
      const staged = await objects.stage(`${s.stream.replaceAll("/", "-")}/${id}.txt`);
      await staged.append(new TextEncoder().encode(rows.join("\n")));
      targets.push(await staged.seal(rows.length));
    }
    await hook("sealed");
    return {
      id,
      lane: 0,
      epoch: 0,
      targets,
      spans,
      covered: false,
      rows: 1,
      bytes: 1,
      reason: "bytes",
      openedAt: 0,
      sealMs: 0,
    };
  }

  async function land(found: readonly Claim[]): Promise<void> {
    const at = new Map(found.map((c) => [c.stream, firstUncovered(c.covered, 0n)]));
    const authorities = found.map((c) => c.authority);
    for (let serial = 0; ; serial++) {
      const spans = [...at].flatMap(([stream, from]) => {
        const next = from + STEP < BigInt(o.end) ? from + STEP : BigInt(o.end);
        return from < next ? [{ stream, from, next }] : [];
      });
      if (spans.length === 0) return;
      for (const s of spans) at.set(s.stream, s.next);
      const set = await sealed(serial, spans);
      committer.submit(set, authorities);
      // Every second set goes together with the next in one round.
      if (serial % 2 === 1) await committer.idle();
    }
  }

  await Promise.race([over, land(claims).then(() => committer.idle())]);
  await hook("landed");
  await keeper.close();
}

if (import.meta.main) {
  main(JSON.parse(process.argv[2] ?? "{}") as ChildOptions).then(
    () => {
      process.stdout.write("done\n");
      process.exit(0);
    },
    (e) => {
      const f = asFailure(e);
      process.stdout.write(`${f.code} ${f.message}\n`);
      process.exit(1);
    },
  );
}
