/** Produce (key 0): appends batches of format v2, with Kafka's rules for sequences. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import {
  type Draft,
  type ResponseOf,
  TOPIC_ID_VERSION,
} from "../../../../src/adapters/kafka/wire/protocol.ts";
import { HEADER_BYTES } from "../batch-builder.ts";
import type { Partition } from "../cluster.ts";
import { identityOf } from "../producer-states.ts";
import { checkLeader } from "./leadership.ts";
import type { Call } from "./table.ts";

type Responses = NonNullable<Draft<ResponseOf<"Produce">>["responses"]>;

/** The batches in a produce request, null if the bytes are no whole batches of format v2. */
function batches(records: Uint8Array): Uint8Array[] | null {
  const found: Uint8Array[] = [];
  const view = new DataView(records.buffer, records.byteOffset, records.byteLength);
  for (let at = 0; at < records.length; ) {
    if (records.length - at < HEADER_BYTES || view.getInt8(at + 16) !== 2) return null;
    const size = 12 + view.getInt32(at + 8);
    if (size < HEADER_BYTES || size > records.length - at) return null;
    // Copied, since base offset and epoch are written into it.
    found.push(records.slice(at, at + size));
    at += size;
  }
  return found;
}

interface Appended {
  readonly errorCode: number;
  readonly baseOffset: bigint;
  readonly logStartOffset: bigint;
}

function appendAll({ log, leaderEpoch, producers }: Partition, parts: readonly Uint8Array[]): Appended {
  let first = -1n;
  for (const batch of parts) {
    const identity = identityOf(batch);
    const verdict = producers.judge(identity);
    if (verdict.kind === "refused")
      return { errorCode: verdict.code, baseOffset: -1n, logStartOffset: log.start };
    const base = verdict.kind === "duplicate" ? verdict.base : log.append(batch, leaderEpoch);
    if (verdict.kind === "append") producers.appended(identity, base);
    if (first < 0n) first = base;
  }
  return { errorCode: ERROR.NONE, baseOffset: first, logStartOffset: log.start };
}

export function produce({ cluster, broker, request, reply, silent }: Call<"Produce">): void {
  const byId = request.version >= TOPIC_ID_VERSION.Produce;
  const unknown = byId ? ERROR.UNKNOWN_TOPIC_ID : ERROR.UNKNOWN_TOPIC_OR_PARTITION;
  const responses: Responses = request.body.topicData.map(({ name, topicId, partitionData }) => ({
    name,
    topicId,
    partitionResponses: partitionData.map(({ index, records }) => {
      const topic = byId ? cluster.topicById(topicId) : cluster.topics.get(name);
      const checked = checkLeader("Produce", broker, topic, index, -1, unknown);
      if (!checked.ok) return { index, errorCode: checked.code, baseOffset: -1n };
      const parts = batches(records ?? new Uint8Array(0));
      if (parts === null || parts.length === 0)
        return { index, errorCode: ERROR.CORRUPT_MESSAGE, baseOffset: -1n };
      if (parts.some((b) => b.length > cluster.maxBatchBytes))
        return { index, errorCode: ERROR.MESSAGE_TOO_LARGE, baseOffset: -1n };
      const invalid = parts.map((b) => cluster.validates(topic?.name ?? "", b)).find((code) => code !== 0);
      if (invalid !== undefined) return { index, errorCode: invalid, baseOffset: -1n };
      return { index, ...appendAll(checked.partition, parts) };
    }),
  }));
  cluster.changed();
  if (request.body.acks === 0) silent();
  else reply({ responses });
}
