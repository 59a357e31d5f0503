/** Columns out of single records, for callers that have them one by one. */
import type { BytesColumn } from "../../../core/records/raw-batch.ts";
import type { RecordColumns } from "../wire/records/record-writer.ts";

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
    pairs[2 * i] = (ms % HIGH) | 0;
    pairs[2 * i + 1] = Math.floor(ms / HIGH);
  }
  return pairs;
}
