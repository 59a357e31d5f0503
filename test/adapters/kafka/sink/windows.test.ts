/**
 * Goal: recovery fills a topic beside live ingest, and nothing is there twice, wherever a process ends, or is held up and goes on
 * when others have its place. Method: the contract of windows; then a recovery is stopped at every single request that it makes, before it
 * has its effect, behind it, or only for a while, and another one takes its window over. The test cluster's log is the judge.
 */
import { describe, expect, test } from "bun:test";
import { KafkaClient } from "../../../../src/adapters/kafka/client.ts";
import { KeyedLog } from "../../../../src/adapters/kafka/sink/keyed-log.ts";
import { readCoverageTopic } from "../../../../src/adapters/kafka/sink/reader.ts";
import { decodeRanges, RANGE_PARTITION } from "../../../../src/adapters/kafka/sink/state.ts";
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
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

function rowsOf(from: bigint, next: bigint): string[] {
  return Array.from({ length: Number(next - from) }, (_, n) => `3/${Number(from) + n}`);
}

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
    const windows = await bench.run(made.coverage.leaseWindows([span(0, HEAD)]));
    // Whoever was there before is fenced: what is covered is there, and what is there is covered.
    if (windows.length > 0) {
      const has = await bench.run(made.coverage.covered(WINDOW_STREAM));
      const rows = has.flatMap(({ from, next }) => rowsOf(from, next));
      expect(await bench.values()).toEqual(rows.sort());
    }
    await bench.run(fill(made, windows));
    await bench.run(made.coverage.releaseWindows());
    await bench.run(sleep(bench.clock, KAFKA_LEASE_MS / 2));
    await bench.run(made.coverage.heartbeat());
  }
  await bench.run(made.coverage.close());
}

const ALL = rowsOf(0n, BigInt(END)).sort();

describe("beside live ingest", () => {
  test("a head of an earlier claim says nothing, even one that is told while the claim is made", async () => {
    const fleet = new Fleet(1);
    const { bench } = fleet;
    const { live } = await ingest(fleet);
    const other = fleet.process(recoveryInstance("other"));
    await bench.run(other.coverage.open());
    const ranges = async () =>
      (await bench.run(other.coverage.leaseWindows([span(0, 20)]))).map((w) => [w.range.from, w.range.next]);
    expect(await ranges()).toEqual([[0n, BigInt(HEAD)]]);
    const claim = live.coverage.claim([WINDOW_STREAM], null, [0]);
    const late = live.coverage.heartbeat(new Map([[WINDOW_STREAM, 10n]]));
    await bench.run(Promise.all([claim, late]));
    expect(await ranges()).toEqual([]);
    await bench.run(live.coverage.heartbeat(new Map([[WINDOW_STREAM, 10n]])));
    expect(await ranges()).toEqual([[0n, 10n]]);
    await bench.run(other.close());
    await bench.run(live.close());
  });

  test("claims leave what lands under a lease to its holder, and unite it once the lease is over; many leases are united by grants", async () => {
    const fleet = new Fleet(2);
    const { bench } = fleet;
    const { live } = await ingest(fleet);
    const other = fleet.process(recoveryInstance("other"));
    await bench.run(other.coverage.open());
    const covered = () => bench.run(other.coverage.covered(WINDOW_STREAM));
    const claim = () => bench.run(live.coverage.claim([WINDOW_STREAM], null, [0]));
    const [window] = await bench.run(other.coverage.leaseWindows([span(0, 4)]));
    const rights = [window!.authority];
    for (const from of [0, 2]) {
      expect(await bench.run(other.land(span(from, from + 2), rights))).toBe("landed");
      expect((await claim())[0]?.covered).toEqual([{ from: 0n, next: BigInt(from + 2) }]);
      expect(await covered()).toEqual([{ from: 0n, next: BigInt(from + 2) }]);
    }
    const parts = async () => {
      const client = bench.client();
      const log = new KeyedLog(`cov.${bench.pipeline}`, RANGE_PARTITION, {
        ...{ ...bench.parts(), client, stableMs: 1_000 },
      });
      await bench.run(log.readToEnd(client.life));
      client.close();
      const found = decodeRanges({ pipeline: bench.pipeline, sink: "raw" }, log.entries);
      return [...(found.get(WINDOW_STREAM)?.keys() ?? [])];
    };
    await bench.run(other.coverage.releaseWindows());
    await claim();
    expect((await parts()).every((n) => n >= 0)).toBe(true);
    await bench.run(live.coverage.close());
    for (let from = 4; from < 24; from++) {
      const [next] = await bench.run(other.coverage.leaseWindows([span(from, from + 1)]));
      expect(await bench.run(other.land(span(from, from + 1), [next!.authority]))).toBe("landed");
    }
    expect(await covered()).toEqual([{ from: 0n, next: 24n }]);
    expect((await parts()).length).toBeLessThan(12);
    await bench.run(other.close());
  });

  test("recovery processes have as many transactional ids as there are at a time, whoever is killed", async () => {
    const fleet = new Fleet(3);
    const { bench } = fleet;
    const ids = new Set<string>();
    bench.cluster.script.on({
      ...{ api: "InitProducerId", times: 1_000 },
      action: {
        do: "observe",
        see: (r) => void (r.api === "InitProducerId" && ids.add(r.body.transactionalId ?? "")),
      },
    });
    for (let n = 0; n < 6; n++) {
      const made = fleet.process(recoveryInstance(`p${n}`));
      await bench.run(made.coverage.open());
      const [window] = await bench.run(made.coverage.leaseWindows([span(n, n + 1)]));
      expect(await bench.run(made.land(span(n, n + 1), [window!.authority]))).toBe("landed");
      if (n % 2 === 0) made.process.alive = false;
      else await bench.run(made.close());
      fleet.lives.set(recoveryInstance(`p${n}`), "dead");
    }
    const mine = [...ids].filter((id) => id.includes(".recovery."));
    expect(mine.sort()).toEqual(["twg.p.raw.recovery.0", "twg.p.raw.recovery.1"]);
  });
});

/** The test run takes each n-th request, beginning with another one in each way; 1 takes all. */
const EVERY = Number(process.env.TWG_STOP_EVERY ?? "4");

describe("a recovery that is stopped at any request", () => {
  for (const [first, how] of (["before", "after", "held"] as const).entries())
    test(`${how === "held" ? "and goes on later" : `${how} it has its effect`}: nothing is lost, nothing is there twice`, async () => {
      let stops = 0;
      for (let request = first; ; request += EVERY) {
        const fleet = new Fleet(100 + request);
        const { bench } = fleet;
        const { live, authority } = await ingest(fleet);
        const stopped = fleet.process(recoveryInstance("stopped"));
        const at = fleet.stopAt(stopped, request, how);
        let over = false;
        const run = recovers(stopped).catch(() => {});
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
        stopped.process.paused = false;
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
      expect(stops * EVERY).toBeGreaterThan(40);
    }, 120_000);
});

test("whoever only looks sees what recovery has filled of a stream that live ingest never claimed", async () => {
  const fleet = new Fleet(11);
  const { bench } = fleet;
  await bench.run(recovers(fleet.process(recoveryInstance("r"))));
  const key = { pipeline: bench.pipeline, sink: "raw" };
  const looks = { ...bench.parts(), clock: bench.clock, client: bench.client() };
  const seen = await bench.run(readCoverageTopic(key, `cov.${bench.pipeline}`, looks));
  expect(seen?.streams.get(WINDOW_STREAM)?.covered).toEqual([{ from: 0n, next: BigInt(HEAD) }]);

  // Where it may not be read it is not as if nothing had landed.
  bench.cluster.topic(`cov.${bench.pipeline}`).error = ERROR.TOPIC_AUTHORIZATION_FAILED;
  const denied = readCoverageTopic(key, `cov.${bench.pipeline}`, { ...looks, client: bench.client() });
  expect(await bench.run(denied.catch((e) => e))).toMatchObject({ code: "kafka.topic_denied" });
  await bench.close();
});
