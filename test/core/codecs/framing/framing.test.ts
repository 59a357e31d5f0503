/**
 * Goal: every envelope is found or refused for its own row, and payloads are the bytes behind it.
 * Method: golden bytes of confluent-kafka's serializers; for Apicurio and Glue bytes put together from their published layouts;
 * random batches against a reading of one row at a time; cut, wrong and hostile envelopes.
 */
import { describe, expect, test } from "bun:test";
import { deflateSync } from "node:zlib";
import fc from "fast-check";
import { fallbackCodecs } from "../../../../src/adapters/duckdb/native-fallback.ts";
import { confluentEnvelope } from "../../../../src/core/codecs/framing/confluent.ts";
import { Framed, NO_VALUE, REFUSED } from "../../../../src/core/codecs/framing/framed.ts";
import { type FramingOptions, framingOf } from "../../../../src/core/codecs/framing/framing.ts";
import type { FramingName } from "../../../../src/core/config/decode-options.ts";
import { Failure } from "../../../../src/core/failure/failure.ts";
import type { BytesColumn, HeadersColumn } from "../../../../src/core/records/raw-batch.ts";
import golden from "../../../golden/framing.json";

interface Row {
  readonly bytes: Uint8Array | null;
  readonly headers?: readonly (readonly [string, Uint8Array | null])[];
}

function column(values: readonly (Uint8Array | null)[]): BytesColumn {
  const offsets = new Int32Array(values.length + 1);
  const validity = new Uint8Array((values.length + 7) >> 3).fill(0xff);
  for (const [i, v] of values.entries()) {
    offsets[i + 1] = offsets[i]! + (v?.length ?? 0);
    if (v === null) validity[i >> 3]! &= ~(1 << (i & 7));
  }
  const data = Buffer.concat(values.map((v) => v ?? new Uint8Array(0)));
  return { offsets, data, validity, nullCount: values.filter((v) => v === null).length };
}

function headersOf(rows: readonly Row[]): HeadersColumn {
  const all = rows.flatMap((r) => r.headers ?? []);
  const offsets = new Int32Array(rows.length + 1);
  for (const [i, r] of rows.entries()) offsets[i + 1] = offsets[i]! + (r.headers?.length ?? 0);
  const keys = column(all.map(([k]) => Buffer.from(k)));
  return { offsets, entries: all.length, keys, values: column(all.map(([, v]) => v)) };
}

const OPTIONS: FramingOptions = {
  part: "value",
  protobuf: false,
  maxPayloadBytes: 1 << 20,
  codecs: fallbackCodecs,
};

/** All rows as (schema or why not, payload), over as many batches as the framing makes. */
function framed(name: FramingName, rows: readonly Row[], options: Partial<FramingOptions> = {}): unknown[] {
  const framing = framingOf(name, { ...OPTIONS, ...options });
  const from = { column: column(rows.map((r) => r.bytes)), headers: headersOf(rows), rows: rows.length };
  const out = new Framed();
  const found: unknown[] = [];
  for (let first = 0; first < rows.length; ) {
    const next = framing(from, first, out);
    expect(next).toBe(first + out.rows);
    const faults = new Map(out.faults.map((f) => [f.row, f.reason]));
    expect([...faults.keys()]).toEqual([...faults.keys()].sort((a, b) => a - b));
    for (let i = 0; i < out.rows; i++) {
      const slot = out.slots[i]!;
      if (slot === NO_VALUE) found.push(null);
      else if (slot === REFUSED) found.push(faults.get(i));
      else
        found.push([
          out.schemas[slot],
          Buffer.from(out.bytes.subarray(out.starts[i]!, out.ends[i]!)).toString("hex"),
        ]);
    }
    first = next;
  }
  return found;
}

const hex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "hex"));
const uuid = (text: string): string => text.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
const ID = "00f0e0d0c0b0a0908070605040302010";

describe("confluent", () => {
  for (const c of golden.cases) {
    test(c.name, () => {
      const [header] = c.headers;
      const row: Row = { bytes: hex(c.bytes), headers: c.headers.map(([k, v]) => [k!, hex(v!)] as const) };
      const ref =
        header === undefined
          ? { by: "id", id: Number.parseInt(c.bytes.slice(2, 10), 16) }
          : { by: "guid", guid: uuid(header[1]!.slice(2, 34)) };
      const options = { part: c.part as "key", protobuf: c.message !== null };
      expect(framed("confluent", [row], options)).toEqual([[{ ref, message: c.message }, c.payload]]);
    });
  }

  test("null is no value, and schemas of a batch are told once", () => {
    const rows = ["000000000101", "000000000202", "000000000103"].map((t) => ({ bytes: hex(t) }));
    const framing = framingOf("confluent", OPTIONS);
    const out = new Framed();
    const all = [...rows, { bytes: null }];
    framing({ column: column(all.map((r) => r.bytes)), headers: headersOf(all), rows: 4 }, 0, out);
    expect([...out.slots.subarray(0, 4)]).toEqual([0, 1, 0, NO_VALUE]);
    expect(out.schemas.map((s) => s.ref)).toEqual([
      { by: "id", id: 1 },
      { by: "id", id: 2 },
    ]);
  });

  test("ids are unsigned; the last header of the name counts; one without value does not", () => {
    const guid = hex(`01${ID}`);
    expect(
      framed("confluent", [
        { bytes: hex("00ffffffff01") },
        {
          bytes: hex("aa"),
          headers: [
            ["__value_schema_id", hex("00")],
            ["x", null],
            ["__value_schema_id", guid],
          ],
        },
        { bytes: hex("0000000009aa"), headers: [["__value_schema_id", null]] },
        { bytes: hex("0000000009aa"), headers: [["__key_schema_id", guid]] },
        { bytes: hex(`01${ID}aa`) },
      ]),
    ).toEqual([
      [{ ref: { by: "id", id: 0xffffffff }, message: null }, "01"],
      [{ ref: { by: "guid", guid: uuid(ID) }, message: null }, "aa"],
      [{ ref: { by: "id", id: 9 }, message: null }, "aa"],
      [{ ref: { by: "id", id: 9 }, message: null }, "aa"],
      [{ ref: { by: "guid", guid: uuid(ID) }, message: null }, "aa"],
    ]);
  });

  test("a wrong envelope is the fault of its row alone", () => {
    const rows = ["", "00", "00000001", "7b7d", `01${ID.slice(2)}`, "000000000101"].map((t) => ({
      bytes: hex(t),
    }));
    expect(framed("confluent", rows)).toEqual([
      "0 bytes are too few for magic byte and schema id",
      "1 bytes are too few for magic byte and schema id",
      "4 bytes are too few for magic byte and schema id",
      "the value begins with byte 123, Confluent's framing with 0 (id) or 1 (GUID)",
      "16 bytes are too few for magic byte and schema id",
      [{ ref: { by: "id", id: 1 }, message: null }, "01"],
    ]);
    const header = (value: string): Row => ({
      bytes: hex("aa"),
      headers: [["__value_schema_id", hex(value)]],
    });
    expect(framed("confluent", [header("05"), header("000000000100"), header("")])).toEqual([
      "the header __value_schema_id begins with byte 5, Confluent's framing with 0 (id) or 1 (GUID)",
      "6 bytes in the header, its schema id ends after 5",
      "0 bytes are too few for magic byte and schema id",
    ]);
  });

  test("message indexes that are cut, negative, too large or too many are refused", () => {
    // count 3, one index; -1; 5 bytes of 7 bits and more; a count of 101.
    const bad = ["0602", "0201", "ffffffff0f", "ffffffffffff01", "ca01"].map((t) => ({
      bytes: hex(`0000000001${t}`),
    }));
    const why = "the message indexes behind the schema id are no zigzag varints of a message's place";
    expect(framed("confluent", bad, { protobuf: true })).toEqual([
      "7 bytes are too few for magic byte and schema id",
      why,
      why,
      why,
      why,
    ]);
  });

  test("random batches are read as one row at a time is", () => {
    const row = fc.oneof(
      fc.constant(null),
      fc.uint8Array({ maxLength: 12 }),
      fc
        .tuple(
          fc.integer({ min: 0, max: 3 }),
          fc.array(fc.nat(200), { maxLength: 3 }),
          fc.uint8Array({ maxLength: 6 }),
        )
        .map(([id, path, payload]) => {
          const zigzag = (n: number): number[] =>
            n * 2 < 128 ? [n * 2] : [((n * 2) % 128) | 0x80, (n * 2) >> 7];
          const indexes = path.length === 1 && path[0] === 0 ? [0] : [path.length, ...path].flatMap(zigzag);
          return new Uint8Array([0, 0, 0, 0, id, ...indexes, ...payload]);
        }),
    );
    fc.assert(
      fc.property(fc.array(row, { maxLength: 40 }), fc.boolean(), (values, protobuf) => {
        const together = framed(
          "confluent",
          values.map((bytes) => ({ bytes })),
          { protobuf },
        );
        const apart = values.flatMap((bytes) => framed("confluent", [{ bytes }], { protobuf }));
        expect(together).toEqual(apart);
      }),
      { numRuns: 300 },
    );
  });
});

describe("apicurio", () => {
  test("8 bytes of id before the payload, or in a header of either name", () => {
    const id = hex("0000000000000102");
    expect(
      framed("apicurio", [
        { bytes: hex("000000000000000102aabb") },
        { bytes: hex("aa"), headers: [["apicurio.value.globalId", id]] },
        { bytes: hex("bb"), headers: [["apicurio.value.contentId", id]] },
        { bytes: hex("00001fffffffffffffcc") },
        { bytes: null },
      ]),
    ).toEqual([
      [{ ref: { by: "id", id: 258 }, message: null }, "aabb"],
      [{ ref: { by: "id", id: 258 }, message: null }, "aa"],
      [{ ref: { by: "id", id: 258 }, message: null }, "bb"],
      [{ ref: { by: "id", id: Number.MAX_SAFE_INTEGER }, message: null }, "cc"],
      null,
    ]);
    expect(
      framed("apicurio", [{ bytes: hex("aa"), headers: [["apicurio.key.contentId", id]] }], { part: "key" }),
    ).toEqual([[{ ref: { by: "id", id: 258 }, message: null }, "aa"]]);
  });

  test("wrong envelopes", () => {
    const header: Row = { bytes: hex("aa"), headers: [["apicurio.value.contentId", hex("01")]] };
    const rows = ["00000000000000", "01000000000000000102", "000020000000000000"].map((t) => ({
      bytes: hex(t),
    }));
    expect(framed("apicurio", [...rows, header])).toEqual([
      "7 bytes are too few for magic byte and schema id",
      "the value begins with byte 1, Apicurio's framing with 0",
      "the schema id is above 2^53",
      "the header with the schema id has 1 bytes, not 8",
    ]);
  });
});

describe("glue", () => {
  const plain = (payload: string) => ({ bytes: hex(`0300${ID}${payload}`) });
  const packed = (payload: string) => ({ bytes: hex(`0305${ID}${payload}`) });
  const ref = { ref: { by: "guid", guid: uuid(ID) }, message: null };

  test("plain payloads stay where they are", () => {
    expect(framed("glue", [plain("aa"), { bytes: null }, plain("")])).toEqual([[ref, "aa"], null, [ref, ""]]);
  });

  test("zlib payloads, plain ones between them", () => {
    const rows = [packed(golden.zlib.packed), plain("bb"), { bytes: null }, packed(golden.zlib.packed)];
    expect(framed("glue", rows)).toEqual([
      [ref, golden.zlib.plain],
      [ref, "bb"],
      null,
      [ref, golden.zlib.plain],
    ]);
  });

  test("wrong headers, damage and a bomb cost their own row", () => {
    const bomb = Buffer.from(deflateSync(new Uint8Array(1 << 20))).toString("hex");
    const rows = [{ bytes: hex("0300aa") }, { bytes: hex(`0400${ID}`) }, { bytes: hex(`0301${ID}`) }];
    const found = framed("glue", [...rows, packed("789c00ff"), packed(bomb), packed(golden.zlib.packed)], {
      maxPayloadBytes: 1000,
    });
    expect(found.slice(0, 3)).toEqual([
      "3 bytes are too few for Glue's header of 18",
      "begins with byte 4, Glue's framing with 3",
      "compression byte 1, known are 0 (none) and 5 (zlib)",
    ]);
    expect(found[3]).toStartWith("the payload cannot be inflated: zlib: ");
    expect(found[4]).toBe(
      "the payload cannot be inflated: decompressed size is over the limit of 1000 bytes",
    );
    expect(found[5]).toEqual([ref, golden.zlib.plain]);
  });

  test("what inflates to more than a batch may hold comes in several", () => {
    const large = Buffer.from(deflateSync(new Uint8Array(6 << 20).fill(7)));
    const rows = Array.from({ length: 8 }, (_, i) =>
      i === 5 ? { bytes: hex("ff") } : packed(large.toString("hex")),
    );
    const framing = framingOf("glue", { ...OPTIONS, maxPayloadBytes: 8 << 20 });
    const from = { column: column(rows.map((r) => r.bytes)), headers: headersOf(rows), rows: rows.length };
    const out = new Framed();
    const seen: unknown[] = [];
    for (let first = 0; first < rows.length; ) {
      const next = framing(from, first, out);
      expect(out.bytes.length).toBeLessThan(40 << 20);
      seen.push([first, next, out.faults.map((f) => f.row)]);
      for (let i = 0; i < out.rows; i++)
        if (out.slots[i]! >= 0) expect(out.ends[i]! - out.starts[i]!).toBe(6 << 20);
      first = next;
    }
    expect(seen).toEqual([
      [0, 3, []],
      [3, 7, [2]],
      [7, 8, []],
    ]);
  });

  test("a batch of nothing but payloads that cannot be inflated costs what its rows cost", () => {
    const failure = new Failure("compression.corrupt", "no zlib");
    const zlib = () => {
      throw failure;
    };
    const framing = framingOf("glue", { ...OPTIONS, codecs: { zlib } });
    const rows = 300_000;
    const one = packed("00").bytes;
    const data = new Uint8Array(rows * one.length);
    for (let i = 0; i < rows; i++) data.set(one, i * one.length);
    const offsets = Int32Array.from({ length: rows + 1 }, (_, i) => i * one.length);
    const values = { ...column([one]), data, offsets };
    const out = new Framed();
    expect(framing({ column: values, headers: headersOf([]), rows }, 0, out)).toBe(rows);
    expect(out.faults.length).toBe(rows);
  });
});

test("none: the whole value, by the configured schema", () => {
  expect(framed("none", [{ bytes: hex("00") }, { bytes: null }, { bytes: hex("") }])).toEqual([
    [{ ref: { by: "default" }, message: null }, "00"],
    null,
    [{ ref: { by: "default" }, message: null }, ""],
  ]);
});

test("the envelopes that we write are those that we read", () => {
  for (const message of [[0], [3], [0, 1], [70, 0, 8200]]) {
    const out = new Framed();
    const bytes = Uint8Array.of(...confluentEnvelope(0xfedcba98, message), 7);
    const from = { column: column([bytes]), headers: headersOf([]), rows: 1 };
    framingOf("confluent", { ...OPTIONS, protobuf: true })(from, 0, out);
    expect(out.schemas).toEqual([{ ref: { by: "id", id: 0xfedcba98 }, message }]);
    expect([out.starts[0], out.ends[0]]).toEqual([bytes.length - 1, bytes.length]);
  }
  expect(confluentEnvelope(1, [0]).toHex()).toBe("000000000100");
  expect(confluentEnvelope(1).toHex()).toBe("0000000001");
});
