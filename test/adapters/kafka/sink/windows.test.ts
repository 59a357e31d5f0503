/**
 * Goal: recovery fills a topic beside live ingest, and nothing is there twice, wherever a process ends, or is held up and goes on
 * when others have its place. Method: the contract of windows; then a recovery is stopped at every single request that it makes, before it
 * has its effect, behind it, or only for a while, and another one takes its window over. The test cluster's log is the judge.
 */
import { describe, expect, test } from "bun:test";
import { KafkaClient } from "../../../../src/adapters/kafka/client.ts";
import { recoveryInstance } from "../../../../src/core/coverage/windows.ts";
import type { Authority, LeasedWindow } from "../../../../src/core/ports/coverage.ts";
import type { Life } from "../../../../src/core/ports/host-identity.ts";
import type { Span } from "../../../../src/core/records/stream.ts";
import { sleep } from "../../../../src/core/time/clock.ts";
import { memoryNet } from "../../../brokers/kafka/memory-net.ts";
import {
  KAFKA_LEASE_MS,
  type KafkaWindowProcess,
  kafkaWindowProcess,
  kafkaWindows,
  WINDOW_STREAM,
} from "../../../contract/kafka-windows.ts";
import { windowContract } from "../../../contract/window-contract.ts";
import { SimProcess } from "../../../sim/clock.ts";
import { FakeSinkBench } from "./fake-bench.ts";

windowContract("topics of the test cluster", WINDOW_STREAM, async () => {
  const bench = new FakeSinkBench(7);
  return kafkaWindows(bench, bench.clock, () => bench.run(sleep(bench.clock, KAFKA_LEASE_MS + 1)));
});

const span = (from: number, next: number): Span => ({
  ...{ stream: WINDOW_STREAM, from: BigInt(from), next: BigInt(next) },
});

/** Positions below are recovery's, those from there on live ingest's. */
const HEAD = 8;
const END = 12;

interface Made extends KafkaWindowProcess {
  readonly process: SimProcess;
}

class Fleet {
  readonly bench: FakeSinkBench;
  readonly lives = new Map<string, Life>();

  constructor(seed: number) {
    this.bench = new FakeSinkBench(seed);
  }

  process(instance: string): Made {
    const { bench } = this;
    const process = new SimProcess(instance);
    const clock = bench.time.clock(process);
    const settings = { ...bench.settings, clientId: instance };
    const parts = () => {
      const chance = bench.chance.fork();
      return { ...bench.parts(), clock, chance, net: memoryNet(bench.cluster, { clock, chance }) };
    };
    const made = kafkaWindowProcess(
      {
        ...{ settings, parts, pipeline: bench.pipeline, target: bench.target, judging: clock },
        client: () => new KafkaClient(settings, parts()),
        life: (of) => this.lives.get(of) ?? "unknown",
      },
      instance,
    );
    return { ...made, process };
  }

  /** Stops the process at its request of that number. False: it has not made so many. */
  stopAt(made: Made, request: number, how: "before" | "after" | "held"): { readonly stopped: boolean } {
    const seen = { stopped: false };
    let left = request;
    const see = (r: { readonly clientId: string | null }): boolean => {
      if (seen.stopped || r.clientId !== made.process.name || left-- > 0) return false;
      seen.stopped = true;
      if (how === "held") made.process.paused = true;
      else made.process.alive = false;
      return true;
    };
    const action = how === "before" ? ({ do: "stall" } as const) : ({ do: "delay", ms: 0 } as const);
    this.bench.cluster.script.on({ when: see, action });
    return seen;
  }
}

/** Reads the source, and has let go of what is below the head. */
async function ingest(fleet: Fleet): Promise<{ readonly live: Made; readonly authority: Authority }> {
  const live = fleet.process("live");
  fleet.lives.set("live", "alive");
  await fleet.bench.run(live.coverage.open());
  const [claim] = await fleet.bench.run(live.coverage.claim([WINDOW_STREAM], null, [0]));
  await fleet.bench.run(live.coverage.heartbeat(new Map([[WINDOW_STREAM, BigInt(HEAD)]])));
  return { live, authority: claim!.authority };
}

/** Lands what is missing of the window, in sets of two positions. */
async function fill(made: Made, windows: readonly LeasedWindow[]): Promise<void> {
  for (const { range, covered, authority } of windows)
    for (let from = range.from; from < range.next; from += 2n) {
      const next = from + 2n < range.next ? from + 2n : range.next;
      if (covered.some((c) => c.from < next && from < c.next)) continue;
      const landed = await made.land({ stream: WINDOW_STREAM, from, next }, [authority]);
      if (landed !== "landed") return;
    }
}

/** One run of recovery, start to end. */
async function recovers(made: Made): Promise<void> {
  await made.coverage.open();
  await fill(made, await made.coverage.leaseWindows([span(0, HEAD)]));
  await made.coverage.releaseWindows();
  await made.coverage.close();
}

/** Another one, until nothing is missing. */
async function takesOver(fleet: Fleet, instance: string): Promise<void> {
  const { bench } = fleet;
  const made = fleet.process(instance);
  await bench.run(made.coverage.open());
  for (let look = 0; ; look++) {
    const covered = await bench.run(made.coverage.covered(WINDOW_STREAM));
    if (covered.some((c) => c.from === 0n && c.next >= BigInt(HEAD))) break;
    if (look === 20) throw new Error(`${instance} does not come to an end`);
    await bench.run(fill(made, await bench.run(made.coverage.leaseWindows([span(0, HEAD)]))));
    await bench.run(made.coverage.releaseWindows());
    await bench.run(sleep(bench.clock, KAFKA_LEASE_MS / 2));
    await bench.run(made.coverage.heartbeat());
  }
  await bench.run(made.coverage.close());
}

const ALL = Array.from({ length: END }, (_, n) => `3/${n}`).sort();

describe("a recovery that is stopped at any request", () => {
  for (const how of ["before", "after", "held"] as const)
    test(`${how === "held" ? "and goes on later" : `${how} it has its effect`}: nothing is lost, nothing is there twice`, async () => {
      let stops = 0;
      for (let request = 0; ; request++) {
        const fleet = new Fleet(100 + request);
        const { bench } = fleet;
        const { live, authority } = await ingest(fleet);
        const first = fleet.process(recoveryInstance("first"));
        const at = fleet.stopAt(first, request, how);
        let over = false;
        const run = recovers(first).catch(() => {});
        void run.finally(() => {
          over = true;
        });
        await bench.time.runUntil(() => over || at.stopped, bench.time.nowMs + 600_000);
        if (!at.stopped) {
          expect(over).toBe(true);
          break;
        }
        stops++;
        expect(await bench.run(live.land(span(HEAD, HEAD + 2), [authority]))).toBe("landed");
        await takesOver(fleet, recoveryInstance("second"));
        first.process.paused = false;
        if (how === "held") await bench.run(run);
        expect(await bench.run(live.land(span(HEAD + 2, END), [authority]))).toBe("landed");
        // A process that was held up may have ended what another one had begun.
        await takesOver(fleet, recoveryInstance("third"));
        expect({ request, rows: await bench.values() }).toEqual({ request, rows: ALL });
        expect(await bench.run(live.coverage.covered(WINDOW_STREAM))).toEqual([
          { from: 0n, next: BigInt(END) },
        ]);
        await bench.run(live.close());
      }
      // It opens, leases, lands four sets, and leaves.
      expect(stops).toBeGreaterThan(20);
    }, 120_000);
});
