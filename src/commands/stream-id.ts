/** A stream by its key, where only those of Kafka can be. */
import { Failure } from "../core/failure/failure.ts";
import { type StreamId, type StreamKey, streamParts } from "../core/records/stream.ts";

/** Throws recovery.unsupported. */
export function streamIdOf(key: StreamKey): StreamId {
  const { transport, ...parts } = streamParts(key);
  if (transport !== "kafka")
    throw new Failure("recovery.unsupported", "only records of Kafka can be recovered", { at: key });
  return { transport, ...parts };
}
