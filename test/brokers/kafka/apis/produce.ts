/** Produce (key 0): appends batches of format v2 as they come. Sequences are not checked. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import {
  type Draft,
  type ResponseOf,
  TOPIC_ID_VERSION,
} from "../../../../src/adapters/kafka/wire/protocol.ts";
import { HEADER_BYTES } from "../batch-builder.ts";
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
      const { log, leaderEpoch } = checked.partition;
      const bases = parts.map((batch) => log.append(batch, leaderEpoch));
      return { index, errorCode: ERROR.NONE, baseOffset: bases[0]!, logStartOffset: log.start };
    }),
  }));
  cluster.changed();
  if (request.body.acks === 0) silent();
  else reply({ responses });
}
