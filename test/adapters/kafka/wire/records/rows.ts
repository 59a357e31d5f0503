/** RawBatches as plain rows, so that tests can compare them; and one call of the decoder with all that it gave. */
import { createFrameDecoder } from "../../../../../src/adapters/kafka/wire/records/frame-decoder.ts";
import type { Codecs } from "../../../../../src/core/compression/codec.ts";
import { Failure } from "../../../../../src/core/failure/failure.ts";
import type { FrameDecoder } from "../../../../../src/core/ports/lane-parts.ts";
import type { Frame } from "../../../../../src/core/records/frame.ts";
import type { BytesColumn, RawBatch } from "../../../../../src/core/records/raw-batch.ts";

export const STREAM = { transport: "kafka", cluster: "c", topic: "t", incarnation: 0, partition: 3 } as const;

export interface Run {
  readonly timestampType: number;
  readonly transactional: boolean;
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly leaderEpoch: number;
}

export interface Row {
  readonly offset: bigint;
  readonly timestamp: bigint;
  /** Lower-case hex. */
  readonly key: string | null;
  readonly value: string | null;
  readonly headers: readonly (readonly [string, string | null])[];
  readonly run: Run;
}

function hexAt(column: BytesColumn, row: number): string | null {
  const isNull = column.nullCount > 0 && (column.validity[row >> 3]! & (1 << (row & 7))) === 0;
  const from = column.offsets[row]!;
  const to = column.offsets[row + 1]!;
  if (isNull) return from === to ? null : "a null that holds bytes";
  return Buffer.from(column.data.subarray(from, to)).toString("hex");
}

function int64At(halves: Int32Array, row: number): bigint {
  return (BigInt(halves[2 * row + 1]!) << 32n) | BigInt(halves[2 * row]! >>> 0);
}

function headersAt(b: RawBatch, row: number): [string, string | null][] {
  const found: [string, string | null][] = [];
  for (let h = b.headers.offsets[row]!; h < b.headers.offsets[row + 1]!; h++) {
    found.push([hexAt(b.headers.keys, h) ?? "a null key", hexAt(b.headers.values, h)]);
  }
  return found;
}

export function rowsOf(b: RawBatch): Row[] {
  const r = b.runs;
  let run = 0;
  return Array.from({ length: b.rows }, (_, i) => {
    while (r.end[run]! <= i) run++;
    if (run >= r.count) throw new Error(`row ${i} is in no run`);
    return {
      offset: int64At(b.offsets, i),
      timestamp: int64At(b.timestamps, i),
      key: hexAt(b.key, i),
      value: hexAt(b.value, i),
      headers: headersAt(b, i),
      run: {
        timestampType: r.timestampType[run]!,
        transactional: r.transactional[run] === 1,
        producerId: r.producerId[run]!,
        producerEpoch: r.producerEpoch[run]!,
        baseSequence: r.baseSequence[run]!,
        leaderEpoch: r.leaderEpoch[run]!,
      },
    };
  });
}

export interface Decoded {
  readonly rows: readonly Row[];
  readonly spans: readonly (readonly [bigint, bigint])[];
  /** Rows of each batch. */
  readonly sizes: readonly number[];
  readonly failure: Failure | null;
}

export type FrameParts = Partial<Frame> & Pick<Frame, "next">;

export function frameOf(bytes: Uint8Array, parts: FrameParts): Frame {
  return {
    stream: 0,
    attempt: 0,
    from: 0n,
    start: 0,
    end: bytes.length,
    aborted: [],
    committedOnly: true,
    ...parts,
  };
}

/** Runs one frame through a decoder. Only Failures are caught. */
export function decodeWith(decoder: FrameDecoder, bytes: Uint8Array, parts: FrameParts): Decoded {
  const rows: Row[] = [];
  const spans: [bigint, bigint][] = [];
  const sizes: number[] = [];
  let failure: Failure | null = null;
  try {
    decoder.decode(bytes, frameOf(bytes, parts), STREAM, 5, (b) => {
      rows.push(...rowsOf(b));
      spans.push([b.span.from, b.span.next]);
      sizes.push(b.rows);
    });
  } catch (e) {
    if (!(e instanceof Failure)) throw e;
    failure = e;
  }
  return { rows, spans, sizes, failure };
}

export function decode(codecs: Codecs, bytes: Uint8Array, parts: FrameParts): Decoded {
  return decodeWith(createFrameDecoder({ codecs, maxDecompressedBytes: 64 * 1024 * 1024 }), bytes, parts);
}
