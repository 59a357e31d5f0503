/** Source, lanes, coverage and objects of a runner under test: each call is written into one journal, in its order. */
import { Failure } from "../../../src/core/failure/failure.ts";
import type {
  Authority,
  Claim,
  CoverageStore,
  IntendResult,
  Intent,
  LostRange,
  Origin,
  Range,
  Tip,
  TopicMemory,
} from "../../../src/core/ports/coverage.ts";
import type { FromLane, LanePort, SealedSet, ToLane } from "../../../src/core/ports/lane.ts";
import type { ObjectStore, Target } from "../../../src/core/ports/object-store.ts";
import type {
  AckMark,
  FoundStream,
  Source,
  SourceHost,
  StreamStart,
} from "../../../src/core/ports/source.ts";
import type { Frame } from "../../../src/core/records/frame.ts";
import type { Span } from "../../../src/core/records/stream.ts";

export type Journal = string[];

/** A promise that the test settles. */
export class Gate<T = void> {
  readonly promise: Promise<T>;
  open!: (value: T) => void;
  fail!: (e: unknown) => void;
  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.open = resolve;
      this.fail = reject;
    });
  }
}

export class FakeSource implements Source {
  readonly #journal: Journal;
  readonly #end = new Gate();
  host: SourceHost | null = null;
  starts: readonly StreamStart[] = [];
  readonly seeks: { readonly stream: number; readonly position: bigint; readonly attempt: number }[] = [];
  readonly acks: (readonly AckMark[])[] = [];
  /** What the next acknowledgements do: a failure is thrown, a gate is waited for. */
  readonly ackFaults: (Failure | Gate)[] = [];
  /** Begun, and not read yet: of them nothing can be acknowledged. */
  readonly unread = new Set<number>();
  /** Of the group, null: none. */
  epoch: number | null = null;
  /** A membership that is not confirmed before this opens. */
  confirming: Gate | null = null;
  paused = false;
  closed = false;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  run(host: SourceHost): Promise<void> {
    this.host = host;
    return this.#end.promise;
  }

  async begin(...found: readonly FoundStream[]): Promise<void> {
    this.starts = [...this.starts, ...(await this.host!.begin(found, this.epoch))];
  }

  /** Hands a lane one frame of a stream, as from the broker. */
  deliver(stream: number, from: number, next: number): void {
    const lane = this.starts[stream]!.lane;
    const attempt = this.seeks.findLast((s) => s.stream === stream)?.attempt ?? this.starts[stream]!.attempt;
    const range = { from: BigInt(from), next: BigInt(next), start: 0, end: 8 };
    const frame: Frame = { stream, attempt, ...range, aborted: [], committedOnly: true };
    this.host!.deliver(lane, { buffer: new ArrayBuffer(8), frames: [frame], receivedAt: 0 });
  }

  seek(stream: number, position: bigint, attempt: number): void {
    this.#journal.push(`seek ${stream} to ${position} attempt ${attempt}`);
    this.seeks.push({ stream, position, attempt });
  }

  async confirmation(): Promise<number | null> {
    if (this.epoch !== null) this.#journal.push("confirmation");
    await this.confirming?.promise;
    return this.epoch;
  }

  async acknowledge(all: readonly AckMark[]): Promise<readonly AckMark[]> {
    const marks = all.filter((m) => !this.unread.has(m.stream));
    const text = marks.map((m) => `${m.stream}@${m.next}`).join(" ");
    this.#journal.push(`acknowledge ${text}`);
    const fault = this.ackFaults.shift();
    if (fault instanceof Gate) await fault.promise;
    if (fault instanceof Failure) throw fault;
    this.acks.push(marks);
    return marks;
  }

  pause(): void {
    this.#journal.push("pause");
    this.paused = true;
  }

  ends(): void {
    this.#end.open();
  }

  fails(f: Failure): void {
    this.#end.fail(f);
  }

  async close(): Promise<void> {
    this.#journal.push("close source");
    this.closed = true;
    this.#end.open();
  }
}

export class FakeLane implements LanePort {
  readonly lane: number;
  readonly posts: ToLane[] = [];
  killed = false;
  /** What a roll seals before it is answered; null: it is not answered at all. */
  onRoll: (() => void) | null = () => {};
  #handler: ((m: FromLane) => void) | null = null;
  #epoch = 0;

  constructor(lane: number) {
    this.lane = lane;
  }

  post(message: ToLane): void {
    if (this.killed) return;
    this.posts.push(message);
    if (message.t === "reset") this.#epoch = message.epoch;
    if (message.t === "roll" && this.onRoll !== null) {
      this.onRoll();
      this.say({ t: "rolled", token: message.token });
    }
  }

  of<T extends ToLane["t"]>(t: T): Extract<ToLane, { t: T }>[] {
    return this.posts.filter((m): m is Extract<ToLane, { t: T }> => m.t === t);
  }

  onMessage(handler: (m: FromLane) => void): void {
    this.#handler = handler;
  }

  say(m: FromLane): void {
    this.#handler?.(m);
  }

  seal(id: string, spans: readonly Span[], over: Partial<SealedSet> = {}): void {
    const targets = [{ key: `${id}.parquet`, staging: `${id}.staged`, bytes: 1, rows: 1 }];
    const rows = Number(spans.reduce((n, s) => n + s.next - s.from, 0n));
    const set = {
      id,
      lane: this.lane,
      epoch: this.#epoch,
      targets,
      spans,
      covered: false,
      rows,
      bytes: 1,
      reason: "bytes" as const,
      openedAt: 0,
      sealMs: 0,
    };
    this.say({ t: "sealed", set: { ...set, ...over } });
  }

  consumed(bytes = 8): void {
    const counts = { rows: 1, rawBytes: 8, decodeMs: 0, writeMs: 0, held: 0, skipped: 0n };
    this.say({ t: "consumed", buffer: new ArrayBuffer(bytes), bytes, counts });
  }

  broken(stream: number, attempt: number, position: bigint, message = "bad crc"): void {
    const failure = { code: "kafka.corrupt_batch", message, at: null, hint: null, retry: false } as const;
    this.say({ t: "broken", stream, attempt, position, failure });
  }

  dies(retry = true): void {
    const failure = { code: "lane.died", message: "the thread ended", at: null, hint: null, retry } as const;
    this.say({ t: "dead", failure });
  }

  kill(): void {
    this.killed = true;
  }
}

export class FakeCoverage implements CoverageStore {
  readonly #journal: Journal;
  readonly generations = new Map<string, number>();
  readonly ranges = new Map<string, Range[]>();
  readonly losses: LostRange[] = [];
  readonly origins = new Map<string, bigint>();
  readonly staleCommits = new Map<string, bigint>();
  readonly tips = new Map<string, Tip>();
  readonly topics = new Map<string, TopicMemory>();
  readonly intents = new Map<string, Intent>();
  /** Answers for intents by id; default ok. */
  readonly refusals = new Map<string, IntendResult>();
  /** What the next covers wait for. */
  readonly coverGates: Gate[] = [];
  readonly claimGates: Gate[] = [];
  readonly heartbeats: (Failure | null)[] = [];
  fenced: Failure | null = null;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  async open(): Promise<void> {
    this.#journal.push("open");
  }

  async claim(streams: readonly string[]): Promise<readonly Claim[]> {
    this.#journal.push(`claim ${streams.length}`);
    await this.claimGates.shift()?.promise;
    return streams.map((stream) => {
      const generation = (this.generations.get(stream) ?? 0) + 1;
      this.generations.set(stream, generation);
      const authority: Authority = { kind: "generation", stream, generation };
      const lost = this.losses.filter((l) => l.stream === stream).map(({ from, next }) => ({ from, next }));
      const origin = this.origins.get(stream) ?? null;
      const staleCommit = this.staleCommits.get(stream) ?? null;
      const covered = [...(this.ranges.get(stream) ?? [])];
      const tip = this.tips.get(stream);
      return {
        ...{ stream, authority, covered, lost, origin, staleCommit },
        ...(tip === undefined ? {} : { tip }),
      };
    });
  }

  async intend(intents: readonly Intent[]): Promise<readonly IntendResult[]> {
    return intents.map((i) => {
      this.#journal.push(`intend ${i.id}`);
      const stale = i.authorities.find(
        (a) => a.kind === "generation" && this.generations.get(a.stream) !== a.generation,
      );
      if (stale !== undefined) return { ok: false, reason: "fenced", detail: "generation" };
      const answer = this.refusals.get(i.id) ?? { ok: true };
      if (answer.ok) this.intents.set(i.id, i);
      return answer;
    });
  }

  async cover(ids: readonly string[]): Promise<readonly IntendResult[]> {
    await this.coverGates.shift()?.promise;
    return ids.map((id) => {
      this.#journal.push(`cover ${id}`);
      for (const s of this.intents.get(id)?.spans ?? []) this.add(s);
      this.intents.delete(id);
      return { ok: true };
    });
  }

  /** Ranges come in order in these tests; those that touch are joined. */
  add(s: Span): void {
    const ranges = this.ranges.get(s.stream) ?? [];
    const last = ranges.at(-1);
    if (last?.next === s.from) ranges[ranges.length - 1] = { from: last.from, next: s.next };
    else ranges.push({ from: s.from, next: s.next });
    this.ranges.set(s.stream, ranges);
  }

  async settle(id: string): Promise<void> {
    this.intents.delete(id);
  }

  async covered(stream: string): Promise<readonly Range[]> {
    return this.ranges.get(stream) ?? [];
  }

  async recordLost(ranges: readonly LostRange[]): Promise<void> {
    for (const r of ranges) this.#journal.push(`lost ${r.from}-${r.next} ${r.reason}`);
    this.losses.push(...ranges);
  }

  async rememberOrigins(origins: readonly Origin[]): Promise<void> {
    for (const o of origins) {
      this.#journal.push(`origin ${o.position}`);
      if (this.origins.has(o.stream)) continue;
      this.origins.set(o.stream, o.position);
      if (o.staleCommit !== null) this.staleCommits.set(o.stream, o.staleCommit);
    }
  }

  /** What another member remembers before the next of ours. */
  meanwhile: TopicMemory | null = null;

  async topic(name: string): Promise<TopicMemory | null> {
    return this.topics.get(name) ?? null;
  }

  async rememberTopic(name: string, memory: TopicMemory): Promise<TopicMemory> {
    this.#journal.push(`topic ${name} ${memory.topicId} ${memory.incarnation}`);
    const held = this.meanwhile ?? memory;
    this.meanwhile = null;
    this.topics.set(name, held);
    return held;
  }

  async lease(window: string): Promise<Authority> {
    return { kind: "lease", window, lease: 1 };
  }

  async heartbeat(): Promise<void> {
    this.#journal.push("heartbeat");
    const f = this.heartbeats.shift() ?? null;
    if (f?.code === "coverage.fenced") this.fenced = f;
    if (f !== null) throw f;
  }

  async close(): Promise<void> {
    this.#journal.push("close coverage");
  }
}

export class FakeObjects implements ObjectStore {
  readonly place = "fake:";
  readonly #journal: Journal;
  readonly publishFaults: Failure[] = [];
  constructor(journal: Journal) {
    this.#journal = journal;
  }
  stage(): Promise<never> {
    throw new Error("the control thread stages nothing");
  }
  async probe(): Promise<"staged"> {
    return "staged";
  }
  async publish(t: Target): Promise<void> {
    const f = this.publishFaults.shift();
    if (f !== undefined) throw f;
    this.#journal.push(`publish ${t.key}`);
  }
  async discard(t: Target): Promise<void> {
    this.#journal.push(`discard ${t.staging}`);
  }
  async sweep(): Promise<readonly string[]> {
    return [];
  }
}

export function found(partition: number, over: Partial<FoundStream> = {}): FoundStream {
  return {
    transport: "kafka",
    cluster: "c",
    topic: "t",
    partition,
    topicId: "id-1",
    committed: null,
    earliest: 0n,
    latest: 100n,
    ...over,
  };
}

export const key = (partition: number, incarnation = 0): string => `kafka/c/t/${incarnation}/${partition}`;
export const span = (partition: number, from: number, next: number): Span => ({
  stream: key(partition),
  from: BigInt(from),
  next: BigInt(next),
});
