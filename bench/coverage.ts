/**
 * What coverage costs: ranges joined in memory, checkpoints (an intent and its covering) over one versioned object, and
 * writers that share it. No peer: nothing else keeps such a state. What comes out is checked, or the run fails: every
 * position covered once, no range lost, the object within its limit.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalVersionedStore } from "../src/adapters/coverage/local.ts";
import { MemoryVersionedStore, sharedObject } from "../src/adapters/coverage/memory.ts";
import { LocalObjectStore } from "../src/adapters/object-store/local.ts";
import { systemClock } from "../src/adapters/system/clock.ts";
import { CoverageKeeper } from "../src/core/coverage/keeper.ts";
import { type Ranges, unionRanges } from "../src/core/coverage/ranges.ts";
import type { Intent } from "../src/core/ports/coverage.ts";
import type { VersionedStore, WriteOutcome } from "../src/core/ports/versioned-store.ts";
import { type BenchOptions, cpuSeconds, type Figure, round } from "./figure.ts";

const STREAMS = 64;
/** Ranges of a stream come in this much disorder, as from lanes that seal at different times. */
const DISORDER = 16;
const WRITERS = 16;
const ROWS = 1_000n;

export async function* coverage(o: BenchOptions): AsyncGenerator<Figure> {
  yield ranges(o.small ? 100_000 : 10_000_000);
  yield* inMemory(o.small ? 200 : 100_000);
  yield* onDisk(o.small ? 20 : 2_000);
}

/** `count` ranges over all streams, each appended by itself and joined with what it touches. */
function ranges(count: number): Figure {
  const perStream = Math.ceil(count / STREAMS / DISORDER) * DISORDER;
  const cpu = cpuSeconds();
  const begin = performance.now();
  let largest = 0;
  for (let s = 0; s < STREAMS; s++) {
    let covered: Ranges = [];
    for (let window = 0; window < perStream; window += DISORDER) {
      for (let i = 0; i < DISORDER; i++) {
        // 7 and 16 have no common factor: each of the window comes once.
        const at = BigInt(window + ((i * 7) % DISORDER));
        covered = unionRanges(covered, [{ from: at, next: at + 1n }]);
        if (covered.length > largest) largest = covered.length;
      }
    }
    if (covered.length !== 1 || covered[0]!.next !== BigInt(perStream))
      throw new Error(`stream ${s} has ${covered.length} ranges, the last up to ${covered.at(-1)?.next}`);
  }
  const n = perStream * STREAMS;
  const value = n / ((performance.now() - begin) / 1000);
  const used = ((cpuSeconds() - cpu) / n) * 1e6;
  return { ...ofUs("coverage, ranges appended", "ranges/s", value, n, used), largest_ranges: largest };
}

async function* inMemory(checkpoints: number): AsyncGenerator<Figure> {
  const shared = sharedObject();
  const one = await checkpointed(checkpoints, 1, () => new MemoryVersionedStore(shared));
  yield commits("coverage, checkpoints in memory", one);
  const together = sharedObject();
  const many = await checkpointed(checkpoints / 10, WRITERS, () => new MemoryVersionedStore(together));
  yield commits(`coverage, checkpoints in memory, ${WRITERS} writers`, many);
}

async function* onDisk(checkpoints: number): AsyncGenerator<Figure> {
  for (const writers of [1, WRITERS]) {
    const root = mkdtempSync(join(tmpdir(), "twg-bench-coverage-"));
    try {
      const ran = await checkpointed(checkpoints, writers, () => new LocalVersionedStore(join(root, "c")));
      yield commits(`coverage, checkpoints on disk${writers > 1 ? `, ${writers} writers` : ""}`, ran);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  }
}

interface Checkpointed {
  readonly checkpoints: number;
  readonly seconds: number;
  readonly cpu: number;
  /** Ms of each, sorted. */
  readonly waits: readonly number[];
  readonly writes: number;
  readonly largest: number;
}

/** Keepers side by side, each with streams of its own, all over one object. */
async function checkpointed(
  wanted: number,
  writers: number,
  open: () => VersionedStore,
): Promise<Checkpointed> {
  const each = Math.ceil(wanted / writers);
  const seen = { writes: 0, largest: 0 };
  const mine = Array.from({ length: writers }, (_, i) =>
    Array.from({ length: STREAMS / writers }, (_, s) => streamOf(i, s)),
  );
  const keepers = Array.from({ length: writers }, (_, i) => keeperOf(`w${i}`, counted(open(), seen)));
  for (const k of keepers) await k.open();
  const cpu = cpuSeconds();
  const begin = performance.now();
  const waits = (await Promise.all(keepers.map((k, i) => writeAll(k, i, mine[i]!, each)))).flat();
  const seconds = (performance.now() - begin) / 1000;
  const used = cpuSeconds() - cpu;
  const reader = keeperOf("reader", open());
  await reader.open();
  for (const streams of mine) {
    for (const [s, stream] of streams.entries()) {
      const got = (await reader.covered(stream)).map((r) => `${r.from}-${r.next}`).join(" ");
      const rounds = BigInt(Math.floor((each + streams.length - 1 - s) / streams.length));
      if (got !== (rounds > 0n ? `0-${rounds * ROWS}` : "")) throw new Error(`${stream}: ${got}`);
    }
  }
  for (const k of [...keepers, reader]) await k.close();
  return { checkpoints: each * writers, seconds, cpu: used, waits: waits.sort((a, b) => a - b), ...seen };
}

const streamOf = (writer: number, n: number) => `kafka/cluster/topic/0/${writer * STREAMS + n}`;

/** `mine`: the streams that it writes in turn. */
async function writeAll(
  keeper: CoverageKeeper,
  writer: number,
  mine: readonly string[],
  count: number,
): Promise<number[]> {
  const claims = await keeper.claim(mine, null);
  const waits: number[] = [];
  for (let n = 0; n < count; n++) {
    const s = n % mine.length;
    const from = BigInt(Math.floor(n / mine.length)) * ROWS;
    const id = `${writer}-${n}`;
    const key = `topic=orders/date=2026-01-01/${id}.parquet`;
    const intent: Intent = {
      id,
      targets: [{ key, staging: `staging/${id}`, bytes: 1_000_000, rows: Number(ROWS) }],
      spans: [{ stream: mine[s]!, from, next: from + ROWS }],
      authorities: [claims[s]!.authority],
      rows: Number(ROWS),
      bytes: 1_000_000,
    };
    const begin = performance.now();
    const intended = await keeper.intend([intent]);
    const covered = await keeper.cover([id]);
    if (!intended[0]!.ok || !covered[0]!.ok) throw new Error(`checkpoint ${id} was refused`);
    waits.push(performance.now() - begin);
  }
  return waits;
}

function keeperOf(instance: string, versions: VersionedStore): CoverageKeeper {
  const self = { hostname: "bench", pid: 1, bootId: "b", pidNamespace: "n", startTime: instance };
  // Nothing is staged here: the objects of an intent are looked at by whoever settles what others left.
  const objects = new LocalObjectStore({ root: tmpdir(), staging: join(tmpdir(), "twg-none"), instance });
  return new CoverageKeeper(
    { instance, leaseMs: 600_000, minIntervalMs: 0, shared: true },
    { versions, objects, clock: systemClock, host: { self, isAlive: () => "alive" } },
  );
}

/** Counts what is written. */
function counted(store: VersionedStore, seen: { writes: number; largest: number }): VersionedStore {
  const write = (expected: number | null, bytes: Uint8Array, tag: string): Promise<WriteOutcome> => {
    seen.writes++;
    if (bytes.length > seen.largest) seen.largest = bytes.length;
    return store.write(expected, bytes, tag);
  };
  return {
    place: store.place,
    prepare: () => store.prepare(),
    read: () => store.read(),
    write,
    putSegment: (name, bytes) => store.putSegment(name, bytes),
    getSegment: (name) => store.getSegment(name),
    sweep: (keep) => store.sweep(keep),
  };
}

function commits(bench: string, ran: Checkpointed): Figure {
  const { checkpoints, seconds, cpu, waits, writes, largest } = ran;
  const at = (share: number) => round(waits[Math.min(waits.length - 1, Math.floor(waits.length * share))]!);
  return {
    ...ofUs(bench, "checkpoints/s", checkpoints / seconds, checkpoints, (cpu / checkpoints) * 1e6),
    p50_ms: at(0.5),
    p99_ms: at(0.99),
    writes,
    largest_object_bytes: largest,
  };
}

function ofUs(bench: string, unit: string, value: number, n: number, cpu: number): Figure {
  return {
    bench,
    subject: "twg coverage",
    peer: null,
    unit,
    value: round(value),
    peer_value: null,
    ratio: null,
    hash: null,
    n,
    cpu_per_million: round(cpu),
    peer_cpu_per_million: null,
  };
}
