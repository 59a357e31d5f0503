/**
 * Goal: every buffer of the reference implementation decodes to what its own reader says, or fails where it fails.
 * Method: decode each vector with the native and with the fallback codecs and compare all rows.
 *
 * Where we differ on purpose: a batch is handed out whole or not at all, while the reference gives out the records
 * that it read before it threw; and a false count fails here where the reference runs out of memory
 * (bad-count-huge-gzip). A cut tail never reaches a decoder, since the control thread frames whole batches.
 */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { libduckdbPath } from "../../../../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../../../../src/adapters/duckdb/native.ts";
import { fallbackCodecs } from "../../../../../src/adapters/duckdb/native-fallback.ts";
import golden from "../../../../golden/kafka/records.json";
import { decode, type Row } from "./rows.ts";

type Text = string | { readonly len: number; readonly sha256: string } | null;

interface GoldenRecord {
  readonly offset: string;
  readonly timestamp: string;
  readonly key: Text;
  readonly value: Text;
  readonly headers: readonly (readonly [string, Text])[];
}

interface GoldenBatch {
  readonly baseOffset?: string;
  readonly lastOffset?: string;
  readonly control?: boolean;
  readonly timestampType?: string;
  readonly transactional?: boolean;
  readonly producerId?: string;
  readonly producerEpoch?: number;
  readonly baseSequence?: number;
  readonly leaderEpoch?: number;
  readonly error?: string;
  readonly records?: readonly GoldenRecord[];
}

interface Vector {
  readonly name: string;
  readonly hex: string;
  readonly used: number;
  readonly error?: string;
  readonly batches: readonly GoldenBatch[];
}

const VECTORS = (golden as { readonly vectors: unknown }).vectors as readonly Vector[];
const TIMESTAMP_TYPES = ["NoTimestampType", "CreateTime", "LogAppendTime"];

/** The code that each broken vector must fail with. */
const CODES: Readonly<Record<string, string>> = {
  "bad-v2-crc": "kafka.crc",
  "bad-v1-crc": "kafka.crc",
  "bad-magic-3": "kafka.unknown_magic",
  "bad-length-small": "kafka.corrupt_batch",
  "bad-length-negative": "kafka.corrupt_batch",
  "bad-codec-6": "kafka.unknown_codec",
  "bad-count-more": "kafka.corrupt_batch",
  "bad-count-fewer": "kafka.corrupt_batch",
  "bad-count-negative": "kafka.corrupt_batch",
  "bad-count-huge-gzip": "kafka.corrupt_batch",
  "bad-record-length": "kafka.corrupt_batch",
  "bad-header-count": "kafka.corrupt_batch",
  "bad-key-length": "kafka.corrupt_batch",
  "bad-varint-5th-byte": "kafka.corrupt_batch",
  "bad-gzip-payload": "kafka.decompress",
  "bad-zstd-payload": "kafka.decompress",
};

/** Bytes as the vectors write them. */
function text(hex: string | null): Text {
  if (hex === null || hex.length <= 128) return hex;
  const bytes = Buffer.from(hex, "hex");
  return { len: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
}

function shown(row: Row): object {
  const { offset, timestamp, key, value, headers, run } = row;
  return {
    offset: String(offset),
    timestamp: String(timestamp),
    key: text(key),
    value: text(value),
    headers: headers.map(([k, v]) => [k, text(v)]),
    run: { ...run, producerId: String(run.producerId), timestampType: TIMESTAMP_TYPES[run.timestampType] },
  };
}

function expected(v: Vector): object[] {
  const rows: object[] = [];
  for (const b of v.batches) {
    if (b.error !== undefined) break;
    if (b.control === true) continue;
    for (const { offset, timestamp, key, value, headers } of b.records ?? []) {
      rows.push({
        offset,
        timestamp,
        key,
        value,
        // Header keys are text in the vectors and bytes here.
        headers: headers.map(([k, h]) => [Buffer.from(k, "utf8").toString("hex"), h]),
        run: {
          timestampType: b.timestampType,
          transactional: b.transactional ?? false,
          producerId: b.producerId ?? "-1",
          producerEpoch: b.producerEpoch ?? -1,
          baseSequence: b.baseSequence ?? -1,
          leaderEpoch: b.leaderEpoch ?? -1,
        },
      });
    }
  }
  return rows;
}

const good = VECTORS.filter((v) => v.error === undefined && v.batches.every((b) => b.error === undefined));
const broken = VECTORS.filter((v) => !good.includes(v));

test("the vectors are all there", () => {
  expect(VECTORS.length).toBe(90);
  expect(broken.map((v) => v.name).sort()).toEqual(Object.keys(CODES).sort());
});

for (const [name, codecs] of [
  ["native codecs", loadNative(libduckdbPath())],
  ["fallback codecs", fallbackCodecs],
] as const) {
  describe(`golden vectors with ${name}`, () => {
    test.each(good.map((v) => [v.name, v] as const))("%s", (_, v) => {
      const bytes = Uint8Array.from(Buffer.from(v.hex, "hex"));
      const last = v.batches.at(-1);
      const next = last === undefined ? 0n : BigInt(last.lastOffset!) + 1n;
      const { rows, spans, failure } = decode(codecs, bytes, { end: v.used, next });
      expect(failure).toBeNull();
      expect(spans).toEqual([[0n, next]]);
      expect(rows.map(shown)).toEqual(expected(v));
    });

    test.each(broken.map((v) => [v.name, v] as const))("%s", (_, v) => {
      const bytes = Uint8Array.from(Buffer.from(v.hex, "hex"));
      const { rows, spans, failure } = decode(codecs, bytes, { next: 1n << 40n });
      expect(failure?.code as string).toBe(CODES[v.name]!);
      const whole = expected(v);
      expect(rows.map(shown)).toEqual(whole);
      // What was handed out ends where the bad batch begins, and that is where the failure says.
      const reached = spans.at(-1)?.[1] ?? 0n;
      expect(failure?.at).toBe(`t/3@${reached}`);
      expect(reached).toBe(BigInt(whole.length));
    });
  });
}
