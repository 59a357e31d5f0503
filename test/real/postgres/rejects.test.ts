/**
 * Goal: `inspect rejects` counts and samples a table of PostgreSQL as it is, whatever stands in it. Method: rows written by
 * psql; expected numbers by hand. That a sink's own table is read is shown in test/e2e/decode.test.ts.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { runCli } from "../../../src/commands/program.ts";
import { fakeCli, fileWith, ORDERS } from "../../commands/fake-cli.ts";
import { demandPostgres, freshDatabase, POSTGRES, psql, server } from "./server.ts";

demandPostgres("refused records in a table");

describe.skipIf(POSTGRES === null)("refused records in a table", () => {
  let database: string;

  beforeAll(async () => {
    database = await freshDatabase();
    await psql(
      database,
      `create table refused (stage text, code text, path text, message text, _twg_source_topic text,
         _twg_source_partition int, _twg_source_offset bigint, _twg_source_timestamp timestamptz,
         _twg_ingest_ts timestamptz, _twg_source_key bytea, _twg_source_value bytea, _twg_schema_id text);
       insert into refused select 'decode', 'decode.type', 'items[' || n || '].qty', 'no int32', 'orders', n % 2, n,
         timestamptz '2026-01-01Z' + n * interval '1 second', now(), null, '\\x6162ff', '7' from generate_series(1, 10) n;
       insert into refused values ('decode', 'decode.schema', '', 'no such schema', 'orders', 0, 77, 'infinity', now(),
         '\\x6b', repeat('x', 5000)::bytea, '99');
       insert into refused (code, _twg_ingest_ts) values ('decode.framing', '2026-01-02Z')`,
    );
  });

  async function inspect(table: string, ...argv: string[]) {
    const { host, port, user, password } = server();
    const config = fileWith(`${ORDERS}
role = "primary_raw"
[decode]
format = "json"
schema_file = "orders.json"
[[sink]]
name = "refused"
type = "postgres"
receives = "rejected"
url = { secret = "url" }
sslmode = "disable"
table = "${table}"
`);
    const url = `postgres://${user}:${encodeURIComponent(password)}@${host}:${port}/${database}`;
    const cli = fakeCli({ TWG_SECRET_URL: url, TWG_SECRET_KAFKA_PASSWORD: "k" });
    const code = await runCli(["inspect", "rejects", "-c", config, ...argv], cli);
    return { code, out: cli.stdout(), err: cli.stderr() };
  }

  test("groups, times, offsets and samples", async () => {
    const { out, err } = await inspect("public.refused", "--json", "--samples", "3", "--show-values");
    expect(err).toBe("");
    const [{ records, others, files, groups }] = JSON.parse(out).tables;
    expect([records, others, files]).toEqual([12, 0, null]);
    expect(groups[0]).toMatchObject({
      ...{ code: "decode.type", topic: "orders", schemaId: "7", path: "items[].qty", records: 10 },
      ...{ first: "2026-01-01T00:00:01.000Z", last: "2026-01-01T00:00:10.000Z" },
      partitions: [
        { partition: 0, records: 5, first: "2", last: "10" },
        { partition: 1, records: 5, first: "1", last: "9" },
      ],
    });
    expect(groups[0].samples.map((s: { path: string }) => s.path)).toEqual(
      [1, 2, 3].map((n) => `items[${n}].qty`),
    );
    expect(groups[0].samples[0]).toMatchObject({ key: null, value: { bytes: 3, escaped: "ab\\xff" } });
    const byCode = (code: string) => groups.find((g: { code: string }) => g.code === code);
    expect(byCode("decode.schema")).toMatchObject({ schemaId: "99", records: 1, first: null });
    const [long] = byCode("decode.schema").samples;
    expect(long.value).toEqual({ bytes: 5000, escaped: `${"x".repeat(4096)}…` });
    expect(byCode("decode.framing")).toMatchObject({
      ...{ topic: "", schemaId: null, path: "", first: "2026-01-02T00:00:00.000Z" },
      samples: [{ partition: 0, offset: "-1", key: null, value: null }],
    });
  });

  test("a table that is not there has no rejects; one of another kind is the server's word, with the place", async () => {
    expect(await inspect("public.nowhere")).toEqual({
      ...{ code: 0, err: "" },
      out: "refused: table public.nowhere\nno refused records\n",
    });
    await psql(database, "create table other (a int)");
    const other = await inspect("public.other");
    expect(other.code).not.toBe(0);
    expect(other.err).toContain("does not exist");
  });
});
