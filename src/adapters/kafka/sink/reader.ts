/** All of a sink's coverage as one value, for those who only look. */
import type { Codecs } from "../../../core/compression/codec.ts";
import { type CoverageState, NEW_STREAM, type StreamState } from "../../../core/coverage/state.ts";
import { windowName } from "../../../core/coverage/windows.ts";
import type { StreamKey } from "../../../core/records/stream.ts";
import type { Clock } from "../../../core/time/clock.ts";
import type { KafkaClient } from "../client.ts";
import { brokerFailure } from "../client-retry.ts";
import { ERROR } from "../wire/errors.ts";
import { KeyedLog } from "./keyed-log.ts";
import {
  decodeRanges,
  decodeState,
  RANGE_PARTITION,
  type SinkKey,
  STATE_PARTITION,
  united,
} from "./state.ts";

/** An open transaction of a pipeline that runs is over in moments; what is behind one that stays open is not shown. */
const STABLE_MS = 2_000;

/** Null: there is no such topic. What was committed while it was read may be in it or not. */
export async function readCoverageTopic(
  key: SinkKey,
  topic: string,
  parts: { readonly client: KafkaClient; readonly clock: Clock; readonly codecs: Codecs },
): Promise<CoverageState | null> {
  const { client } = parts;
  const { errors } = await client.refresh([topic], client.life);
  const code = errors.get(topic);
  if (code === ERROR.UNKNOWN_TOPIC_OR_PARTITION) return null;
  // That it cannot be seen now does not mean that nothing has landed.
  if (code !== undefined) throw brokerFailure(code, `Metadata of topic ${topic}`, topic);
  const logs = [STATE_PARTITION, RANGE_PARTITION].map(
    (partition) => new KeyedLog(topic, partition, { ...parts, stableMs: STABLE_MS }),
  );
  for (const log of logs) await log.readToEndWithin(STABLE_MS, client.life);
  const [states, ranges] = logs;
  const { coverage, heads } = decodeState(key, states?.entries ?? new Map());
  const landed = decodeRanges(key, ranges?.entries ?? new Map());
  const streams = new Map<StreamKey, StreamState>();
  const total = { rows: 0, bytes: 0 };
  // What recovery has filled of a stream that nobody ever claimed here has ranges alone.
  for (const stream of new Set([...coverage.streams.keys(), ...landed.keys()])) {
    const all = united(landed.get(stream)?.values() ?? []);
    streams.set(stream, { ...(coverage.streams.get(stream) ?? NEW_STREAM), covered: all.ranges });
    total.rows += all.rows;
    total.bytes += all.bytes;
  }
  // No files: what landed stands as one entry of the index that is not kept anywhere.
  const segments = [{ name: "topic", entries: 0, files: 0, level: 0, ...total }];
  const told = heads.map((head) => [windowName(head), { lease: 0, owner: head.holder }] as const);
  return { ...coverage, streams, segments, leases: new Map([...coverage.leases, ...told]) };
}
