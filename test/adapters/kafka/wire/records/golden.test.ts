/** Every golden vector decodes to what the reference reader says, or fails where it fails. */

import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { libduckdbPath } from "../../../../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../../../../src/adapters/duckdb/native.ts";
import { fallbackCodecs } from "../../../../../src/adapters/duckdb/native-fallback.ts";
import { createFrameDecoder } from "../../../../../src/adapters/kafka/wire/records/frame-decoder.ts";
import type { Codecs } from "../../../../../src/core/compression/codec.ts";
import { Failure } from "../../../../../src/core/failure/failure.ts";
import type { BytesColumn, RawBatch } from "../../../../../src/core/records/raw-batch.ts";
import golden from "../../../../golden/kafka/records.json";

type Text = string | { len: number; sha256: string } | null;
interface GoldenRecord {
  offset: string;
  timestamp: string;
  key: Text;
  value: Text;
  headers: [string, Text][];
}
interface GoldenBatch {
  magic: number;
  control?: boolean;
  timestampType: string;
  transactional?: boolean;
  producerId?: string;
  producerEpoch?: number;
  baseSequence?: number;
  leaderEpoch?: number;
  error?: string;
  records?: GoldenRecord[];
}
interface Vector {
  name: string;
  hex: string;
  used: number;
  error?: string;
  batches: GoldenBatch[];
}
const VECTORS = (golden as unknown as { vectors: Vector[] }).vectors;

const stream = { transport: "kafka", cluster: "c", topic: "t", incarnation: 0, partition: 3 } as const;
const MIN = -(2n ** 63n);
const MAX = 2n ** 63n - 1n;

function text(column: BytesColumn, row: number): Text {
  if (column.nullCount > 0 && (column.validity[row >> 3]! & (1 << (row & 7))) === 0) return null;
  const bytes = column.data.subarray(column.offsets[row]!, column.offsets[row + 1]!);
  if (bytes.length <= 64) return Buffer.from(bytes).toString("hex");
  return { len: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
}

const int64 = (halves: Int32Array, row: number) =>
  String((BigInt(halves[2 * row + 1]!) << 32n) | BigInt(halves[2 * row]! >>> 0));

interface Row extends GoldenRecord {
  run: object;
}

function rowsOf(b: RawBatch): Row[] {
  const rows: Row[] = [];
  let run = 0;
  for (let i = 0; i < b.rows; i++) {
    while (b.runs.end[run]! <= i) run++;
    const headers: [string, Text][] = [];
    for (let h = b.headers.offsets[i]!; h < b.headers.offsets[i + 1]!; h++) {
      headers.push([text(b.headers.keys, h) as string, text(b.headers.values, h)]);
    }
    const r = b.runs;
    rows.push({
      offset: int64(b.offsets, i),
      timestamp: int64(b.timestamps, i),
      key: text(b.key, i),
      value: text(b.value, i),
      headers,
      run: {
        timestampType: ["NoTimestampType", "CreateTime", "LogAppendTime"][r.timestampType[run]!],
        transactional: r.transactional[run] === 1,
        producerId: String(r.producerId[run]),
        producerEpoch: r.producerEpoch[run],
        baseSequence: r.baseSequence[run],
        leaderEpoch: r.leaderEpoch[run],
      },
    });
  }
  return rows;
}

function decodeAll(codecs: Codecs, bytes: Uint8Array, end: number) {
  const rows: Row[] = [];
  const spans: [bigint, bigint][] = [];
  let failure: Failure | null = null;
  const frame = {
    stream: 0,
    attempt: 0,
    from: MIN,
    next: MAX,
    start: 0,
    end,
    aborted: [],
    committedOnly: true,
  };
  try {
    const decoder = createFrameDecoder({ codecs, maxDecompressedBytes: 64 * 1024 * 1024 });
    decoder.decode(bytes, frame, stream, 5, (b) => {
      rows.push(...rowsOf(b));
      spans.push([b.span.from, b.span.next]);
    });
  } catch (e) {
    if (!(e instanceof Failure)) throw e;
    failure = e;
  }
  return { rows, spans, failure };
}

/** Header keys are text in the vectors, bytes here. */
const keyHex = (k: string) => Buffer.from(k, "utf8").toString("hex");

function expected(v: Vector): Row[] {
  const rows: Row[] = [];
  for (const b of v.batches) {
    // We hand out a batch whole or not at all; the reference gives what it read before it threw.
    if (b.error !== undefined) break;
    if (b.control === true) continue;
    for (const r of b.records ?? []) {
      const run = {
        timestampType: b.timestampType,
        transactional: b.transactional ?? false,
        producerId: b.producerId ?? "-1",
        producerEpoch: b.producerEpoch ?? -1,
        baseSequence: b.baseSequence ?? -1,
        leaderEpoch: b.leaderEpoch ?? -1,
      };
      const headers = r.headers.map(([k, h]): [string, Text] => [long(keyHex(k)), h]);
      const { offset, timestamp, key, value } = r;
      rows.push({ offset, timestamp, key, value, headers, run });
    }
  }
  return rows;
}

const long = (hex: string) => hex;

for (const [name, codecs] of [
  ["native codecs", loadNative(libduckdbPath())],
  ["fallback codecs", fallbackCodecs],
] as const) {
  describe(`golden vectors with ${name}`, () => {
    for (const v of VECTORS) {
      test(v.name, () => {
        const bytes = new Uint8Array(Buffer.from(v.hex, "hex"));
        const broken = v.error !== undefined || v.batches.some((b) => b.error !== undefined);
        // A cut tail never reaches a decoder: the control thread frames whole batches. Broken framing must be seen.
        const { rows, spans, failure } = decodeAll(codecs, bytes, broken ? bytes.length : v.used);
        expect(failure === null).toBe(!broken);
        if (failure !== null) {
          expect(failure.code).toMatch(/^kafka\./);
          expect(failure.at).toMatch(/^t\/3@-?\d+$/);
        } else {
          expect(spans[0]?.[0]).toBe(MIN);
          expect(spans.at(-1)?.[1]).toBe(MAX);
        }
        for (let i = 1; i < spans.length; i++) expect(spans[i]![0]).toBe(spans[i - 1]![1]);
        expect(rows).toEqual(expected(v));
      });
    }
  });
}
