/**
 * Goal: the contract of the Kafka sink, and what only brokers that obey a test can show: an end of a transaction whose
 * answer is lost either way, brokers that move, an owner that is overtaken in the middle of a change.
 * Method: the test cluster in simulated time; its logs are the judge. test/real runs the contract over a real one.
 */
import { describe, expect, test } from "bun:test";
import { streamKey } from "../../../../src/core/records/stream.ts";
import {
  kafkaSinkContract,
  Process,
  rightsOf,
  type SinkBench,
} from "../../../contract/kafka-sink-contract.ts";
import { STREAM } from "../../../core/formats/parquet/rows.ts";
import { FakeSinkBench } from "./fake-bench.ts";

kafkaSinkContract("the test cluster", () => Promise.resolve(new FakeSinkBench(1)));

const S = streamKey(STREAM);

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
});
