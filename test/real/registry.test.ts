/**
 * Goal: what real clients register is what we read, what we register is what they read, and our own fake registry is one to
 * them as well. Method: confluent-kafka for Python, @kafkajs/confluent-schema-registry and @confluentinc/schemaregistry
 * against franz-go's registry, which shares nothing with ours, and against the fake; the same script for both.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { RegistryClient } from "../../src/adapters/registry/client.ts";
import { systemChance } from "../../src/adapters/system/chance.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { Framed } from "../../src/core/codecs/framing/framed.ts";
import { framingOf } from "../../src/core/codecs/framing/framing.ts";
import type { BytesColumn } from "../../src/core/records/raw-batch.ts";
import { RegistryServer } from "../brokers/registry/server.ts";

interface RealRegistry {
  readonly server: string;
  readonly python: string;
  readonly npm: string;
}

interface WrittenRecord {
  readonly topic: string;
  readonly bytes: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly payload?: string;
}

interface Written {
  readonly records: readonly WrittenRecord[];
  readonly texts: Readonly<Record<string, string>>;
}

const real = JSON.parse(process.env["TWG_REAL_REGISTRY"] ?? "null") as RealRegistry | null;
if (real === null)
  console.error("SKIP: TWG_REAL_REGISTRY names no independent registry; clients are not compared");

const script = resolve(import.meta.dir, "../servers/registry/registry_client.py");

async function output(argv: readonly string[], cwd?: string): Promise<unknown> {
  const child = Bun.spawn([...argv], {
    stdout: "pipe",
    stderr: "pipe",
    ...(cwd === undefined ? {} : { cwd }),
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${argv.join(" ")}: ${err.slice(-2000)}`);
  return JSON.parse(out);
}

function client(url: string): RegistryClient {
  const more = {
    attempts: 1,
    maxSchemaBytes: 1 << 20,
    cacheBytes: 1 << 20,
    refreshMs: 0,
    missingGraceMs: 0,
    missingTtlMs: 0,
  };
  const settings = {
    urls: [url],
    login: { by: "nothing" as const },
    headers: {},
    tls: null,
    timeoutMs: 10_000,
    section: "r",
    ...more,
  };
  return new RegistryClient(settings, { clock: systemClock, chance: systemChance });
}

function column(...values: readonly Uint8Array[]): BytesColumn {
  const offsets = new Int32Array(values.length + 1);
  for (const [i, v] of values.entries()) offsets[i + 1] = offsets[i]! + v.length;
  return {
    offsets,
    data: Buffer.concat(values),
    validity: new Uint8Array(1 + values.length).fill(0xff),
    nullCount: 0,
  };
}

/** A schema of each type, one with a reference, the same again, and looked up. */
async function registerOurs(
  c: RegistryClient,
): Promise<{ readonly ids: readonly number[]; readonly schemas: unknown }> {
  const text =
    '{"type":"record","name":"Ours","fields":[{"name":"n","type":"int"},{"name":"m","type":"acme.Part"}]}';
  const part = '{"type":"record","name":"Part","namespace":"acme","fields":[{"name":"s","type":"string"}]}';
  const json = '{"type":"object"}';
  const proto = 'syntax = "proto3";\nmessage A {\n  string s = 1;\n}\n';
  await c.register("ours-part", { format: "avro", text: part }, false);
  const references = [{ name: "acme.Part", subject: "ours-part", version: 1 }];
  const avro = { format: "avro", text, references } as const;
  const { id } = await c.register("ours-value", avro, true);
  // Another question, not what is remembered of this one.
  expect((await c.register("ours-value", avro, false)).id).toBe(id);
  expect(await c.lookup("ours-value", avro, false)).toMatchObject({ id, version: 1 });
  const others = [
    await c.register("ours-json", { format: "json", text: json }, false),
    await c.register("ours-proto", { format: "protobuf", text: proto }, false),
  ];
  return {
    ids: [id, ...others.map((o) => o.id)],
    schemas: [
      ["AVRO", text, [["acme.Part", "ours-part", 1]]],
      ["JSON", json, []],
      ["PROTOBUF", proto, []],
    ],
  };
}

const hex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "hex"));

/** The schema that a record names, and its payload. */
function unframed(record: Pick<WrittenRecord, "bytes" | "headers">, protobuf = false) {
  const codecs = {
    zlib: () => {
      throw new Error("nothing is compressed");
    },
  };
  const framing = framingOf("confluent", { part: "value", protobuf, maxPayloadBytes: 1 << 20, codecs });
  const { headers } = record;
  const of = (i: 0 | 1) =>
    i === 0
      ? (h: readonly [string, string]) => Buffer.from(h[0])
      : (h: readonly [string, string]) => hex(h[1]);
  const from = {
    column: column(hex(record.bytes)),
    headers: {
      offsets: new Int32Array([0, headers.length]),
      entries: headers.length,
      keys: column(...headers.map(of(0))),
      values: column(...headers.map(of(1))),
    },
    rows: 1,
  };
  const out = new Framed();
  framing(from, 0, out);
  expect(out.faults).toEqual([]);
  const payload = Buffer.from(out.bytes.subarray(out.starts[0]!, out.ends[0]!)).toString("hex");
  return { ...out.schemas[0]!, payload };
}

describe.skipIf(real === null)("clients and registries", () => {
  let process: Bun.Subprocess<"ignore", "pipe", "ignore">;
  const fake = new RegistryServer();
  const urls: Record<string, string> = { "our fake": fake.url };
  beforeAll(async () => {
    process = Bun.spawn([real!.server], { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
    for await (const chunk of process.stdout) {
      urls["franz-go"] = new TextDecoder().decode(chunk).trim();
      break;
    }
  });
  afterAll(async () => {
    process.kill();
    await process.exited;
    await fake.close();
  });

  for (const name of ["franz-go", "our fake"]) {
    test(`${name}: what Python registers is what we read, and the other way round`, async () => {
      const c = client(urls[name]!);
      const ours = await registerOurs(c);
      const id = ours.ids[0]!.toString(16).padStart(8, "0");
      const wanted = { ids: ours.ids, avro: `00${id}0e06616263` };
      const { written, read } = (await output([
        real!.python,
        script,
        urls[name]!,
        JSON.stringify(wanted),
      ])) as {
        written: Written;
        read: unknown;
      };
      expect(read).toEqual({ schemas: ours.schemas, value: { n: 7, m: { s: "abc" } } });
      const { records, texts } = written;
      const money = { name: "acme.Money", text: texts["money"]!, references: [] };
      const found = await Promise.all(
        records
          .filter((r) => r.topic === "orders")
          .map(async (r) => {
            const { ref, payload } = unframed(r);
            const { format, text, references } = await c.schema(ref);
            expect([format, references]).toEqual(["avro", [money]]);
            return [ref.by, text, payload];
          }),
      );
      const first = ["id", texts["order"]!, "0ef403"];
      const byGuid = ["guid", texts["order"]!, "0ef403"];
      const second = ["id", texts["order_2"]!, "0ef4030278"];
      // Only newer registries tell GUIDs when a schema is registered, and franz-go's is of the others.
      expect(found).toEqual(name === "franz-go" ? [first, second] : [first, byGuid, second]);
      expect(await c.latest("orders-value")).toMatchObject({
        text: texts["order_2"]!,
        version: 2,
        references: [money],
      });
      const person = records.find((r) => r.topic === "people")!;
      expect(await c.schema(unframed(person).ref)).toMatchObject({ format: "json", text: texts["person"]! });
      const item = records.find((r) => r.topic === "items")!;
      const { ref, message, payload } = unframed(item, true);
      expect([message, payload]).toEqual([[1], item.payload!]);
      const proto = await c.schema(ref);
      expect([proto.format, proto.references.map((r) => r.name)]).toEqual(["protobuf", ["acme/sku.proto"]]);
      c.close();
    });

    test(`${name}: the clients of npm, both ways`, async () => {
      const c = client(urls[name]!);
      const text = '{"type":"record","name":"ForJs","fields":[{"name":"n","type":"int"}]}';
      const { id } = await c.register("for-js-value", { format: "avro", text }, true);
      const wanted = { id, subject: "for-js-value", avro: `00${id.toString(16).padStart(8, "0")}0e` };
      const js = [
        globalThis.process.execPath,
        join(real!.npm, "client.mjs"),
        urls[name]!,
        JSON.stringify(wanted),
      ];
      const { written, read } = (await output(js, real!.npm)) as {
        written: { order: string; records: string[] };
        read: unknown;
      };
      expect(read).toEqual({ decoded: { n: 7 }, schema: text });
      for (const [i, bytes] of written.records.entries()) {
        const { ref, payload } = unframed({ bytes, headers: [] });
        expect([(await c.schema(ref)).text, payload]).toEqual([written.order, ["0e", "10"][i]!]);
      }
      c.close();
    });

    test(`${name}: what is not there`, async () => {
      const c = client(urls[name]!);
      const code = (p: Promise<unknown>) =>
        p.then(
          () => "there",
          (e) => e.code,
        );
      expect([
        await code(c.schema({ by: "id", id: 4711 })),
        await code(c.schema({ by: "guid", guid: "00000000-0000-0000-0000-000000000000" })),
        await code(c.latest("nothing")),
        await code(c.lookup("money", { format: "avro", text: '"boolean"' }, false)),
        await code(c.lookup("nothing", { format: "avro", text: '"boolean"' }, false)),
      ]).toEqual([
        "registry.unknown_schema",
        "registry.unknown_schema",
        "registry.unknown_subject",
        "registry.unknown_schema",
        "registry.unknown_subject",
      ]);
      c.close();
    });
  }
});
