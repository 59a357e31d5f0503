/**
 * Goal: the options of a Postgres sink reach its lanes, and secrets that were read again reach those that start later.
 * Method: configurations of a stream and of a batch job, joined without a server.
 */
import { expect, test } from "bun:test";
import { loadConfig, resolveSecrets, withSinks } from "../../src/commands/config-file.ts";
import { postgresParts, postgresTableParts, preparedOf } from "../../src/commands/postgres-parts.ts";
import type { SinkContext } from "../../src/commands/sink-parts.ts";
import type { TableSpec } from "../../src/core/ports/batch-lane.ts";
import { fileWith } from "./fake-cli.ts";

const CONTEXT: SinkContext = {
  instance: "i",
  shared: false,
  lanes: 4,
  observer: { emit: () => {} },
  hook: null,
  secondary: null,
};

async function configured(sink: string, url = "postgres://u:one@h:6543/d") {
  const file = fileWith(`[pipeline]
name = "p"
[source]
type = "kafka"
bootstrap = ["localhost:9092"]
topics = ["t"]
[[sink]]
name = "raw"
type = "postgres"
url = { secret = "place" }
table = "lake.orders"
${sink}
`);
  const config = await resolveSecrets(await loadConfig(file), { TWG_SECRET_PLACE: url });
  if (config.sink.type !== "postgres") throw new Error("another sink");
  return { config, sink: config.sink };
}

test("options reach the lane, and the budget bounds what it keeps", async () => {
  const { config, sink } = await configured(
    'mode = "upsert"\nrejects = "lake.refused"\nstate_schema = "state"',
  );
  const { lane } = postgresParts(config, sink, CONTEXT);
  if (lane.kind !== "postgres") throw new Error("another lane");
  expect(lane.writer).toMatchObject({
    table: { schema: "lake", table: "orders" },
    rejects: { schema: "lake", table: "refused" },
    stateSchema: "state",
    pipeline: "p",
    sink: "raw",
    upsert: true,
    commitBytes: 8 * 1024 * 1024,
  });
  expect(lane.rollBytes).toBe(lane.writer.commitBytes);
  expect(lane.writer.settings).toMatchObject({ hosts: [{ host: "h", port: 6543 }], password: "one" });
});

test("a row key names its column and the stamps that are not compared", async () => {
  const { config, sink } = await configured('row_key = true\nmetadata_prefix = "m_"\ncreate = true');
  const { lane } = postgresParts(config, sink, CONTEXT);
  const stamped = ["ingest_ts", "emit_ts", "pipeline", "schema_id", "dq"].map((name) => `m_${name}`);
  expect(lane.kind === "postgres" && lane.writer.rowKey).toEqual({ column: "m_record_id", stamped });
  expect(preparedOf(config, sink).rowKey).toMatchObject({ create: true, maxBytes: 256 * 1024 * 1024 });
  const without = await configured("");
  expect(preparedOf(without.config, without.sink).rowKey).toBeNull();
});

test("a password that was read again is in what later lanes get", async () => {
  const { config, sink } = await configured("");
  const parts = postgresParts(config, sink, CONTEXT);
  expect(parts.renew((await configured("")).config)).toBe(false);
  expect(parts.renew((await configured("", "postgres://u:two@h:6543/d")).config)).toBe(true);
  expect(parts.lane.kind === "postgres" && parts.lane.writer.settings.password).toBe("two");
  await parts.coverage.close();
});

test("a batch job's lanes know their table only once it was prepared", async () => {
  const { config, sink } = await configured("");
  const spec: TableSpec = {
    schema: { fields: [] },
    metadata: "locator",
    prefix: "_twg_",
    pipeline: "p",
    ranked: false,
  };
  const parts = postgresTableParts(config, sink, CONTEXT, spec);
  expect(() => parts.lane()).toThrow("before its table was prepared");
});

test("what the file says of a sink is said of it where some of the sinks are left out", async () => {
  const url = "postgres://u:one@h/d?sslmode=require";
  const table = (name: string, more: string) =>
    `[[sink]]\nname = "${name}"\ntype = "postgres"\nurl = { secret = "place" }\ntable = "lake.${name}"\n${more}\n`;
  const { config } = await configured(
    `role = "primary_raw"\n${table("plain", "")}${table("other", 'sslmode = "disable"')}`,
    url,
  );
  const [raw, plain, other] = config.sinks;
  const of = (sinks: typeof config.sinks, sink: typeof raw) => {
    if (sink?.type !== "postgres") throw new Error("another sink");
    return preparedOf(withSinks(config, sinks), sink).settings.sslMode;
  };
  for (const sinks of [config.sinks, [raw!, other!, plain!], [raw!, other!]])
    expect(() => of(sinks, other)).toThrow('the option sslmode says "disable"');
  for (const sinks of [config.sinks, [other!, plain!, raw!], [raw!, plain!]])
    expect(of(sinks, plain)).toBe("require");
  expect(withSinks(config, [other!]).written.has("pipeline.name")).toBe(true);
});
