/**
 * The Kafka source between the test cluster and a host that checks every promise of the port: frames of a stream
 * follow each other without gap or overlap, hold whole batches and their exact span, carry the current attempt, and
 * every buffer comes back. Time, chance and the network are simulated, so a seed replays a run.
 */
import { kafkaSettings } from "../../../src/adapters/kafka/settings.ts";
import { KafkaSource, type KafkaSourceSettings } from "../../../src/adapters/kafka/source.ts";
import { kafkaSourceSpec } from "../../../src/adapters/kafka/spec.ts";
import { systemSaslCrypto } from "../../../src/adapters/system/sasl-crypto.ts";
import type { Resolved } from "../../../src/core/config/secret.ts";
import type { Failure } from "../../../src/core/failure/failure.ts";
import type { Observer } from "../../../src/core/ports/observer.ts";
import type { FoundStream, SourceHost, StreamStart } from "../../../src/core/ports/source.ts";
import type { Frame, FrameBundle } from "../../../src/core/records/frame.ts";
import type { Clock } from "../../../src/core/time/clock.ts";
import { buildBatch, type RecordSpec } from "../../brokers/kafka/batch-builder.ts";
import { type ClusterOptions, FakeCluster } from "../../brokers/kafka/cluster.ts";
import { type MemoryNetOptions, memoryNet } from "../../brokers/kafka/memory-net.ts";
import { SeededChance } from "../../sim/chance.ts";
import { SimTime, settleJobs } from "../../sim/clock.ts";

export interface BenchOptions {
  readonly cluster?: Omit<ClusterOptions, "clock">;
  /** Reads the same cluster in the same time. */
  readonly beside?: SourceBench;
  readonly lanes?: number;
  readonly seed?: number;
  readonly net?: Partial<MemoryNetOptions>;
  /** As under [source]; bootstrap is filled in. */
  readonly source?: Record<string, unknown>;
  readonly settings?: Partial<KafkaSourceSettings>;
  /** Of the record before where a stream begins, as coverage has it. */
  readonly leaderEpoch?: number;
  /** What the source is told of the time by, made of the simulated clock: to see its timers. */
  readonly sourceClock?: (clock: Clock) => Clock;
  readonly observer?: Observer;
  /** Where a stream without a commit begins. */
  readonly begin?: "earliest" | "latest";
}

export interface BenchStream {
  readonly start: StreamStart;
  readonly found: FoundStream;
  position: bigint;
  attempt: number;
  end: bigint;
  readonly frames: Frame[];
}

export class SourceBench implements SourceHost {
  readonly time: SimTime;
  readonly clock: Clock;
  readonly cluster: FakeCluster;
  readonly source: KafkaSource;
  readonly lanes: number;
  readonly streams: BenchStream[] = [];
  readonly begun: (readonly FoundStream[])[] = [];
  readonly troubles: Failure[] = [];
  readonly losses: { stream: number; from: bigint; next: bigint; reason: string }[] = [];
  /** Broken promises of the source; empty in every test. */
  readonly broken: string[] = [];
  readonly outstanding = new Set<ArrayBuffer>();
  readonly rooms: number[];
  /** Partitions that are known and not begun, as last told. */
  awaiting = -1;
  /** Streams that are gone. */
  readonly ended: number[] = [];
  /** Streams that were given up, in good order and not. */
  readonly released: number[] = [];
  readonly abandoned: number[] = [];
  /** Under which epoch each set of streams was begun. */
  readonly epochs: (number | null)[] = [];
  onRelease: (streams: readonly number[]) => Promise<void> = async () => {};
  /** As a host that finds its stream elsewhere by the time the loss is recorded does not. */
  movesOnLoss = true;
  healthies = 0;
  bundles = 0;
  /** "running", "ended", or the code of the failure. */
  outcome = "running";
  failure: Failure | null = null;
  /** Simulated time at which the run ended. */
  endedAt = -1;
  onAwaited: (partitions: number) => void = () => {};
  onBegin: (found: readonly FoundStream[]) => Promise<void> = async () => {};
  readonly #wakes: (() => void)[][];
  /** Given up, or about to be: nothing more of them may come. */
  readonly #given = new Set<number>();
  readonly #begin: "earliest" | "latest";
  readonly #leaderEpoch: number | undefined;

  constructor(options: BenchOptions = {}) {
    const chance = new SeededChance(options.seed ?? 1);
    this.time = options.beside?.time ?? new SimTime();
    this.clock = this.time.clock(null);
    this.#begin = options.begin ?? "earliest";
    this.#leaderEpoch = options.leaderEpoch;
    this.cluster = options.beside?.cluster ?? new FakeCluster({ clock: this.clock, ...options.cluster });
    this.lanes = options.lanes ?? 1;
    this.rooms = Array.from({ length: this.lanes }, () => 1 << 26);
    this.#wakes = this.rooms.map(() => []);
    const net = memoryNet(this.cluster, { clock: this.clock, chance, ...options.net });
    const spec = kafkaSourceSpec.parse({
      bootstrap: this.cluster.bootstrap,
      ...(options.source?.topics_pattern === undefined ? { topics: ["orders"] } : {}),
      ...options.source,
    });
    // Secrets are given as literals in these tests, which the spec has made `Secret`s already.
    const settings = { ...kafkaSettings(spec as Resolved<typeof spec>, "0"), ...options.settings };
    this.source = new KafkaSource(settings, {
      net,
      clock: options.sourceClock?.(this.clock) ?? this.clock,
      chance,
      crypto: systemSaslCrypto,
      ...(options.observer === undefined ? {} : { observer: options.observer }),
    });
  }

  /** Runs the source in the background; its end shows in `outcome`. */
  start(): this {
    this.source.run(this).then(
      () => {
        this.outcome = "ended";
        this.endedAt = this.time.nowMs;
      },
      (f: Failure) => {
        this.outcome = f.code;
        this.failure = f;
        this.endedAt = this.time.nowMs;
      },
    );
    return this;
  }

  /** Lets simulated time pass until `done`, or fails with what there is to know. */
  async until(done: () => boolean, limitMs = 60_000): Promise<void> {
    if (await this.time.runUntil(done, this.time.nowMs + limitMs)) return;
    const where = this.streams.map((s) => `${s.found.topic}/${s.found.partition}@${s.position}`).join(" ");
    const troubles = this.troubles.slice(-5).map((f) => `${f.code}: ${f.message}`);
    throw new Error(`not within ${limitMs} ms: ${this.outcome} ${where}\n${troubles.join("\n")}`);
  }

  async pass(ms: number): Promise<void> {
    await this.time.runUntil(() => false, this.time.nowMs + ms);
  }

  caughtUp(): boolean {
    return (
      this.streams.length > 0 &&
      this.streams.every((s) => {
        const topic = this.cluster.topics.get(s.found.topic);
        if (topic === undefined || (s.found.topicId ?? topic.id) !== topic.id) return true;
        return s.position >= topic.partitions[s.found.partition]!.log.end;
      })
    );
  }

  async close(): Promise<void> {
    let closed = false;
    const closing = this.source.close().then(() => {
      closed = true;
    });
    await this.until(() => closed, 5_000);
    await closing;
    // What was on its way to a closed connection is dropped without an answer.
    await settleJobs();
  }

  fill(topic: string, partition: number, batches: number, records = 3): void {
    for (let i = 0; i < batches; i++) {
      const specs: RecordSpec[] = Array.from({ length: records }, (_, n) => ({
        value: `${topic} ${i} ${n}`,
      }));
      this.cluster.append(topic, partition, buildBatch({ records: specs }));
    }
  }

  stream(topic: string, partition: number): BenchStream {
    const found = this.streams.findLast((s) => s.found.topic === topic && s.found.partition === partition);
    if (found === undefined) throw new Error(`${topic}/${partition} was not begun`);
    return found;
  }

  setRoom(lane: number, bytes: number): void {
    this.rooms[lane] = bytes;
    if (bytes > 0) for (const wake of this.#wakes[lane]!.splice(0)) wake();
  }

  /** As the runner does: lane and position first, then the source. */
  seek(stream: number, position: bigint): void {
    const s = this.streams[stream]!;
    s.position = position;
    s.attempt++;
    this.source.seek(stream, position, s.attempt);
  }

  // ---- SourceHost

  async release(streams: readonly number[]): Promise<void> {
    for (const s of streams) this.#given.add(s);
    await this.onRelease(streams);
    this.released.push(...streams);
  }

  async abandon(streams: readonly number[]): Promise<void> {
    for (const s of streams) this.#given.add(s);
    this.abandoned.push(...streams);
  }

  async begin(found: readonly FoundStream[], epoch: number | null): Promise<readonly StreamStart[]> {
    this.begun.push(found);
    this.epochs.push(epoch);
    await this.onBegin(found);
    return found.map((f) => {
      const stream = this.streams.length;
      const incarnation = this.streams.filter(
        (s) => s.found.topic === f.topic && s.found.partition === f.partition,
      );
      const fallback = this.#begin === "earliest" || f.appeared === true ? f.earliest : f.latest;
      const stale = incarnation.length > 0 && f.committed !== null;
      const position = (stale ? null : f.committed) ?? f.startAt ?? fallback;
      const id = {
        transport: f.transport,
        cluster: f.cluster,
        topic: f.topic,
        partition: f.partition,
        incarnation: incarnation.length,
      };
      const known = this.#leaderEpoch === undefined ? {} : { leaderEpoch: this.#leaderEpoch };
      const lane = stream % this.lanes;
      const start: StreamStart = { id, stream, lane, position, attempt: 0, stale, ...known };
      this.streams.push({ start, found: f, position, attempt: 0, end: f.latest, frames: [] });
      return start;
    });
  }

  room(lane: number): number {
    return this.rooms[lane]!;
  }

  awaited(partitions: number): void {
    this.onAwaited(partitions);
    this.awaiting = partitions;
  }

  async gone(stream: number): Promise<void> {
    this.ended.push(stream);
  }

  whenRoom(lane: number, wake: () => void): void {
    this.#wakes[lane]!.push(wake);
  }

  takeBuffer(bytes: number): ArrayBuffer {
    // Larger than asked, as from a pool, and full of old bytes.
    const buffer = new ArrayBuffer(bytes + 64);
    new Uint8Array(buffer).fill(0xa5);
    this.outstanding.add(buffer);
    return buffer;
  }

  giveBuffer(buffer: ArrayBuffer): void {
    if (!this.outstanding.delete(buffer)) this.broken.push("a buffer was given back that was not out");
  }

  deliver(lane: number, bundle: FrameBundle): void {
    this.bundles++;
    this.giveBuffer(bundle.buffer);
    if (bundle.frames.length === 0) this.broken.push("a bundle without frames");
    for (const frame of bundle.frames) this.#take(lane, frame, bundle.buffer);
  }

  #take(lane: number, frame: Frame, buffer: ArrayBuffer): void {
    const s = this.streams[frame.stream];
    if (s === undefined || s.start.lane !== lane) {
      this.broken.push(`frame of stream ${frame.stream} on lane ${lane}`);
      return;
    }
    const at = `${s.found.topic}/${s.found.partition}`;
    if (this.#given.has(frame.stream)) this.broken.push(`${at}: a frame though it was given up`);
    if (frame.attempt !== s.attempt) this.broken.push(`${at}: attempt ${frame.attempt}, now ${s.attempt}`);
    if (frame.from !== s.position) this.broken.push(`${at}: from ${frame.from}, expected ${s.position}`);
    const next = nextOfWholeBatches(new Uint8Array(buffer, frame.start, frame.end - frame.start));
    if (next !== frame.next) this.broken.push(`${at}: next ${frame.next}, its batches end at ${next}`);
    s.position = frame.next;
    s.frames.push(frame);
  }

  watermark(stream: number, end: bigint, _start: bigint): void {
    const s = this.streams[stream];
    if (this.#given.has(stream)) this.broken.push(`stream ${stream}: a watermark though it was given up`);
    if (s !== undefined) s.end = end;
  }

  troubled(failure: Failure): void {
    this.troubles.push(failure);
  }

  healthy(): void {
    this.healthies++;
  }

  async lost(stream: number, from: bigint, next: bigint, reason: "retention" | "truncated"): Promise<void> {
    this.losses.push({ stream, from, next, reason });
    if (this.movesOnLoss) this.seek(stream, next);
  }
}

/** Independent of the code under test: the offset after the last batch, -1 if the bytes are not whole batches. */
function nextOfWholeBatches(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  let next = -1n;
  while (at < bytes.length) {
    if (at + 61 > bytes.length) return -1n;
    const old = view.getInt8(at + 16) < 2;
    next = view.getBigInt64(at) + BigInt(old ? 0 : view.getInt32(at + 23)) + 1n;
    at += 12 + view.getInt32(at + 8);
  }
  return at === bytes.length ? next : -1n;
}
