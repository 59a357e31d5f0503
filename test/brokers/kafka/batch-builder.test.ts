/**
 * Goal: the builders lay out batches as Kafka's own classes do. Method: the golden buffers (made by kafka-clients) are
 * built again from their decoded fields and must come out byte for byte.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  buildBatch,
  controlBatch,
  HEADER_BYTES,
  placeBatch,
  type RecordSpec,
  sealCrc,
} from "./batch-builder.ts";
import { legacyMessage, legacyWrapper } from "./legacy-builder.ts";

interface GoldenRecord {
  readonly offset: string;
  readonly timestamp: string;
  readonly key: string | null | object;
  readonly value: string | null | object;
  readonly headers: readonly (readonly [string, string | null])[];
}

interface GoldenBatch {
  readonly magic: number;
  readonly compression: string;
  readonly timestampType: string;
  readonly baseOffset: string;
  readonly lastOffset: string;
  readonly leaderEpoch: number;
  readonly producerId: string;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly transactional: boolean;
  readonly control: boolean;
  readonly deleteHorizon: string | null;
  readonly maxTimestamp: string;
  readonly records: readonly GoldenRecord[];
  readonly error?: string;
}

interface Vector {
  readonly name: string;
  readonly hex: string;
  readonly batches: readonly GoldenBatch[];
}

const path = join(import.meta.dir, "../../golden/kafka/records.json");
const { vectors } = (await Bun.file(path).json()) as { vectors: readonly Vector[] };

const bytesOf = (hex: string | null | object): Uint8Array | null =>
  hex === null ? null : Uint8Array.from(Buffer.from(hex as string, "hex"));

/** Long values are only a digest in the golden file: such a buffer cannot be built from its fields. */
const known = (b: GoldenBatch): boolean =>
  b.records.every((r) => [r.key, r.value].every((v) => v === null || typeof v === "string"));

const rebuildable = vectors.filter(({ name, batches }) => {
  const [b] = batches;
  if (name.startsWith("bad-") || name.startsWith("cut-") || batches.length !== 1 || b === undefined)
    return false;
  return (
    b.magic === 2 &&
    b.compression === "none" &&
    b.timestampType === "CreateTime" &&
    known(b) &&
    b.error === undefined
  );
});

function rebuild(b: GoldenBatch, bytes: Buffer): Uint8Array {
  const base = BigInt(b.baseOffset);
  const records = b.records.map(
    (r): RecordSpec => ({
      offsetDelta: Number(BigInt(r.offset) - base),
      timestamp: BigInt(r.timestamp),
      key: bytesOf(r.key),
      value: bytesOf(r.value),
      headers: r.headers.map(([key, value]) => [key, bytesOf(value)]),
    }),
  );
  return buildBatch({
    records,
    baseOffset: base,
    lastOffsetDelta: Number(BigInt(b.lastOffset) - base),
    leaderEpoch: b.leaderEpoch,
    // The reader shows no base timestamp: it stands at byte 27.
    baseTimestamp: bytes.readBigInt64BE(27),
    maxTimestamp: BigInt(b.maxTimestamp),
    producerId: BigInt(b.producerId),
    producerEpoch: b.producerEpoch,
    baseSequence: b.baseSequence,
    transactional: b.transactional,
    control: b.control,
    deleteHorizon: b.deleteHorizon !== null,
  });
}

test("enough golden buffers can be built again to mean something", () => {
  expect(rebuildable.length).toBeGreaterThan(15);
});

for (const { name, hex, batches } of rebuildable) {
  test(`${name} comes out as Kafka wrote it`, () => {
    const built = rebuild(batches[0]!, Buffer.from(hex, "hex"));
    expect(Buffer.from(built).toString("hex")).toBe(hex);
  });
}

describe("fields at the caller's will", () => {
  test("attributes: codec, log append time, transactional, control, delete horizon", () => {
    const attributes = (spec: object) => {
      const b = buildBatch({ records: [{ value: "v" }], ...spec });
      return new DataView(b.buffer).getInt16(21);
    };
    expect(attributes({})).toBe(0);
    expect(attributes({ codec: "zstd", logAppendTime: true })).toBe(4 | 8);
    expect(attributes({ transactional: true, control: true, deleteHorizon: true })).toBe(16 | 32 | 64);
  });

  test("an empty batch keeps its last offset, as compaction leaves it", () => {
    const b = buildBatch({ records: [], lastOffsetDelta: 39 });
    const view = new DataView(b.buffer);
    expect([b.length, view.getInt32(23), view.getInt32(57), view.getBigInt64(35)]).toEqual([
      HEADER_BYTES,
      39,
      0,
      -1n,
    ]);
  });

  test("counts, magic and checksum can lie; the checksum can be made true again", () => {
    const good = buildBatch({ records: [{ value: "v" }], count: 7, magic: 3 });
    const bad = buildBatch({ records: [{ value: "v" }], count: 7, magic: 3, crcError: 1 });
    const view = new DataView(bad.buffer);
    expect([view.getInt32(57), view.getInt8(16)]).toEqual([7, 3]);
    expect(Buffer.compare(good, bad)).not.toBe(0);
    sealCrc(bad);
    expect(Buffer.compare(good, bad)).toBe(0);
  });

  test("placing a batch changes offset and epoch, not the checksum", () => {
    const a = buildBatch({ records: [{ value: "v" }] });
    placeBatch(a, 2n ** 53n + 1n, 9);
    const b = buildBatch({ records: [{ value: "v" }], baseOffset: 2n ** 53n + 1n, leaderEpoch: 9 });
    expect(Buffer.compare(a, b)).toBe(0);
  });

  test("markers are the control batches that Kafka writes", () => {
    const golden = vectors.find((v) => v.name === "v2-control-abort")!.batches[0]!;
    const key = (type: "commit" | "abort") =>
      controlBatch({ type, producerId: 5n, baseOffset: 40n })
        .subarray(HEADER_BYTES + 5)
        .slice(0, 4);
    expect(Buffer.from(key("abort")).toString("hex")).toBe(golden.records[0]!.key as string);
    expect(Buffer.from(key("commit")).toString("hex")).toBe("00000001");
  });
});

describe("magic 0 and 1", () => {
  const rebuildOld = (name: string) => {
    const { batches, hex } = vectors.find((v) => v.name === name)!;
    const records = batches
      .flatMap((b) => b.records.map((r) => ({ magic: b.magic as 0 | 1, r })))
      .filter(({ r }) => typeof r.value !== "object" || r.value === null);
    const built = records.map(({ magic, r }) =>
      legacyMessage(magic, {
        offset: BigInt(r.offset),
        timestamp: BigInt(r.timestamp),
        key: bytesOf(r.key),
        value: bytesOf(r.value),
      }),
    );
    return { built: Buffer.concat(built).toString("hex"), hex };
  };

  for (const name of [
    "v0-none-basic",
    "v1-none-basic",
    "v0-none-compacted",
    "v1-none-compacted",
    "v1-none-no-timestamp",
  ]) {
    test(`${name} begins as Kafka wrote it`, () => {
      // The last message of the basic vectors is long and known by its digest only.
      const { built, hex } = rebuildOld(name);
      expect(built.length).toBeGreaterThan(60);
      expect(hex.slice(0, built.length)).toBe(built);
    });
  }

  test("a wrapper holds its messages compressed, numbered as its format has it", () => {
    const messages = [5n, 7n].map((offset) => ({ offset, key: null, value: Uint8Array.of(Number(offset)) }));
    for (const magic of [0, 1] as const) {
      const wrapper = Buffer.from(legacyWrapper(magic, "gzip", messages));
      const head = magic === 1 ? 34 : 26;
      const inner = Buffer.from(Bun.gunzipSync(wrapper.subarray(head)));
      expect([wrapper.readBigInt64BE(0), wrapper[16], wrapper[17]]).toEqual([7n, magic, 1]);
      expect(inner.readBigInt64BE(0)).toBe(magic === 1 ? 0n : 5n);
    }
  });
});
