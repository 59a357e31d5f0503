// Goal: each `twg config` command tells what it should, on the right stream, with the right exit code and no secret. Method: run in process.
import { describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, resolveSecrets } from "../../src/commands/config-file.ts";
import { runCli } from "../../src/commands/program.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import { fakeCli, fileWith, ORDERS } from "./fake-cli.ts";

async function config(command: string[], environment: Record<string, string> = {}, colour = false) {
  const cli = fakeCli(environment, colour);
  const code = await runCli(["config", ...command], cli);
  return { code, out: cli.stdout(), err: cli.stderr() };
}

const BROKEN = ORDERS.replace('["127.0.0.1:1"]', '"127.0.0.1:1"').replace("[[sink]]", "[[sink]]\npth = 1");

describe("validate", () => {
  test("a good file is ok, without asking for secrets or the network", async () => {
    const path = fileWith(ORDERS);
    expect(await config(["validate", "-c", path])).toEqual({ code: 0, out: `${path}: ok\n`, err: "" });
    const json = await config(["validate", "-c", path, "--json"]);
    expect(JSON.parse(json.out)).toEqual({ file: path, ok: true, problems: [], warnings: [] });
  });

  test("what may surprise in a good file is a warning: exit 0, and no secret is shown", async () => {
    const surprising = ORDERS.replace('{ secret = "kafka-password" }', '"hunter2"').concat(
      '\n[batch]\nmax_wait_ms = 5\nmax_records = 65537\nmax_bytes = "8MiB"\n',
    );
    const path = fileWith(surprising);
    const { code, out, err } = await config(["validate", "-c", path]);
    expect([code, out]).toEqual([0, `${path}: ok\n`]);
    expect(
      err
        .trimEnd()
        .split("\n")
        .map((l) => /^warning: \S+: (\S+ at \S+):/.exec(l)?.[1]),
    ).toEqual([
      "config.literal_secret at source.sasl.password",
      "config.no_effect at batch.max_wait_ms",
      "config.no_effect at batch.max_records",
    ]);
    expect(err).not.toContain("hunter2");
    const json = JSON.parse((await config(["validate", "-c", path, "--json"])).out);
    expect([json.ok, json.warnings.length, json.problems]).toEqual([true, 3, []]);
  });

  test("an address with a password that stands in the file is looked at, and not shown", async () => {
    const text = (url: string) =>
      ORDERS.replace(
        /\[\[sink\]\][^[]*/,
        `[[sink]]\nname = "s"\ntype = "postgres"\ntable = "t"\nurl = ${url}\n`,
      );
    const path = fileWith(text('"postgres://u:hunter2@db:99999/d"'));
    const { code, err } = await config(["validate", "-c", path]);
    expect([code, err]).toEqual([
      2,
      expect.stringContaining("postgres.url_invalid at sink[0].url: saw a string (not shown)"),
    ]);
    expect(err).toContain("the url has a host that is not host or host:port");
    expect(err).not.toContain("hunter2");
    for (const good of ['"postgres://u:hunter2@db:5432/d"', '{ secret = "db" }'])
      expect((await config(["validate", "-c", fileWith(text(good))])).code).toBe(0);
  });

  test("schema files are looked at: what is wrong in one is a problem at its option, a missing one a warning", async () => {
    const folder = mkdtempSync(join(tmpdir(), "twg-validate-"));
    const bad = join(folder, "bad.odcs.yaml");
    writeFileSync(
      bad,
      "kind: DataContract\napiVersion: v3.1.0\nschema:\n  - name: o\n    properties:\n      - { name: a }\n",
    );
    const decode = (more: string) =>
      fileWith(
        `${ORDERS}role = "primary_raw"\n[decode]\nformat = "json"\non_error = "fail"\nschema_file = ${JSON.stringify(join(folder, "none.json"))}\n${more}` +
          `[[sink]]\nname = "rows"\ntype = "parquet"\nreceives = "decoded"\npath = "${folder}/rows"\n`,
      );
    const missing = await config(["validate", "-c", decode("")]);
    expect([missing.code, missing.err]).toEqual([0, expect.stringContaining("there is no such file here")]);
    const path = decode(`key = { format = "json", schema_file = ${JSON.stringify(bad)} }\n`);
    const { code, out } = await config(["validate", "-c", path, "--json"]);
    const { problems, warnings } = JSON.parse(out);
    expect([code, warnings.length, problems.length]).toEqual([2, 1, 1]);
    expect(problems[0]).toMatchObject({
      code: "files.schema",
      file: path,
      path: "decode.key.schema_file",
      allowed: "",
    });
    expect(problems[0].line).toBeGreaterThan(10);
    expect(problems[0].hint).toContain(
      "schema[0].properties[0].logicalType, line 6: neither logicalType nor",
    );
  });

  test("so is the schema of a batch job", async () => {
    const folder = mkdtempSync(join(tmpdir(), "twg-validate-"));
    const job = (schema: string) =>
      fileWith(
        `[pipeline]\nname = "j"\n[source]\ntype = "files"\npaths = ["*.csv"]\nschema = ${JSON.stringify(join(folder, schema))}\n` +
          `[[sink]]\nname = "out"\ntype = "parquet"\npath = "${folder}/out"\n`,
      );
    writeFileSync(join(folder, "good.json"), '{"columns":[{"name":"id","type":"int64"}]}');
    writeFileSync(join(folder, "bad.avsc"), '{"type":"recard"}');
    expect(await config(["validate", "-c", job("good.json")])).toMatchObject({ code: 0, err: "" });
    const missing = await config(["validate", "-c", job("none.json")]);
    expect([missing.code, missing.err]).toEqual([0, expect.stringContaining("there is no such file here")]);
    const bad = await config(["validate", "-c", job("bad.avsc")]);
    expect([bad.code, bad.err]).toEqual([
      2,
      expect.stringMatching(/:6: files\.schema at source\.schema: .*its Avro schema cannot be used/),
    ]);
  });

  test("every problem is a line with file and line on stderr, exit 2", async () => {
    const path = fileWith(BROKEN);
    const { code, out, err } = await config(["validate", "-c", path]);
    expect([code, out]).toEqual([2, ""]);
    const lines = err.trimEnd().split("\n");
    expect(lines).toHaveLength(3);
    expect(lines[0]).toStartWith(
      `error: ${path}:7: config.type at source.bootstrap: saw "127.0.0.1:1"; allowed: a list`,
    );
    expect(lines[1]).toStartWith(`error: ${path}:17: config.unknown_key at sink[0].pth: `);
    expect(lines[1]).toEndWith('did you mean "path"?');
    expect(lines[2]).toBe(`2 problems in ${path}`);
  });

  test("as JSON they have one shape, and stderr stays empty", async () => {
    const path = fileWith(BROKEN);
    const { code, out, err } = await config(["validate", "-c", path, "--json"]);
    expect([code, err]).toEqual([2, ""]);
    const { ok, problems } = JSON.parse(out);
    expect(ok).toBe(false);
    expect(problems).toHaveLength(2);
    expect(Object.keys(problems[0]).sort()).toEqual([
      "allowed",
      "code",
      "file",
      "hint",
      "line",
      "path",
      "seen",
    ]);
    expect(problems[1]).toMatchObject({ code: "config.unknown_key", line: 17, path: "sink[0].pth" });
  });

  test.each([
    ["/does/not/exist.toml", "config.unreadable"],
    [tmpdir(), "config.unreadable"],
    ["/dev/zero", "config.unreadable"],
    [fileWith("x".repeat(1024 * 1024 + 1)), "config.too_large"],
    [fileWith("a = [\n"), "config.syntax"],
    [fileWith(""), "config.missing"],
    [fileWith(new Uint8Array([0xff])), "config.syntax"],
  ])("%s is %s, exit 2, also as JSON", async (path, expected) => {
    const text = await config(["validate", "-c", path]);
    expect(text.code).toBe(2);
    expect(text.err).toContain(expected);
    expect(text.err).toContain(path);
    const json = await config(["validate", "-c", path, "--json"]);
    expect(json.code).toBe(2);
    expect(JSON.parse(json.out).problems[0].code).toBe(expected);
  });
});

describe("secrets", () => {
  const dir = mkdtempSync(join(tmpdir(), "twg-cli-secrets-"));
  writeFileSync(join(dir, "kafka-password"), "hunter2\n");
  writeFileSync(join(dir, "hollow"), "");
  const withDir = (text: string) => fileWith(`${text}\n[secrets]\ndir = "${dir}"\n`);

  test("present ones are listed with backend and path, exit 0, and never shown", async () => {
    const { code, out, err } = await config(["secrets", "-c", withDir(ORDERS)]);
    expect([code, err]).toEqual([0, ""]);
    expect(out.split("\n")[0]).toMatch(/^NAME +BACKEND +PATH +STATUS +PLACE$/);
    expect(out).toMatch(/kafka-password +directory +source\.sasl\.password +present +\//);
    expect(out).not.toContain("hunter2");
  });

  test("from the environment", async () => {
    const { code, out } = await config(["secrets", "-c", fileWith(ORDERS), "--json"], {
      TWG_SECRET_KAFKA_PASSWORD: "hunter2",
    });
    expect(code).toBe(0);
    expect(JSON.parse(out).secrets).toEqual([
      {
        name: "kafka-password",
        backend: "environment",
        place: "TWG_SECRET_KAFKA_PASSWORD",
        path: "source.sasl.password",
        status: "present",
        reason: "",
      },
    ]);
  });

  test.each([
    ["nowhere", "missing"],
    ["hollow", "empty"],
  ])("%s is %s, exit 2", async (name, status) => {
    const path = withDir(ORDERS.replace("kafka-password", name));
    const { code, out } = await config(["secrets", "-c", path, "--json"]);
    expect(code).toBe(2);
    expect(JSON.parse(out)).toMatchObject({ ok: false, secrets: [{ name, status }] });
    expect((await config(["secrets", "-c", path])).code).toBe(2);
  });

  test("a file without secrets says so", async () => {
    const path = fileWith(ORDERS.replace('{ secret = "kafka-password" }', '"hunter2"'));
    expect(await config(["secrets", "-c", path])).toEqual({
      code: 0,
      out: `${path} uses no secrets\n`,
      err: "",
    });
  });

  test("a broken file is reported as by validate", async () => {
    const { code, err } = await config(["secrets", "-c", fileWith(BROKEN)]);
    expect(code).toBe(2);
    expect(err).toContain("config.unknown_key");
  });
});

describe("loadConfig and resolveSecrets", () => {
  test("give the text of secrets, and again after it changed", async () => {
    const dir = mkdtempSync(join(tmpdir(), "twg-cli-secrets-"));
    const loaded = await loadConfig(fileWith(`${ORDERS}\n[secrets]\ndir = "${dir}"\n`));
    for (const text of ["first", "second"]) {
      writeFileSync(join(dir, "kafka-password"), text);
      const resolved = await resolveSecrets(loaded, {});
      expect(resolved.source.sasl?.password?.reveal()).toBe(text);
      expect(Bun.inspect(resolved, { depth: 9 }) + JSON.stringify(resolved)).not.toContain(text);
    }
    expect(loaded.source.bootstrap).toEqual([{ host: "127.0.0.1", port: 1 }]);
  });

  test("a missing secret is one failure that names option, line and places", async () => {
    const loaded = await loadConfig(fileWith(ORDERS));
    const failure = await resolveSecrets(loaded, {}).catch((e: unknown) => e);
    if (!(failure instanceof Failure)) throw new Error("no failure");
    expect([failure.code, failure.kind]).toEqual(["secrets.missing", "config"]);
    expect(failure.message).toContain("orders.toml:14: secrets.missing at source.sasl.password");
    expect(failure.message).toContain("/run/secrets/twg/kafka-password, TWG_SECRET_KAFKA_PASSWORD");
  });

  test("many problems are one failure config.invalid that lists them", async () => {
    const failure = await loadConfig(fileWith(BROKEN)).catch((e: unknown) => e);
    if (!(failure instanceof Failure)) throw new Error("no failure");
    expect(failure.code).toBe("config.invalid");
    expect(failure.message).toContain("sink[0].pth");
    expect(failure.message).toContain("source.bootstrap");
  });
});

describe("explain", () => {
  test("shows every option with its origin, secrets masked, and the plan", async () => {
    const text = ORDERS.replace("username = ", 'username = "hunter2" #');
    const { code, out, err } = await config(["explain", "-c", fileWith(text)]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain('\nname = "orders"\n');
    expect(out).toContain('\nmax_bytes = "32MiB"  # default\n');
    expect(out).toContain('\npassword = { secret = "kafka-password" }\n');
    expect(out).toContain('\nusername = "***"\n');
    expect(out).not.toContain("hunter2");
    for (const header of [
      "[pipeline]",
      "[source]",
      "[source.sasl]",
      "[batch]",
      "[observability]",
      "[secrets]",
      "[[sink]]",
    ]) {
      expect(out).toContain(`${header}\n`);
    }
    for (const topic of ["source", "lanes", "memory", "raw", "coverage", "delivery", "http"]) {
      expect(out).toMatch(new RegExp(`^ {2}${topic} +\\S`, "m"));
    }
    expect(out).toContain("offsets are committed to group twg-orders");
    expect(out).toContain("64MiB (2 x pipeline.max_bytes)");
  });

  test("says how raw is read again, and by which plans it is decoded", async () => {
    const table = (mode: string) =>
      `[pipeline]\nname = "p"\n[source]\ntype = "kafka"\nbootstrap = ["k:1"]\ntopics = ["t"]\n[decode]\nformat = "json"\non_error = "fail"\n` +
      `[[sink]]\nname = "raw"\ntype = "postgres"\nrole = "primary_raw"\nurl = { secret = "db" }\ntable = "lake.orders"\nmode = "${mode}"\n` +
      '[[sink]]\nname = "rows"\ntype = "parquet"\nreceives = "decoded"\npath = "/lake/rows"\n';
    const recovery = async (mode: string) => {
      const { out, err } = await config(["explain", "-c", fileWith(table(mode)), "--json"]);
      return err === "" ? JSON.parse(out).plan.recovery : err;
    };
    const rows = await recovery("append");
    expect(rows).toContain("an index of lake.orders on topic, partition and offset");
    expect(rows).toContain("they are decoded by the configuration of now");
    expect(await recovery("upsert")).toContain("a table of the latest record of each key");
  });

  test("as JSON: options with value and origin, and the plan by topic", async () => {
    const { out } = await config(["explain", "-c", fileWith(ORDERS), "--json"]);
    const { options, plan } = JSON.parse(out);
    const of = (path: string) => options.find((o: { path: string }) => o.path === path);
    expect(of("pipeline.name")).toEqual({ path: "pipeline.name", value: '"orders"', from: "file", unit: "" });
    expect(of("pipeline.max_bytes")).toMatchObject({ value: '"32MiB"', from: "default", unit: "bytes" });
    expect(of("pipeline.max_records_per_s")).toMatchObject({ value: null, from: "unset" });
    expect(of("source.sasl.password").value).toBe('{ secret = "kafka-password" }');
    expect(Object.keys(plan)).toContain("delivery");
  });

  test("what it prints, less the plan, is a configuration that means the same", async () => {
    const first = await config(["explain", "-c", fileWith(ORDERS), "--json"]);
    const text = (await config(["explain", "-c", fileWith(ORDERS)])).out.split("What will happen")[0] ?? "";
    const again = await config(["explain", "-c", fileWith(text), "--json"]);
    const values = (json: string) =>
      JSON.parse(json).options.map((o: { path: string; value: unknown }) => [o.path, o.value]);
    expect(values(again.out)).toEqual(values(first.out));
  });

  test("other settings change the plan", async () => {
    const text = `${ORDERS.replace(
      'group = "twg-orders"',
      'start = { timestamp = "2026-01-31T00:00:00Z" }\nisolation = "read_uncommitted"',
    ).replace('name = "orders"', 'name = "orders"\nlanes = 3')}
[source.tls]
[observability]
listen = "0.0.0.0:9464"
token = "hunter2"
[observability.tls]
cert = { file = "/c" }
key = { secret = "k" }
`;
    const { out } = await config(["explain", "-c", fileWith(text)], {}, true);
    for (const part of [
      "3 worker threads",
      "no offsets are committed",
      "2026-01-31T00:00:00.000Z",
      ", TLS",
      "TLS and bearer token",
      "uncommitted records too",
    ]) {
      expect(out).toContain(part);
    }
    expect(out).not.toContain("hunter2");
    expect(
      (await config(["explain", "-c", fileWith(`${ORDERS}\n[observability]\nlisten = "off"`)])).out,
    ).toMatch(/http +off/);
  });
});

test("schema prints JSON Schema that knows every section and no words of our own", async () => {
  const { code, out } = await config(["schema"]);
  expect(code).toBe(0);
  const schema = JSON.parse(out);
  expect(schema.$schema).toBe("https://json-schema.org/draft/2020-12/schema");
  expect(Object.keys(schema.properties).sort()).toEqual([
    "batch",
    "decode",
    "dedup",
    "observability",
    "pipeline",
    "recovery",
    "secrets",
    "sink",
    "source",
  ]);
  expect(schema.properties.pipeline.properties.name).toMatchObject({ type: "string" });
  expect(schema.properties.pipeline.additionalProperties).toBe(false);
  expect(out).not.toMatch(/"(why|allowed|unit)":/);
});

test("init prints a file that validates as it is", async () => {
  const { code, out } = await config(["init", "--source", "kafka", "--sink", "parquet"]);
  expect(code).toBe(0);
  const checked = await config(["validate", "-c", fileWith(out)]);
  expect(checked).toMatchObject({ code: 0, err: "" });
  expect(out).toContain("# max_bytes = ");
  expect(out).toContain("# [source.sasl]");
});

test("init, with every comment of an option taken off, still validates", async () => {
  const { out } = await config(["init"]);
  const all = out.replace(/^# ([a-z_]+ = |\[)/gm, "$1");
  expect(await config(["validate", "-c", fileWith(all)])).toMatchObject({ code: 0, err: "" });
});
