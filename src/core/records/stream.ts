/**
 * A stream is the smallest thing that has an order: for Kafka one partition of one incarnation of a topic.
 * Positions are int64 and are compared only within a stream. In loops over records they are split in two
 * int32 halves; spans, one per batch, may use bigint.
 */
export interface StreamId {
  readonly transport: "kafka";
  /** Cluster id as the broker gives it, empty where it gives none. */
  readonly cluster: string;
  readonly topic: string;
  /** Our counter, raised when a topic was made anew under the same name. Starts at 0. */
  readonly incarnation: number;
  readonly partition: number;
}

/** `kafka/<cluster>/<topic>/<incarnation>/<partition>`; Kafka allows no slash in any of the parts. */
export type StreamKey = string;

/** Which part of a key it is. */
const INCARNATION = 3;

export function streamKey(s: Omit<StreamId, "transport"> & { readonly transport: string }): StreamKey {
  return `${s.transport}/${s.cluster}/${s.topic}/${s.incarnation}/${s.partition}`;
}

/** What `streamKey` was made of, whatever the transport. */
export function streamParts(key: StreamKey): Omit<StreamId, "transport"> & { readonly transport: string } {
  const [transport = "", cluster = "", topic = "", incarnation = "", partition = ""] = key.split("/");
  return { transport, cluster, topic, incarnation: Number(incarnation), partition: Number(partition) };
}

/** Whether the one is a stream of the same partition, before its topic was made anew. */
export function isEarlierLife(earlier: StreamKey, later: StreamKey): boolean {
  const [a, b] = [earlier.split("/"), later.split("/")];
  const same = a.length === b.length && a.every((part, i) => i === INCARNATION || part === b[i]);
  return same && Number(a[INCARNATION]) < Number(b[INCARNATION]);
}

/** Half-open range of positions. Holes left by compaction, control and filtered records are inside. */
export interface Span {
  readonly stream: StreamKey;
  readonly from: bigint;
  readonly next: bigint;
  /** Of the record before `next`, where the source knows it: whether the log was cut since can be asked by it. */
  readonly leaderEpoch?: number;
}
