import { describe, expect, test } from "bun:test";
import { Backoff, brokerFailure, isWorthAnotherTry } from "../../../src/adapters/kafka/client-retry.ts";
import { Partition } from "../../../src/adapters/kafka/source-partition.ts";
import { judgeOutOfRange } from "../../../src/adapters/kafka/source-policy.ts";
import { scanBatches } from "../../../src/adapters/kafka/source-scan.ts";
import { Troubles } from "../../../src/adapters/kafka/source-trouble.ts";
import { KAFKA_ERRORS } from "../../../src/adapters/kafka/wire/errors.ts";
import type { Code } from "../../../src/core/failure/codes.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { buildBatch, placeBatch } from "../../brokers/kafka/batch-builder.ts";
import golden from "../../golden/kafka/records.json";
import { SimTime } from "../../sim/clock.ts";

function batchAt(base: bigint, records: number, epoch: number): Uint8Array {
  const batch = buildBatch({ records: Array.from({ length: records }, () => ({ value: "v" })) });
  placeBatch(batch, base, epoch);
  return batch;
}

describe("batch scan", () => {
  const two = () => new Uint8Array(Buffer.concat([batchAt(10n, 3, 4), batchAt(13n, 2, 5)]));

  test("whole batches, the offset after them and the epoch of the last one", () => {
    const bytes = two();
    expect(scanBatches(bytes)).toEqual({ end: bytes.length, next: 15n, firstNext: 13n, epoch: 5, need: 0 });
    expect(scanBatches(new Uint8Array(0))).toEqual({ end: 0, next: 0n, firstNext: 0n, epoch: -1, need: 0 });
  });

  // Goal: a cut anywhere gives the batches before it, never an error. Method: every length.
  test("a tail that is cut is left out, wherever the cut is", () => {
    const bytes = two();
    const first = batchAt(10n, 3, 4).length;
    for (let length = 0; length < bytes.length; length++) {
      const scan = scanBatches(bytes.subarray(0, length));
      expect([scan.end, scan.end === 0 ? 0n : scan.next]).toEqual(length >= first ? [first, 13n] : [0, 0n]);
    }
    expect(scanBatches(bytes.subarray(0, 30)).need).toBe(first);
  });

  // Golden: `used` and the last offsets are what Kafka's own reader made of the same bytes, all magics and codecs.
  test("ends and offsets are those of the Java reader", () => {
    let compared = 0;
    for (const v of golden.vectors) {
      const bytes = new Uint8Array(Buffer.from(v.hex, "hex"));
      const last = v.batches.at(-1);
      if ("error" in v && v.error !== undefined && v.error !== null) continue;
      const scan = scanBatches(bytes);
      expect([v.name, scan.end]).toEqual([v.name, v.used]);
      // Of damaged batches the reader told no offsets.
      if (last?.lastOffset !== undefined) {
        expect([v.name, scan.next]).toEqual([v.name, BigInt(last.lastOffset) + 1n]);
      }
      compared++;
    }
    expect(compared).toBeGreaterThan(80);
  });

  test("where the Java reader's framing fails, ours stops with a code or before the damage", () => {
    for (const v of golden.vectors) {
      if (!("error" in v) || v.error === undefined || v.error === null) continue;
      let end = 0;
      let code = "";
      try {
        end = scanBatches(new Uint8Array(Buffer.from(v.hex, "hex"))).end;
      } catch (e) {
        code = e instanceof Failure ? e.code : String(e);
      }
      expect([v.name, code === "kafka.corrupt_batch" || end >= v.used]).toEqual([v.name, true]);
    }
  });

  // No checksum covers the base offset; what a log is does: offsets only grow.
  test("a batch that begins before the end of the one before it is damage", () => {
    const bytes = new Uint8Array(Buffer.concat([batchAt(10n, 3, 4), batchAt(12n, 2, 5)]));
    expect(() => scanBatches(bytes)).toThrow(/batch at offset 12 follows one that ends at 13/);
  });

  test("a length that no batch can have is damage", () => {
    for (const length of [-1, 0, 48]) {
      const bytes = batchAt(0n, 1, 0);
      new DataView(bytes.buffer).setInt32(8, length);
      expect(() => scanBatches(bytes)).toThrow(expect.objectContaining({ code: "kafka.corrupt_batch" }));
    }
  });

  test("the largest offset is exact", () => {
    const base = 2n ** 62n;
    expect(scanBatches(batchAt(base, 1, 0)).next).toBe(base + 1n);
  });
});

describe("a partition's epochs", () => {
  const partition = (epoch = -1) =>
    new Partition({
      topic: "t",
      partition: 3,
      topicId: "id",
      stream: 0,
      lane: 0,
      position: 10n,
      attempt: 0,
      epoch,
      maxBytes: 1,
    });

  test("a commit gets the epoch of the record before it, as far as it is known", () => {
    const p = partition();
    expect([p.lastEpoch, p.epochBefore(10n)]).toEqual([-1, -1]);
    p.fetched(20n, 4);
    p.fetched(30n, 4);
    p.fetched(40n, 6);
    expect([p.epochBefore(10n), p.epochBefore(11n), p.epochBefore(30n), p.epochBefore(31n)]).toEqual([
      -1, 4, 4, 6,
    ]);
    // Commits only go up; what a later one can't need is forgotten.
    expect([p.epochBefore(40n), p.lastEpoch]).toEqual([6, 6]);
    expect(p.wanted(9)).toMatchObject({ leaderEpoch: 9, position: 40n, lastFetchedEpoch: 6 });
  });

  test("a leader of any other epoch than the last record's must be asked once, whether newer or older", () => {
    // epoch of the last record, up to where it was asked, leader's epoch -> may the log have been cut?
    for (const [last, checked, leader, expected] of [
      [-1, -1, 4, false], // Nothing is known of what was read, so there is nothing to ask for.
      [4, -1, 4, false],
      [4, -1, 5, true],
      [4, 5, 5, false],
      [4, 5, 6, true],
      [4, -1, 3, true], // A cluster that was set back.
      [4, 3, 3, false],
      [4, -1, -1, false], // A broker that tells no epochs.
    ] as const) {
      const p = partition(last);
      p.checkedEpoch = checked;
      expect([last, checked, leader, p.mayBeCut(leader)]).toEqual([last, checked, leader, expected]);
    }
  });

  test("going back keeps what lies below, going on over what was never read forgets all", () => {
    const p = partition(2);
    p.fetched(20n, 3);
    p.fetched(30n, 4);
    expect([p.epochAt(20n), p.epochAt(21n), p.epochAt(30n)]).toEqual([3, 4, 4]);
    p.seek(15n, 1);
    expect([p.lastEpoch, p.epochAt(15n)]).toEqual([3, 3]);
    p.seek(40n, 2);
    expect([p.lastEpoch, p.epochAt(40n)]).toEqual([-1, -1]);
  });

  test("an epoch that came with the commit counts from the start, and after a seek", () => {
    const p = partition(2);
    expect([p.lastEpoch, p.epochBefore(10n)]).toEqual([2, 2]);
    p.state = "stranded";
    p.seek(5n, 1);
    expect(p).toMatchObject({ lastEpoch: 2, state: "fetching", version: 1, position: 5n });
    p.state = "gone";
    p.seek(6n, 2);
    expect(p).toMatchObject({ state: "gone" });
  });
});

describe("out of range", () => {
  const seen = { at: "t/0", position: 10n, earliest: 20n, latest: 30n };

  test("below the start: by policy", () => {
    expect(judgeOutOfRange(seen, "fail")).toMatchObject({ failure: { code: "kafka.offset_out_of_range" } });
    expect(judgeOutOfRange(seen, "earliest")).toEqual({ kind: "lost", next: 20n });
    expect(judgeOutOfRange(seen, "latest")).toEqual({ kind: "lost", next: 30n });
  });

  test("in range, its two ends included: again", () => {
    for (const position of [20n, 25n, 30n]) {
      expect(judgeOutOfRange({ ...seen, position }, "earliest")).toEqual({ kind: "again" });
    }
  });

  test("beyond the end: the log was cut, and no policy accepts that", () => {
    for (const policy of ["fail", "earliest", "latest"] as const) {
      const verdict = judgeOutOfRange({ ...seen, position: 31n }, policy);
      expect(verdict).toMatchObject({ kind: "stop", failure: { code: "kafka.truncated" } });
    }
  });
});

describe("what is tried again", () => {
  test("a broker's error is retryable exactly where its action says so, and denials are told apart", () => {
    const retried = new Set(["retry", "refresh", "coordinator", "session", "rebootstrap", "rejoin"]);
    for (const { code, action } of KAFKA_ERRORS) {
      if (action === "ok") continue;
      expect({ code, retry: brokerFailure(code, "X", "at").retry }).toEqual({
        code,
        retry: retried.has(action),
      });
    }
    expect([29, 30, 31, 53, 58, 35, 2, 1].map((code) => brokerFailure(code, "X", "at").code)).toEqual([
      "kafka.topic_denied",
      "kafka.group_denied",
      "kafka.cluster_denied",
      "kafka.cluster_denied",
      "kafka.auth_failed",
      "kafka.unsupported_version",
      "kafka.corrupt_batch",
      "kafka.broker_error",
    ]);
  });

  test("a cause that will not go away ends the start; once it ran, a connection's trouble is an outage", () => {
    const cases: [Code, boolean, boolean][] = [
      ["net.refused", true, true],
      ["net.tls_untrusted", false, true],
      ["kafka.auth_failed", false, true],
      ["kafka.not_kafka", false, true],
      ["kafka.topic_denied", false, false],
      ["kafka.truncated", false, false],
      ["internal.bug", false, false],
      ["internal.cancelled", false, false],
    ];
    for (const [code, starting, running] of cases) {
      const f = new Failure(code, "x");
      expect([code, isWorthAnotherTry(f, "starting"), isWorthAnotherTry(f, "running")]).toEqual([
        code,
        starting,
        running,
      ]);
    }
  });

  test("pauses double from 100 ms to 5 s, less up to half by chance, and begin anew after a success", () => {
    const most = new Backoff({ next: () => 0, bytes: () => new Uint8Array(0) });
    expect(Array.from({ length: 8 }, () => most.next())).toEqual([
      100, 200, 400, 800, 1600, 3200, 5000, 5000,
    ]);
    most.reset();
    expect(most.next()).toBe(100);
    const least = new Backoff({ next: () => 0.999999, bytes: () => new Uint8Array(0) });
    expect(Math.round(least.next())).toBe(50);
  });
});

describe("troubles", () => {
  test("told once per change and again after 30 s; healthy when the last one is over", async () => {
    const time = new SimTime();
    const told: string[] = [];
    const t = new Troubles(
      time.clock(null),
      (f) => told.push(f.message),
      () => told.push("healthy"),
    );
    const f = (text: string) => new Failure("net.refused", text);
    t.clear("start");
    t.clear("start");
    t.report("a", f("a down"));
    t.report("a", f("a down"));
    t.report("b", f("b down"));
    t.clear("a");
    t.report("b", f("b worse"));
    time.nowMs = 31_000;
    t.report("b", f("b worse"));
    t.clear("b");
    expect(told).toEqual(["healthy", "a down", "b down", "b worse", "b worse", "healthy"]);
    expect(t.last?.message).toBe("b worse");
  });
});
