/** A path decides the stores of a sink: a folder's or a bucket's. Nothing is opened by that. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, resolveSecrets, type SinkOf } from "../../src/commands/config-file.ts";
import { openLaneStore } from "../../src/commands/lane-store.ts";
import { fileAge, objectSinkStores } from "../../src/commands/object-stores.ts";
import { asFailure } from "../../src/core/failure/failure.ts";
import { fileWith, ORDERS } from "./fake-cli.ts";

const GOOGLE = ["storage", "googleapis", "com"].join(".");
const AZURE = ["a", "blob", "core", "windows", "net"].join(".");

async function storesAt(path: string, more = "") {
  const file = fileWith(`${ORDERS.replace("./data", path)}${more}`);
  const { sink } = await resolveSecrets(await loadConfig(file), { TWG_SECRET_KAFKA_PASSWORD: "x" });
  return objectSinkStores("orders", sink as SinkOf<"parquet">, "0123456789abcdef", null);
}

test("a folder: staged and covered below it", async () => {
  const root = mkdtempSync(join(tmpdir(), "twg-stores-"));
  try {
    const stores = await storesAt(`${root}/{topic}`);
    await stores.prepare();
    expect([stores.objects.place, stores.versions.place]).toEqual([root, `${root}/_twg/orders/raw/coverage`]);
    expect(stores.intervalMs).toBe(20);
    expect(openLaneStore(stores.lane, "lane").objects.place).toBe(root);
  } finally {
    rmSync(root, { recursive: true });
  }
});

test("a bucket: the part without braces is the prefix, and writes keep their distance", async () => {
  const stores = await storesAt("s3://lake/raw/{topic}", '[sink.s3]\nendpoint = "http://127.0.0.1:9"\n');
  expect([stores.objects.place, stores.versions.place]).toEqual([
    "s3://lake/raw",
    "s3://lake/raw/_twg/orders/raw/coverage",
  ]);
  expect(stores.intervalMs).toBe(1000);
  expect(openLaneStore(stores.lane, "lane").objects.place).toBe("s3://lake/raw");
});

for (const [what, path, table, problem] of [
  ["a table for a folder", "./data", "", /only with a `path` that begins with s3/],
  ["one key", "s3://lake/x", 'access_key_id = "a"', /the two keys go together|both/],
  ["a token alone", "s3://lake/x", 'session_token = "a"', /only with `access_key_id`/],
  [
    "profile and keys",
    "s3://lake/x",
    'profile = "p"\naccess_key_id = "a"\nsecret_access_key = "b"',
    /either `profile`/,
  ],
  ["a key for no KMS", "s3://lake/x", 'sse_kms_key_id = "k"', /only with `sse/],
  ["an authority for plain HTTP", "s3://lake/x", 'endpoint = "http://x"\nca = { file = "/x" }', /https/],
  ["keys in the address", "s3://lake/x", 'endpoint = "https://a:b@x"', /keys do not belong/],
  ["an address with a path", "s3://lake/x", 'endpoint = "https://x/y"', /without a path/],
  ["no address", "s3://lake/x", 'endpoint = "x:9000"', /not an http/],
  ["Google", "s3://lake/x", `endpoint = "https://${GOOGLE}"`, /takes no If-None-Match/],
  ["Azure", "s3://lake/x", `endpoint = "https://${AZURE}"`, /does not speak the S3 protocol/],
] as const) {
  test(`refused with the configuration: ${what}`, async () => {
    await expect(storesAt(path, `[sink.s3]\n${table}\n`)).rejects.toThrow(problem);
  });
}

test("a file of more parts than the state can name is refused with the configuration", async () => {
  const big = 'roll_bytes = "20GiB"\n[sink.s3]\npart_bytes = "8MiB"\n';
  await expect(storesAt("s3://lake/x", big)).rejects.toThrow(/roll_bytes \/ 1000/);
});

test("keys that were read again sign what is sent from then on, here and in lanes", async () => {
  const seen: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(r) {
      seen.push(/Credential=([^/]+)/.exec(r.headers.get("authorization") ?? "")?.[1] ?? "none");
      return new Response("", { status: 404 });
    },
  });
  try {
    const table = `[sink.s3]
endpoint = "http://127.0.0.1:${server.port}"
style = "path"
access_key_id = { secret = "kid" }
secret_access_key = { secret = "key" }
`;
    const file = fileWith(`${ORDERS.replace("./data", "s3://lake/raw/{topic}")}${table}`);
    const config = await loadConfig(file);
    const sinkWith = async (kid: string, key: string) => {
      const environment = { TWG_SECRET_KAFKA_PASSWORD: "x", TWG_SECRET_KID: kid, TWG_SECRET_KEY: key };
      return (await resolveSecrets(config, environment)).sink as SinkOf<"parquet">;
    };
    const first = await sinkWith("AKID1", "one");
    const stores = objectSinkStores("orders", first, "0123456789abcdef", null);
    const lane = openLaneStore(stores.lane, "lane");
    const asked = async () => {
      const target = { key: "k", staging: null, bytes: 0, rows: 0 } as never;
      await stores.versions.read().catch(() => {});
      await lane.objects.probe(target).catch(() => {});
      return [...new Set(seen.splice(0))];
    };
    expect(await asked()).toEqual(["AKID1"]);
    expect(stores.renew(await sinkWith("AKID1", "one"))).toBe(false);
    expect(stores.renew(await sinkWith("AKID2", "two"))).toBe(true);
    lane.renew(stores.lane);
    expect(await asked()).toEqual(["AKID2"]);
  } finally {
    await server.stop(true);
  }
});

test("a file is gone only where the system says so: what cannot be looked at may be there", async () => {
  const root = mkdtempSync(join(tmpdir(), "twg-ages-"));
  try {
    writeFileSync(join(root, "here"), "");
    symlinkSync("circle", join(root, "circle"));
    expect([await fileAge(root, "here"), await fileAge(root, "gone")]).toEqual([expect.any(Number), null]);
    for (const key of ["circle", "here/below"]) {
      const failure = await fileAge(root, key).then(() => null, asFailure);
      expect([failure?.code, failure?.at]).toEqual(["store.misplaced", join(root, key)]);
    }
  } finally {
    rmSync(root, { recursive: true });
  }
});
