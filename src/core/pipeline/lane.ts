/**
 * A lane: the work of its partitions from broker bytes to sealed files. One loop takes messages in order, so
 * nothing here is ever entered twice; only `receive` runs outside of it, to see interruptions at once.
 *
 * What a set of files claims is exactly what was emitted by the decoder and written: `expected` moves per
 * emitted batch, never per frame, so bytes that cannot be read leave the claim at the last good record.
 */
import { isOutage, waitedOut } from "../coverage/outage.ts";
import { asFailure, Failure, toWire } from "../failure/failure.ts";
import type { Authority } from "../ports/coverage.ts";
import type { FromLane, LaneStream, SealedSet, SealReason, ToLane } from "../ports/lane.ts";
import type { FrameDecoder, RawWriter } from "../ports/lane-parts.ts";
import type { Frame, FrameBundle } from "../records/frame.ts";
import { int64At } from "../records/int64-at.ts";
import type { RawBatch } from "../records/raw-batch.ts";
import { type Span, type StreamKey, streamKey } from "../records/stream.ts";
import type { Clock, Timer } from "../time/clock.ts";
import type { Branches } from "./branches.ts";
import { cutAround, type Piece, SpanSet } from "./span-set.ts";

export interface LaneOptions {
  readonly lane: number;
  readonly rollBytes: number;
  readonly rollIntervalMs: number;
  readonly clock: Clock;
  readonly decoder: FrameDecoder;
  readonly writer: RawWriter;
  /** Unique over all processes that ever write this sink. */
  readonly newSetId: () => string;
  readonly post: (message: FromLane, transfer?: ArrayBuffer[]) => void;
  /** Sinks beside the primary one; absent: there are none. */
  readonly branches?: LaneBranches;
}

/** What a lane asks of the sinks beside its own. */
export interface LaneBranches
  extends Pick<
    Branches<never>,
    "pressing" | "crowded" | "skips" | "bundled" | "relief" | "primarySealed" | "receive" | "forget" | "reset"
  > {
  /** The primary sink took these rows. */
  take(stream: number, key: StreamKey, batch: RawBatch): void;
  /** Before a stop: what was taken and waits for something is written, or was waited for long enough. */
  settled(): Promise<void>;
}

interface LaneEntry {
  readonly info: LaneStream;
  readonly key: StreamKey;
  expected: bigint;
  /** The bytes at `expected` could not be read: frames are dropped until the control thread moves the stream. */
  broken: boolean;
}

type Work = ToLane | { readonly t: "tick" };

/** Thrown inside the loop when a reset or a stop arrived while the sink was being retried. */
const INTERRUPTED = Symbol("interrupted");
/** Thrown out of a decoder whose rows the set has no place for: it goes on behind those that were taken. */
const SET_FULL = Symbol("set is full");
/** Thrown out of a decoder that goes on later, while the sinks have enough. */
const PAUSED = Symbol("sinks have enough");

export class Lane {
  readonly #o: LaneOptions;
  readonly #queue: Work[] = [];
  readonly #streams = new Map<number, LaneEntry>();
  readonly #spans = new SpanSet();
  /** Id of the open set; null: none is open. */
  #setId: string | null = null;
  #openedAt = 0;
  #epoch = 0;
  #timer: Timer | null = null;
  #running = false;
  #interrupted = false;
  #stopped = false;
  #wake: (() => void) | null = null;
  #decodeMs = 0;
  #writeMs = 0;
  #bundleRows = 0;
  #skipped = 0n;

  constructor(options: LaneOptions) {
    this.#o = options;
  }

  /** It has records in an open set. */
  get isOpen(): boolean {
    return this.#setId !== null;
  }

  receive(message: ToLane): void {
    if (this.#stopped) return;
    // At once: it has nothing to do with what is read meanwhile. Claims have, with resets.
    if (message.t === "branch" && message.m.t !== "claims")
      return this.#o.branches?.receive(message.sink, message.m);
    if (message.t === "reset" || message.t === "stop") {
      this.#interrupted = true;
      this.#wake?.();
    }
    this.#push(message);
  }

  #push(work: Work): void {
    this.#queue.push(work);
    if (!this.#running) void this.#run();
  }

  async #run(): Promise<void> {
    this.#running = true;
    try {
      for (let work = this.#queue.shift(); work !== undefined && !this.#stopped; work = this.#queue.shift()) {
        await this.#handle(work);
      }
    } catch (e) {
      this.#stopped = true;
      this.#timer?.cancel();
      this.#o.post({ t: "dead", failure: toWire(asFailure(e)) });
    } finally {
      this.#running = false;
    }
  }

  async #handle(work: Work): Promise<void> {
    switch (work.t) {
      case "streams":
        for (const s of work.streams) this.#place(s);
        return;
      case "forget":
        for (const stream of work.streams) this.#streams.delete(stream);
        this.#o.branches?.forget(work.streams);
        return;
      case "branch":
        this.#o.branches?.receive(work.sink, work.m);
        return;
      case "frames":
        return this.#unlessInterrupted(() => this.#bundle(work.bundle));
      case "tick":
        return this.#unlessInterrupted(() => this.#seal("interval"));
      case "roll":
        await this.#unlessInterrupted(() => this.#seal(work.reason));
        this.#o.post({ t: "rolled", token: work.token });
        return;
      case "reset":
        return this.#reset(work.epoch, work.streams);
      case "stop":
        return this.#stop();
    }
  }

  /** A reset or stop that is waiting in the queue makes the work before it pointless: it is dropped, not retried. */
  async #unlessInterrupted(fn: () => Promise<void>): Promise<void> {
    try {
      await fn();
    } catch (e) {
      if (e !== INTERRUPTED) throw e;
    }
  }

  #place(s: LaneStream): void {
    this.#streams.set(s.stream, { info: s, key: streamKey(s.id), expected: s.position, broken: false });
  }

  async #reset(epoch: number, streams: readonly LaneStream[]): Promise<void> {
    this.#clearSet();
    await this.#o.writer.abort();
    this.#epoch = epoch;
    this.#o.branches?.reset(epoch);
    this.#streams.clear();
    for (const s of streams) this.#place(s);
    this.#interrupted = this.#queue.some((w) => w.t === "reset" || w.t === "stop");
  }

  async #stop(): Promise<void> {
    this.#stopped = true;
    this.#clearSet();
    this.#o.branches?.reset(this.#epoch);
    await this.#o.writer.abort();
  }

  #clearSet(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#spans.clear();
    this.#setId = null;
  }

  async #bundle(bundle: FrameBundle): Promise<void> {
    const bytes = new Uint8Array(bundle.buffer);
    const held = bundle.buffer.byteLength;
    try {
      for (const frame of bundle.frames) {
        // Of a bundle before this one the rest may have been dropped: what follows it would leave a hole.
        this.#unlessStopped();
        await this.#frame(bytes, frame, bundle.receivedAt);
        await this.#relieved();
      }
    } finally {
      this.#consumed(bundle, held);
    }
    await this.#retrying(() => this.#o.writer.flush());
    if (this.#o.writer.largest >= this.#o.rollBytes) await this.#seal("bytes");
    this.#o.branches?.bundled();
    await this.#pressed();
  }

  /** Also of a bundle whose rest was dropped: its buffer and its share of the budget are wanted back. */
  #consumed(bundle: FrameBundle, held: number): void {
    const counts = {
      rows: this.#bundleRows,
      rawBytes: bundle.frames.reduce((n, f) => n + (f.end - f.start), 0),
      decodeMs: this.#decodeMs,
      writeMs: this.#writeMs,
      held: this.#o.writer.held,
      skipped: this.#skipped,
    };
    this.#bundleRows = 0;
    this.#decodeMs = 0;
    this.#writeMs = 0;
    this.#skipped = 0n;
    this.#o.post({ t: "consumed", buffer: bundle.buffer, bytes: held, counts }, [bundle.buffer]);
  }

  /** Sinks beside the primary one have room again, or were waited for long enough. */
  async #relieved(): Promise<void> {
    if (this.#o.branches !== undefined)
      await this.#orInterrupted(this.#o.branches.relief(this.#o.decoder.resumes === true));
    this.#unlessStopped();
    await this.#pressed();
  }

  /** What a batch brought may be more than leaves room for the next: only now can it get on. */
  async #pressed(): Promise<void> {
    const { branches, decoder } = this.#o;
    if (branches?.pressing !== true) return;
    await this.#seal("branch");
    await this.#orInterrupted(branches.relief(decoder.resumes === true));
    this.#unlessStopped();
  }

  /** In one go, unless the set is full before its end: then the set is sealed and the rest goes to the next. */
  async #frame(bytes: Uint8Array, frame: Frame, receivedAt: number): Promise<void> {
    const entry = this.#streams.get(frame.stream);
    if (entry === undefined || entry.broken || frame.attempt !== entry.info.attempt) return;
    if (frame.from !== entry.expected) {
      throw new Failure("internal.bug", `frame starts at ${frame.from}, expected ${entry.expected}`, {
        at: entry.key,
      });
    }
    for (;;) {
      const left = this.#read(entry, bytes, { ...frame, from: entry.expected }, receivedAt);
      if (left === null) return;
      await (left === PAUSED ? this.#relieved() : this.#seal("files"));
      // A set that was refused takes its streams with it.
      if (this.#streams.get(frame.stream) !== entry) return;
    }
  }

  /** Null: all of it. Else why it was read up to what is expected now. */
  #read(
    entry: LaneEntry,
    bytes: Uint8Array,
    frame: Frame,
    receivedAt: number,
  ): typeof SET_FULL | typeof PAUSED | null {
    const start = this.#o.clock.monotonic();
    const writeBefore = this.#writeMs;
    try {
      for (const piece of this.#cut(frame, entry)) {
        if (piece.covered) {
          this.#skipped += piece.next - piece.from;
          entry.expected = piece.next;
        } else {
          const narrowed = { ...frame, from: piece.from, next: piece.next };
          this.#o.decoder.decode(bytes, narrowed, entry.info.id, receivedAt, (batch) =>
            this.#batch(entry, batch),
          );
        }
      }
      return null;
    } catch (e) {
      if (e === SET_FULL || e === PAUSED) return e;
      // Only bytes that cannot be read break a stream; any other failure is ours or the sink's and ends the lane.
      if (!(e instanceof Failure) || !e.code.startsWith("kafka.")) throw e;
      entry.broken = true;
      const { stream, attempt } = frame;
      this.#o.post({ t: "broken", stream, attempt, position: entry.expected, failure: toWire(e) });
      return null;
    } finally {
      this.#decodeMs += this.#o.clock.monotonic() - start - (this.#writeMs - writeBefore);
    }
  }

  /** No piece lies partly in what some sink has already. */
  #cut(frame: Frame, { info }: LaneEntry): readonly Piece[] {
    const skips = this.#o.branches?.skips(info.stream) ?? [];
    let pieces = cutAround(frame, info.skip);
    for (const skip of skips)
      pieces = pieces.flatMap((p) => (p.covered ? [p] : cutAround(p, skip).map(uncovered)));
    return pieces;
  }

  #batch(entry: LaneEntry, batch: RawBatch): void {
    const t = this.#o.clock.monotonic();
    if (this.#setId === null) {
      this.#setId = this.#o.newSetId();
      this.#o.writer.open(this.#setId);
      this.#openedAt = batch.ingestTs;
    }
    const taken = batch.rows > 0 ? this.#o.writer.write(batch, entry.info.authority) : 0;
    this.#writeMs += this.#o.clock.monotonic() - t;
    const next = taken < batch.rows ? int64At(batch.offsets, taken) : batch.span.next;
    this.#spans.add(entry.key, batch.span.from, next);
    entry.expected = next;
    this.#bundleRows += taken;
    this.#timer ??= this.#o.clock.after(this.#o.rollIntervalMs, () => this.#push({ t: "tick" }));
    if (this.#o.branches !== undefined && next > batch.span.from)
      this.#o.branches.take(
        entry.info.stream,
        entry.key,
        taken < batch.rows ? headOf(batch, taken, next) : batch,
      );
    if (taken < batch.rows) throw SET_FULL;
    const { branches, decoder } = this.#o;
    if (decoder.resumes === true && (branches?.crowded === true || branches?.pressing === true)) throw PAUSED;
  }

  async #seal(reason: SealReason): Promise<void> {
    await this.#sealPrimary(reason);
    if (reason === "drain" || reason === "revoke") await this.#o.branches?.settled();
    this.#o.branches?.primarySealed(reason);
  }

  async #sealPrimary(reason: SealReason): Promise<void> {
    const id = this.#setId;
    if (id === null || this.#spans.empty) {
      this.#clearSet();
      return;
    }
    const spans = this.#spans.take();
    const openedAt = this.#openedAt;
    const start = this.#o.clock.monotonic();
    const authorities = this.#authorities(spans);
    const files = await this.#retrying(() => this.#o.writer.seal(spans, authorities));
    this.#clearSet();
    if ("refused" in files) {
      // Whatever still comes of these streams is dropped: it would not touch what is durable.
      this.#streams.clear();
      const { refused: reason, detail } = files;
      this.#o.post({ t: "refused", id, epoch: this.#epoch, reason, detail });
      return;
    }
    const { targets, covered, rows, bytes, there, leftOut } = files;
    const set: SealedSet = {
      id,
      lane: this.#o.lane,
      epoch: this.#epoch,
      targets,
      spans,
      covered,
      rows,
      bytes,
      openedAt,
      sealMs: this.#o.clock.monotonic() - start,
      reason,
      ...(there === undefined ? {} : { there }),
      ...(leftOut === undefined ? {} : { leftOut }),
    };
    this.#o.post({ t: "sealed", set });
  }

  #authorities(spans: readonly Span[]): Authority[] {
    const keys = new Set(spans.map((s) => s.stream));
    return [...this.#streams.values()].flatMap((s) => (keys.has(s.key) ? [s.info.authority] : []));
  }

  /**
   * An outage of the sink (full disk, revoked rights, a store that is down) is waited out with everything kept;
   * memory cannot grow meanwhile, since the lane reads no further bundle and the budget stays taken.
   */
  async #retrying<T>(fn: () => Promise<T>): Promise<T> {
    this.#unlessStopped();
    const pause = async (ms: number) => {
      await this.#pause(ms);
      this.#unlessStopped();
    };
    const trouble = (f: Failure | null) =>
      this.#o.post({ t: "sink", failure: f === null ? null : toWire(f) });
    return waitedOut({ pause, trouble }, fn, isOutage);
  }

  #unlessStopped(): void {
    if (this.#interrupted) throw INTERRUPTED;
  }

  #orInterrupted(done: Promise<void>): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      if (this.#interrupted) return resolve();
      this.#wake = resolve;
      done.then(resolve, reject);
    }).then(() => {
      this.#wake = null;
    });
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        timer.cancel();
        this.#wake = null;
        resolve();
      };
      const timer = this.#o.clock.after(ms, done);
      this.#wake = done;
    });
  }
}

/** Its first rows. */
function headOf(batch: RawBatch, rows: number, next: bigint): RawBatch {
  const { runs } = batch;
  const end = runs.end.slice(0, runs.count);
  const last = end.findIndex((e) => e >= rows);
  const count = last === -1 ? runs.count : last + 1;
  if (count > 0) end[count - 1] = rows;
  return { ...batch, rows, span: { ...batch.span, next }, runs: { ...runs, count, end } };
}

const uncovered = ({ from, next }: Piece): Piece => ({ from, next, covered: false });
