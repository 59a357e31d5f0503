/**
 * The contract of order over topics: the product's lane, coverage and recovery speak to brokers through a tap. Around each request of a
 * transaction of rows a reader of committed records says what is there, in the rows' topic and in that of the coverage.
 */

import { KafkaClient } from "../../src/adapters/kafka/client.ts";
import { columnsOf } from "../../src/adapters/kafka/producer/columns.ts";
import { KafkaProducer } from "../../src/adapters/kafka/producer/producer.ts";
import type { DecodedRequest } from "../../src/adapters/kafka/wire/protocol.ts";
import { systemChance } from "../../src/adapters/system/chance.ts";
import { normalRanges } from "../../src/core/coverage/ranges.ts";
import { recoveryInstance } from "../../src/core/coverage/windows.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import type { Authority, Range } from "../../src/core/ports/coverage.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { tapped } from "../brokers/kafka/wire-tap.ts";
import { committedRecords } from "./committed-values.ts";
import type { SinkBench } from "./kafka-sink-contract.ts";
import { kafkaWindowProcess, WINDOW_STREAM } from "./kafka-windows.ts";
import { fillWindows, type Landing, type OrderBench, type Seen, type Swap } from "./order-contract.ts";

const PARTITIONS = 4;
const RANGES_PARTITION = 1;

/** Transactional id of a request within a lane's transaction; null: it is of none. Changes of coverage have some without rows. */
export function laneTransactionOf(r: DecodedRequest): string | null {
  const id = transactionOf(r);
  return id === null || id.endsWith(".coverage") ? null : id;
}

function transactionOf(r: DecodedRequest): string | null {
  switch (r.api) {
    case "Produce":
    case "EndTxn":
    case "TxnOffsetCommit":
    case "AddOffsetsToTxn":
      return r.body.transactionalId;
    case "AddPartitionsToTxn":
      return r.body.v3AndBelowTransactionalId;
    default:
      return null;
  }
}

/**
 * What a reader of committed records finds in the rows' topic, whose values are "partition/position", and in that of the coverage, of the only stream in
 * it. Behind the end of a transaction all of it is waited for: brokers show it a moment after they answered.
 */
export async function lookAtTopics(
  bench: SinkBench,
  outside: KafkaClient,
  upTo: "now" | "end",
): Promise<Seen> {
  const { codecs } = bench.parts();
  // As plain JSON: not by what is judged.
  const entries = new Map<string, string | null>();
  const coverageTopic = `cov.${bench.pipeline}`;
  for (const r of await committedRecords(outside, coverageTopic, RANGES_PARTITION, codecs, upTo))
    if (r.key?.includes("/range/") === true) entries.set(r.key, r.value);
  const ranges = [...entries.values()].flatMap((text) =>
    text === null ? [] : (JSON.parse(text) as { readonly ranges: readonly [string, string][] }).ranges,
  );
  const rows: bigint[] = [];
  for (let partition = 0; partition < PARTITIONS; partition++)
    for (const { value } of await committedRecords(outside, bench.target, partition, codecs, upTo))
      rows.push(BigInt(value!.split("/")[1]!));
  const covered = ranges.map(([from, next]) => ({ from: BigInt(from), next: BigInt(next) }));
  return { rows, covered: normalRanges(covered) };
}

export function kafkaOrder(make: () => Promise<SinkBench>, clockOf: (bench: SinkBench) => Clock) {
  return async (): Promise<OrderBench> => {
    const bench = await make();
    const coverageTopic = `cov.${bench.pipeline}`;
    const outside = bench.client();
    let upTo: "now" | "end" = "now";
    /** Out of the transaction, at its first request: what belongs to its end. */
    async function forge(swap: Swap, { from, next }: Range): Promise<void> {
      const { signal } = new AbortController();
      const client = bench.client();
      const producer = new KafkaProducer(client, {}, { ...bench.parts(), chance: systemChance });
      await producer.start(signal);
      const key = `1/${bench.pipeline}/raw/range/${WINDOW_STREAM}/0`;
      const value = JSON.stringify({ ranges: [[String(from), String(next)]], rows: 0, bytes: 0 });
      if (swap === "cover_first")
        await (
          await producer.send(coverageTopic, columnsOf([{ key, value }]), {
            ...{ partition: RANGES_PARTITION, signal },
          })
        ).done;
      if (swap === "rows_first")
        await (await producer.send(bench.target, columnsOf([{ value: `3/${from}` }]), { signal })).done;
      producer.abort();
      client.close();
    }

    async function land(landing: Landing): Promise<void> {
      const { ranges, leased, swap, moment, acknowledged } = landing;
      const clock = clockOf(bench);
      const instance = leased ? recoveryInstance("r") : "live";
      let set: Range = ranges[0]!;
      let forged: Range | null = null;
      const tap = {
        before: async (r: DecodedRequest) => {
          if (laneTransactionOf(r) === null) return;
          if ((swap === "cover_first" || swap === "rows_first") && forged !== set) {
            forged = set;
            await forge(swap, set);
          }
          if (swap === "acknowledge_first" && r.api === "EndTxn") await acknowledged(set);
          await moment(`before ${r.api}`);
        },
        behind: async (r: DecodedRequest) => {
          if (laneTransactionOf(r) === null) return;
          upTo = r.api === "EndTxn" ? "end" : "now";
          await moment(`behind ${r.api}`);
          upTo = "now";
        },
      };
      const parts = () => {
        const all = bench.parts();
        return { ...all, net: tapped(all.net, tap) };
      };
      const { settings, pipeline, target } = bench;
      const clients: KafkaClient[] = [];
      const client = () => {
        clients.push(new KafkaClient(settings, parts()));
        return clients.at(-1)!;
      };
      const process = kafkaWindowProcess(
        { ...{ settings, pipeline, target, client, parts }, judging: clock, life: () => "dead" },
        instance,
      );
      const sets = async (of: readonly Range[], authority: Authority) => {
        for (const range of of) {
          set = range;
          const landed = await process.seal({ stream: WINDOW_STREAM, ...range }, [authority]);
          if ("refused" in landed) throw new Failure("internal.bug", landed.detail);
          await acknowledged(range);
        }
      };
      if (leased) await fillWindows(landing, WINDOW_STREAM, process.coverage, clock, sets);
      else {
        await process.coverage.open();
        const [claim] = await process.coverage.claim([WINDOW_STREAM], null, [0]);
        await sets(ranges, claim!.authority);
      }
      await process.close();
    }

    return {
      look: () => lookAtTopics(bench, outside, upTo),
      land: (landing) => bench.run(land(landing)),
      close: () => bench.close(),
    };
  };
}
