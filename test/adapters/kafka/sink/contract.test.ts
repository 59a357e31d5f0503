/**
 * Goal: the contract of the Kafka sink, and what only brokers that obey a test can show: an end of a transaction whose
 * answer is lost either way, brokers that move, an owner that is overtaken in the middle of a change.
 * Method: the test cluster in simulated time; its logs are the judge. test/real runs the contract over a real one.
 */
import { describe, expect, test } from "bun:test";
import { Failure } from "../../../../src/core/failure/failure.ts";
import { streamKey } from "../../../../src/core/records/stream.ts";
import {
  kafkaSinkContract,
  Process,
  rightsOf,
  type SinkBench,
} from "../../../contract/kafka-sink-contract.ts";
import { batchOf, bytes, row, STREAM } from "../../../core/formats/parquet/rows.ts";
import { FakeSinkBench } from "./fake-bench.ts";

kafkaSinkContract("the test cluster", () => Promise.resolve(new FakeSinkBench(1)));

const S = streamKey(STREAM);

/** Bytes that no codec makes smaller. */
function noise(length: number): Uint8Array {
  let n = 1;
  return new Uint8Array(length).map(() => {
    n = Math.imul(n, 1664525) + 1013904223;
    return n >>> 24;
  });
}

describe("a Kafka sink and brokers in trouble", () => {
  async function claimed(bench: SinkBench) {
    const p = new Process(bench);
    await p.open();
    return { p, rights: rightsOf(await p.claim(S)) };
  }

  for (const arrives of [true, false]) {
    test(`an end of a transaction that ${arrives ? "was" : "was not"} carried out and is never answered is looked up`, async () => {
      const bench = new FakeSinkBench(2);
      const { p, rights } = await claimed(bench);
      p.begin(0, 4, rights);
      bench.loseEndTxn(arrives);
      expect(await p.seal(0, 4, rights)).toMatchObject({ refused: "gone" });
      bench.heal();
      const [claim] = await p.claim(S);
      const there = arrives ? [{ from: 0n, next: 4n }] : [];
      expect(claim?.covered).toEqual(there);
      if (!arrives) expect(await p.land(0, 4, rightsOf([claim!]))).toMatchObject({ covered: true });
      expect(await bench.values()).toEqual([0, 1, 2, 3].map((n) => `3/${n}`));
      await p.close();
    });
  }

  test("brokers that are silent for longer than a set is patient: told once, refused, and landed after it", async () => {
    const bench = new FakeSinkBench(3);
    const { p, rights } = await claimed(bench);
    p.begin(0, 4, rights);
    for (const b of bench.cluster.brokers) bench.cluster.kill(b.id);
    const told = await p.flush().catch((e: Failure) => e);
    expect(told).toBeInstanceOf(Failure);
    expect([(told as Failure).kind, p.writer.largest]).toEqual(["environment", Number.POSITIVE_INFINITY]);
    await p.flush();
    expect(await p.seal(0, 4, rights)).toMatchObject({ refused: "gone" });
    for (const b of bench.cluster.brokers) bench.cluster.revive(b.id);
    const [claim] = await p.claim(S);
    expect(claim?.covered).toEqual([]);
    expect(await p.land(0, 4, rightsOf([claim!]))).toMatchObject({ covered: true });
    expect((await bench.values()).length).toBe(4);
    await p.close();
  });

  test("a record that the brokers do not take ends it with the record's place", async () => {
    const bench = new FakeSinkBench(4);
    const { p, rights } = await claimed(bench);
    bench.cluster.maxBatchBytes = 400;
    p.writer.open("set");
    const rows = [row(5, { value: bytes("x") }), row(6, { value: noise(9_999) })];
    expect(p.writer.write(batchOf(rows), rights[0]!)).toBe(2);
    const span = { stream: S, from: 5n, next: 7n };
    const failure = await bench.run(p.writer.seal([span], rights).catch((e: Failure) => e));
    expect(failure).toMatchObject({ code: "kafka.record_too_large", retry: false });
    expect((failure as Failure).message).toContain("orders/3@6");
    await p.close();
  });

  test("the coverage's leader moves, and whoever reads it follows", async () => {
    const bench = new FakeSinkBench(5);
    const { p, rights } = await claimed(bench);
    expect(await p.land(0, 2, rights)).toMatchObject({ covered: true });
    for (const partition of [0, 1]) {
      const { leader } = bench.cluster.partition("cov.p", partition);
      bench.cluster.moveLeader("cov.p", partition, leader === 1 ? 2 : 1);
    }
    const [claim] = await p.claim(S);
    expect(claim?.covered).toEqual([{ from: 0n, next: 2n }]);
    expect(await p.land(2, 4, rightsOf([claim!]))).toMatchObject({ covered: true });
    await p.close();
  });

  test("coverage that was cut while it was in use ends it, and is not taken for what landed", async () => {
    const bench = new FakeSinkBench(6);
    const { p, rights } = await claimed(bench);
    expect(await p.land(0, 2, rights)).toMatchObject({ covered: true });
    bench.cluster.topics.delete("cov.p");
    const made = bench.cluster.createTopic("cov.p", { partitions: 2 });
    made.configs.set("cleanup.policy", "compact");
    const code = await p.claim(S).then(
      () => "none",
      (e: Failure) => e.code,
    );
    expect(code).toBe("kafka.offset_out_of_range");
    await p.close();
  });
});
