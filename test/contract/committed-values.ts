/**
 * Values of the records that a reader of committed records finds in a topic up to its end, sorted. A commit that was
 * answered is carried out by the brokers a moment later: the end is waited for.
 */
import { CONTROL, type KafkaClient } from "../../src/adapters/kafka/client.ts";
import { scanBatches } from "../../src/adapters/kafka/source-scan.ts";
import { createFrameDecoder } from "../../src/adapters/kafka/wire/records/frame-decoder.ts";
import type { Codecs } from "../../src/core/compression/codec.ts";

const FETCH_BY_NAME = 12;
const BYTES = 1 << 22;

export async function committedValues(
  client: KafkaClient,
  topic: string,
  partitions: number,
  codecs: Codecs,
): Promise<readonly string[]> {
  const { signal } = new AbortController();
  const values: string[] = [];
  await client.refresh([topic], signal);
  for (let partition = 0; partition < partitions; partition++) {
    for (let at = 0n; ; ) {
      const link = await client.link(client.metadata.leader(topic, partition).leader, CONTROL, signal);
      const body = {
        replicaId: -1,
        maxWaitMs: 0,
        minBytes: 0,
        maxBytes: BYTES,
        isolationLevel: 1,
        sessionId: 0,
        sessionEpoch: -1,
        topics: [{ topic, partitions: [{ partition, fetchOffset: at, partitionMaxBytes: BYTES }] }],
        forgottenTopicsData: [],
        rackId: "",
      };
      const answer = (await client.ask(link, "Fetch", body, signal, FETCH_BY_NAME)).responses[0]
        ?.partitions[0];
      if (answer === undefined || answer.errorCode !== 0)
        throw new Error(`${topic}/${partition} at ${at}: error ${answer?.errorCode}`);
      const { records } = answer;
      if (records === null || records.length === 0) {
        if (at >= answer.highWatermark) break;
        continue;
      }
      const { end, next } = scanBatches(records);
      const aborted = answer.abortedTransactions ?? [];
      const frame = { stream: 0, attempt: 0, from: at, next, start: 0, end, aborted, committedOnly: true };
      const id = { transport: "kafka", cluster: "", topic, incarnation: 0, partition } as const;
      createFrameDecoder({ codecs }).decode(records, frame, id, 0, ({ rows, value }) => {
        for (let row = 0; row < rows; row++)
          values.push(
            Buffer.from(value.data.subarray(value.offsets[row]!, value.offsets[row + 1]!)).toString(),
          );
      });
      at = next;
    }
  }
  client.close();
  return values.sort();
}
