/** A path decides the stores of a sink: a folder's or a bucket's. Nothing is opened by that. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, resolveSecrets, type SinkOf } from "../../src/commands/config-file.ts";
import { openLaneStore } from "../../src/commands/lane-store.ts";
import { objectSinkStores } from "../../src/commands/object-stores.ts";
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
    expect(openLaneStore(stores.lane, "lane").place).toBe(root);
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
  expect(openLaneStore(stores.lane, "lane").place).toBe("s3://lake/raw");
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
