/**
 * Reads batch headers only, for the control thread: how far the whole batches of a response reach, in bytes and
 * in offsets. It checks nothing behind the headers; the lane does. A cut tail is normal (the broker fills the
 * response to the byte limit) and left out.
 */
import { Failure } from "../../../../core/failure/failure.ts";
import * as L from "./layout.ts";

export interface BatchScan {
  /** Index behind the last whole batch; `start` if there is none. */
  readonly end: number;
  /** Position after the last whole batch, never below `from`. */
  readonly next: bigint;
  readonly batches: number;
  /** Records that the headers declare at and above `from`; control records are not counted, a compressed magic 0 or 1 set counts as one. */
  readonly records: number;
  /** Largest timestamp that the headers declare, ms; -1 if none. */
  readonly maxTimestamp: bigint;
  /** Leader epoch of the last whole batch; -1 if it has none. */
  readonly leaderEpoch: number;
  /** Bytes that the first batch takes, if it is not whole and its length is there; else 0. */
  readonly needed: number;
  /**
   * kafka.corrupt_batch or kafka.unknown_magic: what stands at `end` cannot be framed, now or ever. What is
   * before it is good. `at` is left to the caller, who knows topic and partition.
   */
  readonly trouble: Failure | null;
}

interface Totals {
  end: number;
  next: bigint;
  batches: number;
  records: number;
  maxTimestamp: bigint;
  leaderEpoch: number;
}

/** Scans bytes[start, end). `from` is the requested position. */
export function scanBatches(bytes: Uint8Array, start: number, end: number, from: bigint): BatchScan {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const t: Totals = { end: start, next: from, batches: 0, records: 0, maxTimestamp: -1n, leaderEpoch: -1 };
  let needed = 0;
  let trouble: Failure | null = null;
  while (end - t.end >= L.MAGIC_END) {
    trouble = framingTrouble(view, t.end, end);
    if (trouble !== null) break;
    const size = L.PREFIX_BYTES + view.getInt32(t.end + L.AT_LENGTH);
    if (size > end - t.end) {
      if (t.batches === 0) needed = size;
      break;
    }
    add(view, t.end, t, from);
    t.end += size;
  }
  return { ...t, needed, trouble };
}

/**
 * Whether the batch at `at` can be framed: null, or the failure without a place. Needs L.MAGIC_END bytes before
 * `end`; the last offset of magic 2 is looked at if its header is there.
 */
export function framingTrouble(view: DataView, at: number, end: number): Failure | null {
  const magic = view.getInt8(at + L.AT_MAGIC);
  if (magic < 0 || magic > 2) {
    return new Failure("kafka.unknown_magic", `record batch of magic ${magic}, 0 to 2 are known`);
  }
  const size = L.PREFIX_BYTES + view.getInt32(at + L.AT_LENGTH);
  const smallest = L.SMALLEST[magic]!;
  if (size < smallest) {
    return new Failure(
      "kafka.corrupt_batch",
      `record batch of ${size} bytes, magic ${magic} needs ${smallest}`,
    );
  }
  const base = view.getBigInt64(at);
  if (base < 0n || base > L.LARGEST_OFFSET) {
    return new Failure("kafka.corrupt_batch", `record batch at the offset ${base}`);
  }
  if (magic < 2 || end - at < L.V2_RECORDS) return null;
  const delta = view.getInt32(at + L.V2_LAST_OFFSET_DELTA);
  if (delta < 0 || base + BigInt(delta) > L.LARGEST_OFFSET) {
    return new Failure("kafka.corrupt_batch", `last offset delta ${delta} at the offset ${base}`);
  }
  return null;
}

function add(view: DataView, at: number, t: Totals, from: bigint): void {
  const v2 = view.getInt8(at + L.AT_MAGIC) === 2;
  const base = view.getBigInt64(at);
  const next = base + 1n + (v2 ? BigInt(view.getInt32(at + L.V2_LAST_OFFSET_DELTA)) : 0n);
  t.batches++;
  t.leaderEpoch = v2 ? view.getInt32(at + L.AT_LEADER_EPOCH) : -1;
  if (next > t.next) t.next = next;
  if (next <= from) return;
  t.records += v2 ? countOf(view, at) : 1;
  const timestamp = v2 ? view.getBigInt64(at + L.V2_MAX_TIMESTAMP) : messageTimestamp(view, at);
  if (timestamp > t.maxTimestamp) t.maxTimestamp = timestamp;
}

function countOf(view: DataView, at: number): number {
  const control = (view.getInt16(at + L.V2_ATTRIBUTES) & L.ATTR_CONTROL) !== 0;
  return control ? 0 : Math.max(0, view.getInt32(at + L.V2_COUNT));
}

function messageTimestamp(view: DataView, at: number): bigint {
  return view.getInt8(at + L.AT_MAGIC) === 1 ? view.getBigInt64(at + L.V1_TIMESTAMP) : -1n;
}
