/**
 * Goal: every field of a record is in the table as it came. Method: records with the edges of each field are written by
 * COPY and read by psql, whose text is compared with what PostgreSQL's documentation says such values print as.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { bytes, type Row, row, STREAM } from "../../core/formats/parquet/rows.ts";
import { demandPostgres, freshDatabase, lines, POSTGRES, psql, settings } from "./server.ts";
import { KEY, Sink } from "./sink.ts";

demandPostgres("records in a table");

const I64_MAX = 2n ** 63n - 1n;
const I64_MIN = -(2n ** 63n);
const WILD = Uint8Array.of(0xff, 0x00, 0xc3, 0x28, 0x80);

describe.skipIf(POSTGRES === null)("a raw table", () => {
  let database: string;
  let sink: Sink;

  beforeAll(async () => {
    database = await freshDatabase();
    sink = new Sink({ settings: settings(database) });
    await sink.prepare();
  });
  afterAll(() => sink.close());

  /** Lands the rows in an empty table and gives an expression of each, in the order of offsets. */
  async function landed(rows: readonly Row[], expression: string): Promise<string[]> {
    await psql(database, "truncate raw; drop schema if exists twg cascade");
    const fresh = new Sink({ settings: settings(database) });
    const authorities = await fresh.claimed();
    expect(await fresh.land(rows, authorities)).toMatchObject({ covered: true, rows: rows.length });
    await fresh.close();
    return lines(await psql(database, `select ${expression} from raw order by _twg_source_offset`));
  }

  const KEY_AND_VALUE =
    "_twg_source_key, _twg_source_value, _twg_source_key is null, _twg_source_value is null";

  test("keys and values: null, empty, text and bytes that are none", async () => {
    const rows = [
      row(0, { key: null, value: bytes("") }),
      row(1, { key: bytes(""), value: null }),
      row(2, { key: WILD, value: WILD }),
      row(3, { key: bytes("k"), value: bytes("{}") }),
    ];
    expect(await landed(rows, KEY_AND_VALUE)).toEqual([
      "|\\x|t|f",
      "\\x||f|t",
      "\\xff00c32880|\\xff00c32880|f|f",
      "\\x6b|\\x7b7d|f|f",
    ]);
  });

  test("headers: order, duplicates, null and empty values, and keys that are no text", async () => {
    const rows = [
      row(0),
      row(1, {
        headers: [
          [bytes("a"), bytes("1")],
          [bytes("a"), null],
          [bytes("a"), bytes("")],
          [bytes(""), bytes("x")],
        ],
      }),
      row(2, { headers: [[WILD, WILD]] }),
    ];
    const expression =
      "_twg_source_headers, array_ndims(_twg_source_headers), array_length(_twg_source_headers, 1)";
    expect(await landed(rows, expression)).toEqual([
      "{}||",
      '{{"\\\\x61","\\\\x31"},{"\\\\x61",NULL},{"\\\\x61","\\\\x"},{"\\\\x","\\\\x78"}}|2|4',
      '{{"\\\\xff00c32880","\\\\xff00c32880"}}|2|1',
    ]);
  });

  test("timestamps: usual ones, before 1970, and the ends of what PostgreSQL can hold", async () => {
    const rows = [
      row(0, { timestamp: 1_700_000_000_123n }),
      row(1, { timestamp: 0n }),
      row(2, { timestamp: -1n }),
      row(3, { timestamp: -62_135_596_800_000n, timestampType: 2 }),
      row(4, { timestamp: 946_684_799_999n }),
      row(5, { timestamp: -210_866_803_200_000n }),
      row(6, { timestamp: 253_402_300_799_999n }),
      row(7, { timestampType: 0, timestamp: -1n }),
    ];
    const expression =
      "_twg_source_timestamp, _twg_source_timestamp_type, _twg_source_timestamp_beyond is null";
    expect(await landed(rows, expression)).toEqual([
      "2023-11-14 22:13:20.123+00|CreateTime|t",
      "1970-01-01 00:00:00+00|CreateTime|t",
      "1969-12-31 23:59:59.999+00|CreateTime|t",
      "0001-01-01 00:00:00+00|LogAppendTime|t",
      "1999-12-31 23:59:59.999+00|CreateTime|t",
      "4714-11-24 00:00:00+00 BC|CreateTime|t",
      "9999-12-31 23:59:59.999+00|CreateTime|t",
      "||t",
    ]);
  });

  test("timestamps beyond them are infinite, and their numbers are kept", async () => {
    const rows = [I64_MAX, I64_MIN, 2n ** 53n - 1n, 2n ** 53n - 2n, -210_866_803_200_001n].map(
      (timestamp, i) => row(i, { timestamp }),
    );
    expect(await landed(rows, "_twg_source_timestamp, _twg_source_timestamp_beyond")).toEqual([
      `infinity|${I64_MAX}`,
      `-infinity|${I64_MIN}`,
      `infinity|${2n ** 53n - 1n}`,
      "287396-10-12 08:59:00.99+00|",
      "-infinity|-210866803200001",
    ]);
  });

  test("producer fields: -1 is null, the largest values stay, and runs of them do not mix", async () => {
    const idempotent = { producerId: I64_MAX, producerEpoch: 32_767, baseSequence: 2_147_483_647 };
    const rows = [
      row(0),
      row(1, { ...idempotent, leaderEpoch: 7, transactional: true }),
      row(2, { ...idempotent, leaderEpoch: 7, transactional: true }),
      row(3, { producerId: 0n, producerEpoch: 0, baseSequence: 0, leaderEpoch: 0 }),
    ];
    const expression =
      "_twg_source_producer_id, _twg_source_producer_epoch, _twg_source_base_sequence, _twg_source_leader_epoch, _twg_source_transactional";
    expect(await landed(rows, expression)).toEqual([
      "||||f",
      `${I64_MAX}|32767|2147483647|7|t`,
      `${I64_MAX}|32767|2147483647|7|t`,
      "0|0|0|0|f",
    ]);
  });

  test("position, stamps and the columns that Kafka does not have", async () => {
    const rows = [row(5), row(2n ** 53n + 1n), row(I64_MAX - 1n)];
    const position =
      "_twg_source_transport, _twg_source_cluster, _twg_source_topic, _twg_source_partition, _twg_source_offset, _twg_pipeline, _twg_ingest_ts";
    const absent = "_twg_source_message_id is null and _twg_source_event_time is null and _twg_dq is null";
    expect(await landed(rows, `${position}, ${absent}, _twg_emit_ts > '2024-01-01'`)).toEqual(
      [5n, 2n ** 53n + 1n, I64_MAX - 1n].map(
        (offset) => `kafka|c1|orders|3|${offset}|p|2023-11-14 22:13:20.5+00|t|t`,
      ),
    );
  });

  // test/golden/record-id.json: the same bytes, here in the text form of uuid.
  test("the record id is the one that every other sink writes", async () => {
    interface Vector {
      readonly transport: string;
      readonly cluster: string;
      readonly topic: string;
      readonly incarnation: number;
      readonly partition: number;
      readonly offset: string;
      readonly id: string;
    }
    const golden = (await Bun.file(
      new URL("../../golden/record-id.json", import.meta.url),
    ).json()) as Vector[];
    const vectors = golden.filter(
      (v) => v.transport === "kafka" && BigInt(v.offset) >= 0n && BigInt(v.offset) < I64_MAX,
    );
    expect(vectors.length).toBeGreaterThan(3);
    await psql(database, "truncate raw; drop schema if exists twg cascade");
    const one = new Sink({ settings: settings(database) });
    await one.coverage.open();
    for (const v of vectors) {
      const { cluster, topic, incarnation, partition, offset } = v;
      const stream = { ...STREAM, cluster, topic, incarnation, partition };
      const landed = await one.land([row(BigInt(offset))], await one.claim(stream), stream);
      expect(landed).toMatchObject({ covered: true });
    }
    await one.close();
    const ids = lines(await psql(database, "select replace(_twg_record_id::text, '-', '') from raw"));
    expect(ids.sort()).toEqual(vectors.map((v) => v.id).sort());
  });

  test("a row larger than a block of the COPY, among small ones", async () => {
    const large = new Uint8Array(3_000_000).fill(0x61);
    const rows = [row(0, { value: bytes("a") }), row(1, { value: large }), row(2, { value: bytes("b") })];
    expect(await landed(rows, "length(_twg_source_value), md5(_twg_source_value)")).toEqual([
      "1|0cc175b9c0f1b6a831c399e269772661",
      `3000000|${new Bun.CryptoHasher("md5").update(large).digest("hex")}`,
      "1|92eb5ffee6ae2fec3ad71c777531578f",
    ]);
  });

  test("many rows: what is streamed while they come and what waits for the seal are all there once", async () => {
    await psql(database, "truncate raw; drop schema if exists twg cascade");
    const many = new Sink({ settings: settings(database) });
    const authorities = await many.claimed();
    const rows = Array.from({ length: 20_000 }, (_, i) => row(i, { value: bytes("x".repeat(i % 300)) }));
    many.begin(rows);
    await many.writer.flush();
    expect(many.writer.largest).toBeGreaterThan(1024 * 1024);
    expect(await many.seal(rows, authorities)).toMatchObject({ covered: true, rows: 20_000 });
    const sums = "count(*), count(distinct _twg_source_offset), sum(length(_twg_source_value))";
    const wanted = rows.reduce((n, r) => n + (r.value?.length ?? 0), 0);
    expect(await psql(database, `select ${sums} from raw`)).toBe(`20000|20000|${wanted}`);
    expect(await psql(database, "select stream, first, next from twg.coverage")).toBe(`${KEY}|0|20000`);
    await many.close();
  });
});
