/** Columns to produce out of what callers have: records one by one, Values, or payloads that a codec made of a table. */
import type { Payloads, RecordEncoder } from "../../../core/codecs/record-codec.ts";
import type { BytesColumn } from "../../../core/records/raw-batch.ts";
import type { Value } from "../../../core/types/value.ts";
import type { RecordColumns } from "../wire/records/record-writer.ts";
import { noDate } from "./refusals.ts";

type Bytes = Uint8Array | string;

export interface OneRecord {
  /** Absent and null: no key. A text goes as UTF-8. */
  readonly key?: Bytes | null;
  /** null: a tombstone in a compacted topic. */
  readonly value: Bytes | null;
  readonly headers?: readonly (readonly [name: Bytes, value: Bytes | null])[];
  /** Milliseconds since 1970; absent: now. With one record of a call that has it, all need it. */
  readonly timestamp?: number;
}

const UTF8 = new TextEncoder();
const HIGH = 4294967296;

function column(values: readonly (Bytes | null)[]): BytesColumn {
  const parts = values.map((v) => (typeof v === "string" ? UTF8.encode(v) : v));
  const offsets = new Int32Array(values.length + 1);
  const validity = new Uint8Array((values.length + 7) >>> 3);
  let end = 0;
  let nullCount = 0;
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i]!;
    if (part === null) nullCount++;
    else {
      validity[i >>> 3]! |= 1 << (i & 7);
      end += part.length;
    }
    offsets[i + 1] = end;
  }
  const data = new Uint8Array(end);
  for (let i = 0; i < parts.length; i++) if (parts[i] !== null) data.set(parts[i]!, offsets[i]!);
  return { offsets, data, validity, nullCount };
}

/** The records as columns, for `KafkaProducer.send`. `now`: for those without a timestamp, if others have one. */
export function columnsOf(records: readonly OneRecord[], now = 0): RecordColumns {
  const entries = records.flatMap((r) => r.headers ?? []);
  const offsets = new Int32Array(records.length + 1);
  for (let i = 0; i < records.length; i++) offsets[i + 1] = offsets[i]! + (records[i]!.headers?.length ?? 0);
  const keys = column(entries.map(([name]) => name));
  const values = column(entries.map(([, value]) => value));
  return {
    rows: records.length,
    key: records.some((r) => r.key !== undefined && r.key !== null)
      ? column(records.map((r) => r.key ?? null))
      : null,
    value: column(records.map((r) => r.value)),
    headers: entries.length === 0 ? null : { offsets, entries: entries.length, keys, values },
    timestamps: records.some((r) => r.timestamp !== undefined) ? timestamps(records, now) : null,
  };
}

function timestamps(records: readonly OneRecord[], now: number): Int32Array {
  const pairs = new Int32Array(2 * records.length);
  for (let i = 0; i < records.length; i++) {
    const ms = records[i]!.timestamp ?? now;
    if (!Number.isSafeInteger(ms)) throw noDate(`record ${i}`, ms);
    pairs[2 * i] = (ms % HIGH) | 0;
    pairs[2 * i + 1] = Math.floor(ms / HIGH);
  }
  return pairs;
}

/**
 * Rows that were encoded (`encodeJsonColumns`, `encodeColumns` of Avro) as values of records, and keys likewise. Payloads
 * that lie one behind the other are not copied.
 */
export function columnsOfPayloads(value: Payloads, key: Payloads | null = null): RecordColumns {
  return {
    rows: value.count,
    key: key === null ? null : payloadColumn(key),
    value: payloadColumn(value),
    headers: null,
    timestamps: null,
  };
}

function payloadColumn(payloads: Payloads): BytesColumn {
  const { bytes, starts, ends, count } = payloads;
  const offsets = new Int32Array(count + 1);
  const first = count === 0 ? 0 : starts[0]!;
  let end = first;
  let joined = true;
  for (let i = 0; i < count; i++) {
    joined &&= starts[i] === end;
    end = ends[i]!;
    offsets[i + 1] = joined ? end - first : offsets[i]! + ends[i]! - starts[i]!;
  }
  const none = { validity: new Uint8Array(0), nullCount: 0 };
  if (joined) return { offsets, data: bytes.subarray(first, end), ...none };
  const data = new Uint8Array(offsets[count]!);
  for (let i = 0; i < count; i++) data.set(bytes.subarray(starts[i], ends[i]), offsets[i]);
  return { offsets, data, ...none };
}

/** Values as an encoder writes them; null: a tombstone. */
export function columnsOfValues(values: readonly (Value | null)[], encoder: RecordEncoder): RecordColumns {
  return columnsOf(values.map((v) => ({ value: v === null ? null : encoder.encode(v) })));
}
