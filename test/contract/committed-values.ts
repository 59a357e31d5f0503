/**
 * What a reader of committed records finds in a topic. A commit that was answered is carried out by the brokers a moment
 * later: up to the end of the log is waited for, unless it is asked for what is committed by now.
 */
import { CONTROL, type KafkaClient } from "../../src/adapters/kafka/client.ts";
import { scanBatches } from "../../src/adapters/kafka/source-scan.ts";
import { createFrameDecoder } from "../../src/adapters/kafka/wire/records/frame-decoder.ts";
import type { Codecs } from "../../src/core/compression/codec.ts";
import type { BytesColumn } from "../../src/core/records/raw-batch.ts";

const FETCH_BY_NAME = 12;
const BYTES = 1 << 22;

export interface CommittedRecord {
  readonly key: string | null;
  readonly value: string | null;
}

/** Sorted values of all records up to the end; the client is closed. */
export async function committedValues(
  client: KafkaClient,
  topic: string,
  partitions: number,
  codecs: Codecs,
): Promise<readonly string[]> {
  const values: string[] = [];
  for (let partition = 0; partition < partitions; partition++)
    for (const { value } of await committedRecords(client, topic, partition, codecs, "end"))
      values.push(value ?? "");
  client.close();
  return values.sort();
}

/** "now": without what is in a transaction that is open, or behind one. */
export async function committedRecords(
  client: KafkaClient,
  topic: string,
  partition: number,
  codecs: Codecs,
  upTo: "end" | "now",
): Promise<readonly CommittedRecord[]> {
  const { signal } = new AbortController();
  const records: CommittedRecord[] = [];
  await client.refresh([topic], signal);
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
    const answer = (await client.ask(link, "Fetch", body, signal, FETCH_BY_NAME)).responses[0]?.partitions[0];
    if (answer === undefined || answer.errorCode !== 0)
      throw new Error(`${topic}/${partition} at ${at}: error ${answer?.errorCode}`);
    const end = upTo === "end" ? answer.highWatermark : answer.lastStableOffset;
    if (answer.records === null || answer.records.length === 0) {
      if (at >= end) return records;
      continue;
    }
    const scan = scanBatches(answer.records);
    const aborted = answer.abortedTransactions ?? [];
    const span = { from: at, next: scan.next, start: 0, end: scan.end };
    const frame = { stream: 0, attempt: 0, ...span, aborted, committedOnly: true };
    const id = { transport: "kafka", cluster: "", topic, incarnation: 0, partition } as const;
    createFrameDecoder({ codecs }).decode(answer.records, frame, id, 0, ({ rows, key, value }) => {
      for (let row = 0; row < rows; row++) records.push({ key: textOf(key, row), value: textOf(value, row) });
    });
    at = scan.next;
  }
}

function textOf({ data, offsets, validity, nullCount }: BytesColumn, row: number): string | null {
  if (nullCount > 0 && ((validity[row >> 3]! >> (row & 7)) & 1) === 0) return null;
  return Buffer.from(data.subarray(offsets[row]!, offsets[row + 1]!)).toString();
}
