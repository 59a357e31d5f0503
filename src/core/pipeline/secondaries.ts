/**
 * The sinks beside the primary one. What is derived never shows what is not durable where it comes from: sets wait at
 * the gate until what they come after has covered the same positions.
 */
import { CoverageGate } from "../delivery/coverage-gate.ts";
import { GapBook, type SinkGaps } from "../delivery/gap-book.ts";
import type { RawRetention, StreamCoverage } from "../ports/coverage.ts";
import type { FromBranch, ToBranch } from "../ports/lane.ts";
import type { Observer } from "../ports/observer.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import type { Clock } from "../time/clock.ts";
import { Expiry } from "./expiry.ts";
import { Secondary } from "./secondary.ts";
import { type PlacedStream, PRIMARY, type SecondarySpec } from "./secondary-parts.ts";
import { tellGaps } from "./tell-gaps.ts";

export interface SecondariesParts {
  readonly clock: Clock;
  readonly observer: Observer;
  readonly post: (lane: number, sink: number, m: ToBranch) => void;
  /** Of the primary sink. */
  readonly coverage: Pick<StreamCoverage, "covered">;
  readonly retention?: RawRetention;
}

/** Longest waits for a sink that is slow. One that fails is not waited for. */
const OPEN_MS = 20_000;
const CLAIM_MS = 10_000;
const SETTLE_MS = 10_000;
/** A gap that is older may have been filled by another process; what is on its way is younger mostly. */
const REFRESH_AFTER_MS = 10_000;
/** Streams that the store is asked for at a heartbeat; those that lack most. */
const MOST_REFRESHED = 8;

export class Secondaries {
  readonly #gate = new CoverageGate();
  readonly #book = new GapBook();
  readonly #expiry: Expiry | null;
  readonly #keys = new Map<number, StreamKey>();
  readonly #all: readonly Secondary[];
  readonly #p: SecondariesParts;
  /** Something was covered or missed while the rest was looked at. */
  #again = false;
  #checking = false;

  constructor(specs: readonly SecondarySpec[], parts: SecondariesParts) {
    const { clock, observer } = parts;
    this.#p = parts;
    const { retention } = parts;
    this.#expiry = retention === undefined ? null : new Expiry(retention, this.#book, clock, observer);
    this.#all = specs.map(
      (spec, n) =>
        new Secondary(n, spec, {
          clock,
          observer,
          gate: this.#gate,
          post: (lane, m) => parts.post(lane, n, m),
          moved: () => this.#check(),
        }),
    );
  }

  async open(): Promise<void> {
    await Promise.all(this.#all.map((s) => s.open(OPEN_MS)));
  }

  /** Before the lanes have the streams. */
  async claim(streams: readonly PlacedStream[], groupEpoch: number | null): Promise<void> {
    if (this.#all.length === 0) return;
    for (const s of streams) {
      this.#gate.begin(PRIMARY, s.key, []);
      this.#keys.set(s.stream, s.key);
      this.#books(s.key);
    }
    await Promise.all(this.#all.map((s) => s.claim(streams, groupEpoch, CLAIM_MS)));
  }

  /** Nobody waits for it: gaps are told, and decide nothing. */
  #books(stream: StreamKey): void {
    this.#book.begin(stream, this.#p.clock.monotonic());
    void this.#p.coverage.covered(stream).then(
      (covered) => this.#book.had(stream, covered),
      () => {},
    );
  }

  /** On the turn in which the lane gets the streams. */
  place(lane: number): void {
    for (const s of this.#all) s.place(lane);
  }

  forget(streams: readonly number[]): void {
    for (const s of this.#all) s.forget(streams);
    for (const s of streams) {
      const key = this.#keys.get(s);
      if (key !== undefined) this.#book.forget(key);
      this.#keys.delete(s);
    }
  }

  /** Whoever gets them next need not take the lanes of this process for dead. */
  async release(keys: readonly StreamKey[]): Promise<void> {
    await Promise.all(this.#all.map((s) => s.release(keys, SETTLE_MS)));
  }

  reset(lane: number): void {
    for (const s of this.#all) s.reset(lane);
  }

  on(lane: number, sink: number, m: FromBranch): void {
    this.#all[sink]?.on(lane, m);
  }

  /** Of a life of the lane that is over. */
  onVoid(sink: number, m: FromBranch): void {
    if (m.t === "sealed") this.#all[sink]?.void(m.set);
    if (m.t === "missed") this.#all[sink]?.tellGap(m.spans);
  }

  /** The primary sink has covered them. */
  landed(spans: readonly Span[]): void {
    if (this.#all.length === 0) return;
    this.#gate.cover(PRIMARY, spans);
    for (const s of this.#all) s.landed(spans);
    this.#book.landed(spans, this.#p.clock.monotonic());
    this.#check();
  }

  async heartbeat(): Promise<void> {
    const now = this.#p.clock.monotonic();
    for (const [n, { spec }] of this.#all.entries()) {
      const gaps = this.#book.of((stream) => this.#gate.coveredIn(n, stream), now);
      tellGaps(this.#p.observer, spec.name, gaps, this.#expiry?.look(spec.name, gaps) ?? false);
      if ((gaps.oldestMs ?? 0) >= REFRESH_AFTER_MS) void this.#refresh(n, gaps.streams).catch(() => {});
    }
    this.#book.told();
    await Promise.all(this.#all.map((s) => s.heartbeat()));
  }

  /** Recovery fills what was missed here, and tells nobody but the sink's coverage. */
  async #refresh(n: number, streams: SinkGaps["streams"]): Promise<void> {
    const sink = this.#all[n]!;
    for (const { stream } of streams.slice(0, MOST_REFRESHED)) {
      if (!sink.isOpen) return;
      const covered = await sink.spec.coverage.covered(stream);
      // It may have been given up meanwhile.
      if (this.#gate.coveredIn(n, stream) === null) continue;
      this.#gate.cover(
        n,
        covered.map((r) => ({ stream, ...r })),
      );
    }
    this.#check();
  }

  /** Resolves when what lanes have closed is settled, and in any case soon. */
  async idle(mostMs: number, lane?: number): Promise<void> {
    const ms = Math.min(mostMs, SETTLE_MS);
    await Promise.all(this.#all.map((s) => s.idle(ms, lane)));
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((s) => s.close()));
  }

  #check(): void {
    this.#again = true;
    if (this.#checking) return;
    this.#checking = true;
    while (this.#again) {
      this.#again = false;
      for (const s of this.#all) s.check();
    }
    this.#checking = false;
  }
}
