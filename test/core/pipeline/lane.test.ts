/** A lane with a scripted decoder and writer under simulated time: what it claims, drops, retries and reports. */
import { beforeEach, describe, expect, test } from "bun:test";
import { Failure } from "../../../src/core/failure/failure.ts";
import { Lane } from "../../../src/core/pipeline/lane.ts";
import type { Authority } from "../../../src/core/ports/coverage.ts";
import type { FromLane, LaneStream } from "../../../src/core/ports/lane.ts";
import type { FrameDecoder, RawWriter, SetRefusal } from "../../../src/core/ports/lane-parts.ts";
import type { Frame } from "../../../src/core/records/frame.ts";
import type { RawBatch } from "../../../src/core/records/raw-batch.ts";
import type { Span, StreamId } from "../../../src/core/records/stream.ts";
import { SimTime } from "../../sim/clock.ts";

const id: StreamId = { transport: "kafka", cluster: "c", topic: "t", incarnation: 0, partition: 0 };
const KEY = "kafka/c/t/0/0";

class ScriptedWriter implements RawWriter {
  rows = 0;
  held = 0;
  largest = 0;
  /** Rows that a set has place for. */
  most = Number.POSITIVE_INFINITY;
  aborted = 0;
  failures: Failure[] = [];
  write(batch: RawBatch): number {
    const taken = Math.min(batch.rows, this.most - this.rows);
    this.rows += taken;
    return taken;
  }
  async flush(): Promise<void> {
    const f = this.failures.shift();
    if (f !== undefined) throw f;
  }
  open(): void {}
  refusal: SetRefusal | null = null;
  authorities: readonly Authority[] = [];
  async seal(_spans: readonly Span[], authorities: readonly Authority[]) {
    await this.flush();
    this.authorities = authorities;
    if (this.refusal !== null) return this.refusal;
    const rows = this.rows;
    this.rows = 0;
    return { targets: [], covered: false, rows, bytes: rows * 10 };
  }
  async abort(): Promise<void> {
    this.aborted++;
    this.rows = 0;
  }
}

/** Emits one batch per frame with as many rows as positions; throws at `badAt`, after emitting what is before. */
class ScriptedDecoder implements FrameDecoder {
  badAt: bigint | null = null;
  error = new Failure("kafka.corrupt_batch", "bad bytes");
  decode(_bytes: Uint8Array, frame: Frame, stream: StreamId, _at: number, emit: (b: RawBatch) => void): void {
    const bad =
      this.badAt !== null && this.badAt >= frame.from && this.badAt < frame.next ? this.badAt : null;
    const next = bad ?? frame.next;
    if (next > frame.from) {
      const span = { stream: KEY, from: frame.from, next };
      const rows = Number(next - frame.from);
      const offsets = new Int32Array(2 * rows);
      for (let i = 0; i < rows; i++) {
        offsets[2 * i] = Number(BigInt.asIntN(32, frame.from + BigInt(i)));
        offsets[2 * i + 1] = Number((frame.from + BigInt(i)) >> 32n);
      }
      emit({ stream, span, rows, offsets } as unknown as RawBatch);
    }
    if (bad !== null) throw this.error;
  }
}

let time: SimTime;
let writer: ScriptedWriter;
let decoder: ScriptedDecoder;
let out: FromLane[];
let lane: Lane;
let serial: number;

const place = (over: Partial<LaneStream> = {}): LaneStream => ({
  stream: 0,
  id,
  position: 0n,
  attempt: 0,
  authority: { kind: "generation", stream: KEY, generation: 4 },
  skip: [],
  ...over,
});
const frame = (from: number, next: number, over: Partial<Frame> = {}): Frame => ({
  stream: 0,
  attempt: 0,
  from: BigInt(from),
  next: BigInt(next),
  start: 0,
  end: 8,
  aborted: [],
  committedOnly: true,
  ...over,
});
const send = (...frames: Frame[]) =>
  lane.receive({ t: "frames", bundle: { buffer: new ArrayBuffer(8), frames, receivedAt: 0 } });
const settle = (ms = 0) => time.runUntil(() => false, time.nowMs + ms);
const of = <T extends FromLane["t"]>(t: T) => out.filter((m): m is Extract<FromLane, { t: T }> => m.t === t);

beforeEach(() => {
  time = new SimTime();
  writer = new ScriptedWriter();
  decoder = new ScriptedDecoder();
  out = [];
  serial = 0;
  lane = new Lane({
    lane: 3,
    rollBytes: 1000,
    rollIntervalMs: 100,
    clock: time.clock(null),
    decoder,
    writer,
    newSetId: () => `set-${serial++}`,
    post: (m) => out.push(m),
  });
});

describe("a lane", () => {
  test("claims what it wrote, when the interval has passed since the first span of the set", async () => {
    lane.receive({ t: "streams", streams: [place()] });
    send(frame(0, 5), frame(5, 9));
    await settle(99);
    expect(of("sealed")).toEqual([]);
    await settle(1);
    expect(of("sealed").map((m) => m.set)).toMatchObject([
      {
        id: "set-0",
        lane: 3,
        epoch: 0,
        rows: 9,
        reason: "interval",
        spans: [{ stream: KEY, from: 0n, next: 9n }],
      },
    ]);
  });

  test("seals at roll_bytes without waiting for the interval", async () => {
    lane.receive({ t: "streams", streams: [place()] });
    writer.largest = 1000;
    send(frame(0, 5));
    await settle();
    expect(of("sealed").map((m) => m.set.reason)).toEqual(["bytes"]);
  });

  test("a set that is full in the midst of a frame is sealed there, and the rest goes to the next ones", async () => {
    const start = 2n ** 33n - 3n;
    const at = (n: number) => start + BigInt(n);
    lane.receive({ t: "streams", streams: [place({ position: start })] });
    writer.most = 4;
    send(frame(0, 10, { from: start, next: at(10) }), frame(10, 11, { from: at(10), next: at(11) }));
    await settle(100);
    expect(of("sealed").map(({ set }) => [set.rows, set.reason, set.spans])).toEqual([
      [4, "files", [{ stream: KEY, from: start, next: at(4) }]],
      [4, "files", [{ stream: KEY, from: at(4), next: at(8) }]],
      [3, "interval", [{ stream: KEY, from: at(8), next: at(11) }]],
    ]);
    expect(of("consumed").map((m) => m.counts.rows)).toEqual([11]);
  });

  test("bytes that cannot be read behind a set that is full break the stream where they are", async () => {
    lane.receive({ t: "streams", streams: [place()] });
    writer.most = 4;
    decoder.badAt = 6n;
    send(frame(0, 10));
    await settle(100);
    expect(of("broken").map((m) => m.position)).toEqual([6n]);
    expect(of("sealed").map((m) => [m.set.rows, m.set.spans[0]?.next])).toEqual([
      [4, 4n],
      [2, 6n],
    ]);
  });

  test("a reset while a full set waits for its sink drops the rest of the frame, and gives the buffer back", async () => {
    lane.receive({ t: "streams", streams: [place()] });
    writer.most = 4;
    writer.failures = Array(50).fill(new Failure("store.full", "full"));
    send(frame(0, 10));
    await settle(1000);
    expect([of("sealed"), of("consumed")]).toEqual([[], []]);
    lane.receive({ t: "reset", epoch: 1, streams: [place({ attempt: 1 })] });
    writer.failures = [];
    await settle();
    expect(of("consumed")).toHaveLength(1);
    send(frame(0, 3, { attempt: 1 }));
    await settle(100);
    expect(of("sealed").map((m) => [m.set.epoch, m.set.rows])).toEqual([[1, 3]]);
  });

  test("a full set that is refused takes the rest of its streams with it", async () => {
    lane.receive({ t: "streams", streams: [place()] });
    writer.most = 4;
    writer.refusal = { refused: "fenced", detail: "d" };
    send(frame(0, 10));
    await settle(100);
    expect(of("refused")).toHaveLength(1);
    expect(of("consumed")).toHaveLength(1);
    expect(of("sealed")).toEqual([]);
  });

  test("gives every buffer back, also of frames that it drops", async () => {
    send(frame(0, 5));
    await settle();
    expect(of("consumed").map((m) => [m.bytes, m.counts.rows])).toEqual([[8, 0]]);
    expect(writer.rows).toBe(0);
  });

  test("drops frames of an older attempt and goes on with the new one", async () => {
    lane.receive({ t: "streams", streams: [place({ attempt: 2, position: 4n })] });
    send(frame(0, 4, { attempt: 1 }), frame(4, 6, { attempt: 2 }));
    await settle(100);
    expect(of("sealed").map((m) => m.set.spans)).toEqual([[{ stream: KEY, from: 4n, next: 6n }]]);
  });

  test("covered ranges are read over: neither written nor claimed", async () => {
    lane.receive({ t: "streams", streams: [place({ skip: [{ from: 3n, next: 6n }] })] });
    send(frame(0, 9));
    await settle(100);
    expect(of("consumed").map((m) => m.counts)).toMatchObject([{ rows: 6, skipped: 3n }]);
    expect(of("sealed").map((m) => m.set.spans)).toEqual([
      [
        { stream: KEY, from: 0n, next: 3n },
        { stream: KEY, from: 6n, next: 9n },
      ],
    ]);
  });

  test("unreadable bytes keep the rows before them, report the position and stop only that stream", async () => {
    decoder.badAt = 7n;
    lane.receive({ t: "streams", streams: [place(), place({ stream: 1 })] });
    send(frame(0, 10), frame(10, 12));
    decoder.badAt = 7n;
    await settle();
    expect(of("broken")).toMatchObject([
      { stream: 0, position: 7n, failure: { code: "kafka.corrupt_batch" } },
    ]);
    decoder.badAt = null;
    lane.receive({ t: "streams", streams: [place({ position: 7n, attempt: 1 })] });
    send(frame(7, 12, { attempt: 1 }));
    await settle(100);
    expect(of("sealed").map((m) => m.set.spans)).toEqual([[{ stream: KEY, from: 0n, next: 12n }]]);
  });

  test("an outage of the sink is waited out with everything kept, and reported both ways", async () => {
    const full = new Failure("store.full", "no space", { retry: true });
    writer.failures = [full, full];
    lane.receive({ t: "streams", streams: [place()] });
    send(frame(0, 5));
    await settle(1000);
    expect(of("sink").map((m) => m.failure?.code ?? null)).toEqual(["store.full", "store.full", null]);
    expect(of("sealed").map((m) => m.set.rows)).toEqual([5]);
  });

  test("a failure that will not pass ends the lane and says why", async () => {
    writer.failures = [new Failure("internal.bug", "broken writer")];
    lane.receive({ t: "streams", streams: [place()] });
    send(frame(0, 5));
    await settle(100);
    expect(of("dead")).toMatchObject([{ failure: { code: "internal.bug", message: "broken writer" } }]);
    expect(of("sealed")).toEqual([]);
  });

  test("a reset interrupts a sink that is being retried, drops the set and forgets the streams", async () => {
    const full = new Failure("store.full", "no space", { retry: true });
    writer.failures = Array.from({ length: 50 }, () => full);
    lane.receive({ t: "streams", streams: [place()] });
    send(frame(0, 5));
    await settle(150);
    lane.receive({ t: "reset", epoch: 1, streams: [place({ stream: 1, position: 2n })] });
    await settle();
    expect(writer.aborted).toBe(1);
    writer.failures = [];
    send(frame(5, 6), frame(2, 4, { stream: 1 }));
    await settle(100);
    expect(of("sealed").map((m) => [m.set.epoch, m.set.spans])).toEqual([
      [1, [{ stream: KEY, from: 2n, next: 4n }]],
    ]);
  });

  test("what waits behind a bundle that a reset cut short is dropped as well, and each buffer comes back", async () => {
    lane.receive({ t: "streams", streams: [place()] });
    send(frame(0, 1), frame(1, 2));
    send(frame(2, 3));
    lane.receive({ t: "reset", epoch: 1, streams: [place()] });
    await settle();
    expect([of("dead"), of("consumed").length]).toEqual([[], 2]);
    send(frame(0, 3));
    await settle(100);
    expect(of("sealed").map((m) => m.set.spans)).toEqual([[{ stream: KEY, from: 0n, next: 3n }]]);
  });

  test("a roll seals at once and is answered after the set", async () => {
    lane.receive({ t: "streams", streams: [place()] });
    send(frame(0, 5));
    lane.receive({ t: "roll", token: 9, reason: "drain" });
    await settle();
    expect(out.map((m) => m.t)).toEqual(["consumed", "sealed", "rolled"]);
  });

  test("a stop drops what is open and answers nothing any more", async () => {
    lane.receive({ t: "streams", streams: [place()] });
    send(frame(0, 5));
    await settle();
    lane.receive({ t: "stop" });
    lane.receive({ t: "roll", token: 1, reason: "drain" });
    await settle(200);
    expect(out.map((m) => m.t)).toEqual(["consumed"]);
    expect(writer.aborted).toBe(1);
  });

  test("shows the writer under which authority each stream of a set is written", async () => {
    lane.receive({ t: "streams", streams: [place()] });
    send(frame(0, 5));
    await settle(100);
    expect(writer.authorities).toEqual([{ kind: "generation", stream: KEY, generation: 4 }]);
  });

  test("a set that the sink refuses is told, and nothing of its streams is written until a reset", async () => {
    writer.refusal = { refused: "fenced", detail: "generation 5 now" };
    lane.receive({ t: "streams", streams: [place()] });
    send(frame(0, 5));
    await settle(100);
    expect(of("refused")).toEqual([
      { t: "refused", id: "set-0", epoch: 0, reason: "fenced", detail: "generation 5 now" },
    ]);
    writer.refusal = null;
    writer.rows = 0;
    send(frame(5, 9));
    await settle(100);
    expect([writer.rows, of("sealed").length]).toEqual([0, 0]);
    lane.receive({ t: "reset", epoch: 1, streams: [place({ position: 5n })] });
    send(frame(5, 9));
    await settle(100);
    expect(of("sealed").map((m) => m.set.spans)).toEqual([[{ stream: KEY, from: 5n, next: 9n }]]);
  });

  test("a frame that does not continue its stream is a bug and is never written", async () => {
    lane.receive({ t: "streams", streams: [place()] });
    send(frame(3, 5));
    await settle(100);
    expect(of("dead")).toMatchObject([{ failure: { code: "internal.bug" } }]);
    expect(writer.rows).toBe(0);
  });
});
