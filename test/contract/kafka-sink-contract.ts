/**
 * What the Kafka sink must do over any brokers: one owner, rising generations, ranges and losses that are never forgotten,
 * and nothing that a former owner writes is ever committed. Several benches' processes share one cluster; each has its own
 * client, as processes have. What readers of committed records find in the topic is the judge.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { KafkaClient } from "../../src/adapters/kafka/client.ts";
import { KafkaCoverage } from "../../src/adapters/kafka/sink/coverage.ts";
import { LaneTransactions } from "../../src/adapters/kafka/sink/lane-transactions.ts";
import type { HeaderChoice } from "../../src/adapters/kafka/sink/metadata-headers.ts";
import { readCoverageTopic } from "../../src/adapters/kafka/sink/reader.ts";
import type { TransactionPoint, TransactionSetParts } from "../../src/adapters/kafka/sink/set.ts";
import type { KafkaSinkSettings } from "../../src/adapters/kafka/sink/settings.ts";
import { KafkaWriter } from "../../src/adapters/kafka/sink/writer.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import type { Authority, Claim } from "../../src/core/ports/coverage.ts";
import type { HostIdentity, Life } from "../../src/core/ports/host-identity.ts";
import type { SetFiles, SetRefusal } from "../../src/core/ports/lane-parts.ts";
import { type StreamId, streamKey } from "../../src/core/records/stream.ts";
import { batchOf, bytes, type Row, row, STREAM } from "../core/formats/parquet/rows.ts";

export interface SinkBench {
  readonly settings: KafkaSinkSettings;
  /** A name that no other test uses; `copy.orders` is written to, with four partitions. */
  readonly pipeline: string;
  readonly target: string;
  /** A topic that takes no record without a key, with one partition. */
  compacted(): Promise<string>;
  client(): KafkaClient;
  parts(): Omit<TransactionSetParts, "writer" | "hook">;
  /** Lets time pass until the work is done. */
  run<T>(work: Promise<T>): Promise<T>;
  /** Values of committed records of the target, or of a topic with so many partitions; sorted. */
  values(topic?: string, partitions?: number): Promise<readonly string[]>;
  close(): Promise<void>;
}

export interface ProcessOptions {
  readonly shared?: boolean;
  readonly life?: Life;
  readonly headers?: HeaderChoice;
  readonly hook?: (point: TransactionPoint) => void;
}

const LEASE_MS = 400;
const S = streamKey(STREAM);
const OTHER: StreamId = { ...STREAM, partition: 1 };
const S2 = streamKey(OTHER);
const range = (from: number, next: number) => ({ from: BigInt(from), next: BigInt(next) });
const NO_HEADERS: HeaderChoice = { choice: "none", prefix: "_twg_", pipeline: "p" };

let serial = 0;

/** A process with one lane. */
export class Process {
  readonly instance = `i${serial++}`;
  readonly coverage: KafkaCoverage;
  writer: KafkaWriter;
  lane = 0;
  #lane: LaneTransactions | null = null;
  readonly #bench: SinkBench;
  readonly #o: ProcessOptions;
  #sets = 0;

  constructor(bench: SinkBench, options: ProcessOptions = {}) {
    this.#bench = bench;
    this.#o = options;
    const host: HostIdentity = {
      self: { hostname: "h", pid: 1, bootId: "b", pidNamespace: "n", startTime: this.instance },
      isAlive: () => options.life ?? "dead",
    };
    const { pipeline } = bench;
    this.coverage = new KafkaCoverage(
      {
        key: { pipeline, sink: "raw" },
        rules: {
          topic: bench.target,
          create: false,
          same: false,
          coverageTopic: `cov.${pipeline}`,
          coverageReplicas: 1,
        },
        idPrefix: `twg.${pipeline}.raw`,
        instance: this.instance,
        leaseMs: LEASE_MS,
        transactionTimeoutMs: 20_000,
        shared: options.shared ?? false,
      },
      { ...bench.parts(), client: bench.client(), host, laneLife: () => this.life },
    );
    this.writer = this.#newWriter();
  }

  get life(): string {
    return `${this.instance}.${this.lane}`;
  }

  /** The lane died: another thread has its number. */
  replaceLane(): void {
    this.lane++;
    this.writer = this.#newWriter();
  }

  #newWriter(): KafkaWriter {
    this.#lane = null;
    return this.anotherWriter(false);
  }

  /** One more of the lane. `late`: it sends nothing before its seal. */
  anotherWriter(late: boolean, target = this.#bench.target): KafkaWriter {
    const { settings, pipeline } = this.#bench;
    const { headers = NO_HEADERS, hook } = this.#o;
    const options = {
      settings,
      key: { pipeline, sink: "raw" },
      coverageTopic: `cov.${pipeline}`,
      compression: "lz4",
      compressionLevel: null,
      batchBytes: 100_000,
      transactionTimeoutMs: 20_000,
      topic: target,
      samePartition: false,
      headers,
      commitBytes: 1 << 20,
      late,
    } as const;
    const parts = { ...this.#bench.parts(), writer: this.life, ...(hook === undefined ? {} : { hook }) };
    this.#lane ??= new LaneTransactions(options, parts);
    return new KafkaWriter(options, parts, this.#lane);
  }

  open(): Promise<void> {
    return this.#bench.run(this.coverage.open());
  }

  claim(...streams: readonly string[]): Promise<readonly Claim[]> {
    return this.#bench.run(
      this.coverage.claim(
        streams,
        null,
        streams.map(() => 0),
      ),
    );
  }

  /** Rows [from, next) with their offset as value. */
  begin(from: number, next: number, [authority]: readonly Authority[], stream: StreamId = STREAM): number {
    this.writer.open(`${this.instance}-${this.#sets++}`);
    return this.add(from, next, authority!, stream);
  }

  add(from: number, next: number, authority: Authority, stream: StreamId = STREAM): number {
    const rows = Array.from({ length: next - from }, (_, i) =>
      row(from + i, { value: bytes(`${stream.partition}/${from + i}`) }),
    );
    return this.writer.write(batchOf(rows, stream), authority);
  }

  flush(): Promise<void> {
    return this.#bench.run(this.writer.flush());
  }

  seal(
    from: number,
    next: number,
    authorities: readonly Authority[],
    stream: StreamId = STREAM,
  ): Promise<SetFiles | SetRefusal> {
    const span = { stream: streamKey(stream), ...range(from, next) };
    return this.#bench.run(this.#retried(() => this.writer.seal([span], authorities)));
  }

  /** As a lane does: what is told once is tried again. */
  async #retried<T>(work: () => Promise<T>): Promise<T> {
    return work().catch((e) =>
      e instanceof Failure && e.kind === "environment" ? work() : Promise.reject(e),
    );
  }

  async land(
    from: number,
    next: number,
    authorities: readonly Authority[],
    stream: StreamId = STREAM,
  ): Promise<SetFiles | SetRefusal> {
    this.begin(from, next, authorities, stream);
    return this.seal(from, next, authorities, stream);
  }

  async close(): Promise<void> {
    await this.#bench.run(this.writer.abort());
    await this.#bench.run(this.coverage.close());
  }
}

/** A batch above is refused by the target. */
export const MOST_BYTES = 60_000;
const TOO_LARGE = MOST_BYTES + 10_000;

export const rightsOf = (claims: readonly Claim[]): Authority[] => claims.map((c) => c.authority);
const generations = (claims: readonly Claim[]) =>
  claims.map((c) => (c.authority.kind === "generation" ? c.authority.generation : -1));
const numbers = (from: number, next: number, partition = STREAM.partition) =>
  Array.from({ length: next - from }, (_, i) => `${partition}/${from + i}`);

export function kafkaSinkContract(name: string, make: () => Promise<SinkBench>): void {
  describe(`Kafka sink over ${name}`, () => {
    let bench: SinkBench;
    const open: Process[] = [];
    beforeEach(async () => {
      bench = await make();
    });
    afterEach(async () => {
      for (const p of open.splice(0)) await p.close();
      await bench.close();
    });

    function process(options: ProcessOptions = {}): Process {
      const made = new Process(bench, options);
      open.push(made);
      return made;
    }
    async function opened(options: ProcessOptions = {}): Promise<Process> {
      const p = process(options);
      await p.open();
      return p;
    }
    const code = (work: Promise<unknown>): Promise<string> =>
      work.then(
        () => "none",
        (e: unknown) => (e instanceof Failure ? e.code : String(e)),
      );
    const landed = async (...parts: readonly string[][]) =>
      expect(await bench.values()).toEqual(parts.flat().sort());
    const covered = (p: Process, stream = S) => bench.run(p.coverage.covered(stream));

    test("a living owner is not displaced, a dead one is, one of unknown fate is given the lease", async () => {
      const first = await opened();
      expect(await code(process({ life: "alive" }).open())).toBe("coverage.owned");
      // It says nothing for the whole lease: it has lost it.
      const later = await opened({ life: "unknown" });
      expect(await code(bench.run(first.coverage.heartbeat()))).toBe("coverage.fenced");
      expect(first.coverage.fenced?.code).toBe("coverage.fenced");
      expect(await code(first.claim(S))).toBe("coverage.fenced");
      expect(await code(bench.run(later.coverage.heartbeat()))).toBe("none");
      let over = false;
      const waits = code(process({ life: "unknown" }).coverage.open()).finally(() => {
        over = true;
      });
      const beats = (async () => {
        while (!over) await later.coverage.heartbeat();
      })();
      expect(await bench.run(waits)).toBe("coverage.owned");
      await bench.run(beats);
    });

    test("an owner that leaves makes room at once, and leaves nothing but what it landed", async () => {
      const first = await opened();
      const rights = rightsOf(await first.claim(S));
      expect(await first.land(0, 5, rights)).toMatchObject({ covered: true, rows: 5 });
      await bench.run(first.coverage.heartbeat());
      await first.close();
      const second = await opened({ life: "alive" });
      const [claim] = await second.claim(S);
      expect(claim?.covered).toEqual([range(0, 5)]);
      const key = { pipeline: bench.pipeline, sink: "raw" };
      const parts = { ...bench.parts(), client: bench.client() };
      const state = await bench.run(readCoverageTopic(key, `cov.${bench.pipeline}`, parts));
      expect(state?.owners.map((o) => [o.instance, o.beat])).toEqual([[second.instance, 0]]);
      expect(state?.segments[0]).toMatchObject({ rows: 5 });
      parts.client.close();
    });

    test("two that enter at the same moment: one of them has it", async () => {
      const [a, b] = [process(), process()];
      await bench.run(Promise.allSettled([a.coverage.open(), b.coverage.open()]));
      const alive = [
        await code(bench.run(a.coverage.heartbeat())),
        await code(bench.run(b.coverage.heartbeat())),
      ];
      expect(alive.sort()).toEqual(["coverage.fenced", "none"]);
    });

    test("generations rise with every claim; an older group epoch raises none", async () => {
      const p = await opened();
      const claim = async (epoch: number | null) =>
        generations(await bench.run(p.coverage.claim([S, S2], epoch, [0, 0])));
      expect(await claim(null)).toEqual([1, 1]);
      expect(await claim(5)).toEqual([2, 2]);
      expect(await code(claim(4))).toBe("coverage.epoch_behind");
      expect(await claim(5)).toEqual([3, 3]);
    });

    test("what landed is covered for whoever claims next, holes stay, and claims unite it in one record", async () => {
      let p = await opened();
      let rights = rightsOf(await p.claim(S, S2));
      expect(await p.land(0, 3, rights)).toMatchObject({ covered: true });
      expect(await p.land(3, 6, rights)).toMatchObject({ covered: true });
      expect(await p.land(8, 9, rights)).toMatchObject({ covered: true });
      expect(await p.land(0, 2, rights.slice(1), OTHER)).toMatchObject({ covered: true });
      // A set without rows: compaction holes, and what was left out.
      expect(await p.seal(9, 12, rights)).toMatchObject({ covered: true, rows: 0 });
      for (let i = 0; i < 3; i++) {
        p = await opened();
        const claims = await p.claim(S, S2);
        expect(claims.map((c) => c.covered)).toEqual([[range(0, 6), range(8, 12)], [range(0, 2)]]);
        rights = rightsOf(claims);
      }
      expect(await p.land(6, 8, rights)).toMatchObject({ covered: true });
      expect(await covered(p)).toEqual([range(0, 12)]);
      await landed(numbers(0, 9), numbers(0, 2, OTHER.partition));
    });

    test("a set that began under a claim that was superseded is refused, however late it comes", async () => {
      const a = await opened({ shared: true, life: "alive" });
      const b = await opened({ shared: true, life: "alive" });
      const before = rightsOf(await a.claim(S));
      expect(await a.land(0, 2, before)).toMatchObject({ covered: true });
      a.begin(2, 5, before);
      await a.flush();
      const [claim] = await b.claim(S);
      expect(claim?.covered).toEqual([range(0, 2)]);
      expect(await a.seal(2, 5, before)).toMatchObject({ refused: "fenced" });
      // Its lane has no producer any more, and must not get one that would be good again.
      expect(await a.land(2, 5, before)).toMatchObject({ refused: "fenced" });
      expect(await b.land(2, 5, rightsOf([claim!]))).toMatchObject({ covered: true });
      await landed(numbers(0, 5));
    });

    test("rights that are used for the first time after another claim are as void", async () => {
      const a = await opened({ shared: true, life: "alive" });
      const b = await opened({ shared: true, life: "alive" });
      const late = rightsOf(await a.claim(S));
      const rights = rightsOf(await b.claim(S));
      expect(await b.land(0, 4, rights)).toMatchObject({ covered: true });
      expect(await a.land(0, 4, late)).toMatchObject({ refused: "fenced" });
      expect(await covered(a)).toEqual([range(0, 4)]);
      await landed(numbers(0, 4));
    });

    test("members that claim the same stream at once: generations differ, and only the last of them writes", async () => {
      const members = [0, 1, 2].map(() => process({ shared: true, life: "alive" }));
      for (const m of members) await m.open();
      const claims = await bench.run(Promise.all(members.map((m) => m.coverage.claim([S], null, [0]))));
      const raised = claims.flatMap(generations);
      expect([...raised].sort()).toEqual([1, 2, 3]);
      const last = raised.indexOf(3);
      const answers: (SetFiles | SetRefusal)[] = [];
      for (const [i, m] of members.entries()) answers.push(await m.land(0, 3, rightsOf(claims[i]!)));
      expect(answers.map((x) => "covered" in x)).toEqual(members.map((_, i) => i === last));
      await landed(numbers(0, 3));
    });

    test("a stream that was released goes without a pause for the others of its lane", async () => {
      const a = await opened({ shared: true, life: "alive" });
      const b = await opened({ shared: true, life: "alive" });
      const rights = rightsOf(await a.claim(S, S2));
      expect(await a.land(0, 2, rights)).toMatchObject({ covered: true });
      await bench.run(a.coverage.release([S]));
      const [claim] = await b.claim(S);
      expect(claim?.covered).toEqual([range(0, 2)]);
      expect(await a.land(0, 2, rights.slice(1), OTHER)).toMatchObject({ covered: true });
      expect(await b.land(2, 3, rightsOf([claim!]))).toMatchObject({ covered: true });
      await landed(numbers(0, 3), numbers(0, 2, OTHER.partition));
    });

    test("a lane that was replaced writes under its new claim only", async () => {
      const p = await opened();
      const before = rightsOf(await p.claim(S));
      p.begin(0, 3, before);
      await p.flush();
      const old = p.writer;
      p.replaceLane();
      expect(await p.land(0, 3, before)).toMatchObject({ refused: "fenced" });
      const rights = rightsOf(await p.claim(S));
      expect(await p.land(0, 3, rights)).toMatchObject({ covered: true });
      const span = { stream: S, ...range(0, 3) };
      expect(await bench.run(old.seal([span], before))).toMatchObject({ refused: "fenced" });
      await landed(numbers(0, 3));
    });

    test("a stream that is claimed anew while its set is open belongs into the next set", async () => {
      const p = await opened();
      const first = rightsOf(await p.claim(S));
      expect(p.begin(0, 2, first)).toBe(2);
      const [claim] = await p.claim(S);
      expect(p.add(2, 4, claim!.authority)).toBe(0);
      expect(await p.seal(0, 2, rightsOf([claim!]))).toMatchObject({ refused: "fenced" });
      expect(await p.land(0, 4, rightsOf([claim!]))).toMatchObject({ covered: true });
      await landed(numbers(0, 4));
    });

    test("positions that are covered under the same claim are refused a second time", async () => {
      const p = await opened();
      const rights = rightsOf(await p.claim(S));
      expect(await p.land(0, 4, rights)).toMatchObject({ covered: true });
      expect(await p.land(3, 5, rights)).toMatchObject({ refused: "overlap" });
      // Its records are in a transaction that is open still: the next set under this identity would commit them.
      expect(await p.land(4, 6, rights)).toMatchObject({ refused: "fenced" });
      // As whoever was refused does: it ends what was begun.
      await p.claim(S);
      await landed(numbers(0, 4));
    });

    /** Seals rows in a writer beside the primary one; those of `bad` are made by `spoil`. */
    async function beside(
      writer: KafkaWriter,
      rights: readonly Authority[],
      [from, next]: readonly [number, number],
      bad: readonly number[],
      spoil: Partial<Row>,
    ): Promise<SetFiles | SetRefusal> {
      writer.open(`beside-${from}`);
      const rows = Array.from({ length: next - from }, (_, i) => {
        const at = from + i;
        const fine = { key: bytes(`k${at}`), value: bytes(`3/${at}`) };
        return row(at, bad.includes(at) ? { ...fine, ...spoil } : fine);
      });
      expect(writer.write(batchOf(rows), rights[0]!)).toBe(rows.length);
      return bench.run(writer.seal([{ stream: S, ...range(from, next) }], rights));
    }
    const holes = (...at: readonly number[]) => at.map((n) => ({ stream: S, ...range(n, n + 1) }));

    test("records that are too large for the topic are left out beside the primary sink: a hole each, all others land", async () => {
      const p = await opened();
      const rights = rightsOf(await p.claim(S));
      const writer = p.anotherWriter(true);
      const large = { value: crypto.getRandomValues(new Uint8Array(TOO_LARGE)) };
      const bad = [0, 33, 34, 79];
      expect(await beside(writer, rights, [0, 80], bad, large)).toMatchObject({
        ...{ covered: true, rows: 76 },
        leftOut: {
          codes: [["kafka.record_too_large", 4]],
          uncovered: [...holes(0), { stream: S, ...range(33, 35) }, ...holes(79)],
        },
      });
      // The sequences go on behind them.
      expect(await beside(writer, rights, [80, 90], [], {})).toEqual({
        ...{ targets: [], covered: true, rows: 10, bytes: expect.any(Number) },
      });
      expect(await covered(p)).toEqual([range(1, 33), range(35, 79), range(80, 90)]);
      await landed(numbers(0, 90).filter((n) => !bad.some((b) => n === `3/${b}`)));
      // A topic that takes not one of many is at fault itself.
      const every = Array.from({ length: 12 }, (_, i) => 90 + i);
      expect(await beside(writer, rights, [90, 102], every, large)).toMatchObject({ refused: "gone" });
      const [claim] = await p.claim(S);
      expect(claim?.covered).toEqual([range(1, 33), range(35, 79), range(80, 90)]);
      // Once it takes a record its hole is filled as any other gap.
      expect(await beside(writer, rightsOf([claim!]), [33, 35], [], {})).toMatchObject({ covered: true });
      expect(await covered(p)).toEqual([range(1, 79), range(80, 90)]);
    });

    test("so are records without a key, of a compacted topic", async () => {
      const p = await opened();
      const rights = rightsOf(await p.claim(S));
      const topic = await bench.compacted();
      const writer = p.anotherWriter(true, topic);
      // A topic that was just made may be a moment away: what was sent to it then may be anywhere, and is not left out.
      expect(await beside(writer, rights, [0, 3], [], {})).toMatchObject({ covered: true, rows: 3 });
      expect(await beside(writer, rights, [3, 33], [7, 20], { key: null })).toMatchObject({
        ...{ covered: true, rows: 28 },
        leftOut: { codes: [["kafka.record_refused", 2]], uncovered: holes(7, 20) },
      });
      expect(await covered(p)).toEqual([range(0, 7), range(8, 20), range(21, 33)]);
      expect(await bench.values(topic, 1)).toHaveLength(31);
    });

    test("a set that was left in the middle takes its identity along", async () => {
      const p = await opened();
      const rights = rightsOf(await p.claim(S));
      p.begin(0, 4, rights);
      await p.flush();
      await bench.run(p.writer.abort());
      expect(await p.land(0, 4, rights)).toMatchObject({ refused: "fenced" });
      expect(await p.land(0, 4, rightsOf(await p.claim(S)))).toMatchObject({ covered: true });
      await landed(numbers(0, 4));
    });

    test("sets of a lane that are filled beside each other land one after the other, and one that is dropped leaves nothing", async () => {
      const p = await opened();
      const [authority] = rightsOf(await p.claim(S));
      const writers = [0, 1, 2].map(() => p.anotherWriter(true));
      for (const [i, writer] of writers.entries()) {
        writer.open(`set-${i}`);
        const rows = [0, 1].map((n) => row(2 * i + n, { value: bytes(`3/${2 * i + n}`) }));
        expect(writer.write(batchOf(rows), authority!)).toBe(2);
        await bench.run(writer.flush());
        expect(writer.held).toBeGreaterThan(0);
      }
      const seal = (i: number) =>
        bench.run(writers[i]!.seal([{ stream: S, ...range(2 * i, 2 * i + 2) }], [authority!]));
      expect(await seal(0)).toMatchObject({ covered: true });
      await bench.run(writers[1]!.abort());
      expect(await seal(2)).toMatchObject({ covered: true });
      expect(await covered(p)).toEqual([range(0, 2), range(4, 6)]);
      await landed(numbers(0, 2), numbers(4, 6));
    });

    test("losses are united by reason, the first origin stays, topics are remembered, leases rise", async () => {
      const a = await opened();
      const lost = (from: number, next: number, reason: "retention" | "accepted_gap") =>
        bench.run(a.coverage.recordLost([{ stream: S, ...range(from, next), reason }]));
      await lost(0, 5, "retention");
      await lost(5, 9, "retention");
      await lost(20, 21, "accepted_gap");
      await bench.run(a.coverage.rememberOrigins([{ stream: S, position: 70n, staleCommit: 1000n }]));
      await bench.run(a.coverage.rememberOrigins([{ stream: S, position: 99n, staleCommit: null }]));
      for (const topic of ["orders", "__proto__", "a/b c"]) {
        expect(await bench.run(a.coverage.topic(topic))).toBeNull();
        await bench.run(a.coverage.rememberTopic(topic, { topicId: "id-1", incarnation: 1 }));
      }
      expect(await bench.run(a.coverage.lease("w"))).toEqual({ kind: "lease", window: "w", lease: 1 });
      const b = await opened();
      const [claim] = await b.claim(S);
      expect([claim?.lost, claim?.origin, claim?.staleCommit]).toEqual([
        [range(0, 9), range(20, 21)],
        70n,
        1000n,
      ]);
      for (const topic of ["orders", "__proto__", "a/b c"])
        expect(await bench.run(b.coverage.topic(topic))).toEqual({ topicId: "id-1", incarnation: 1 });
      expect(await bench.run(b.coverage.lease("w"))).toMatchObject({ lease: 2 });
    });
  });
}
