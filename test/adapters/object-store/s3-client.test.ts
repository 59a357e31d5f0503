/**
 * What goes over the wire: address styles, encryption, checksums, conditions, tokens. Method: the real SDK builds and
 * signs each request, which is caught before it is sent.
 */
import { expect, test } from "bun:test";
import { openS3 } from "../../../src/adapters/object-store/s3-client.ts";
import { type S3Connection, s3Connection } from "../../../src/adapters/object-store/s3-connection.ts";
import { S3Objects } from "../../../src/adapters/object-store/s3-objects.ts";
import { S3Requests } from "../../../src/adapters/object-store/s3-requests.ts";
import { s3Defaults, s3Spec } from "../../../src/adapters/object-store/s3-spec.ts";
import { S3Uploads } from "../../../src/adapters/object-store/s3-uploads.ts";
import type { Resolved } from "../../../src/core/config/secret.ts";
import type { Failure } from "../../../src/core/failure/failure.ts";
import { SimTime } from "../../sim/clock.ts";

interface Caught {
  readonly method: string;
  readonly hostname: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

const KEYS = { access_key_id: "AKIDTEST", secret_access_key: "secret" };
const PLACE = { bucket: "lake", prefix: "raw" };

function connection(options: object): S3Connection {
  return s3Connection(PLACE, s3Spec.parse(options) as Resolved<ReturnType<typeof s3Spec.parse>>);
}

/** Builds, signs and catches the requests that the work makes; each ends as if the store refused it. */
async function caught(options: object, work: (r: S3Requests) => Promise<unknown>): Promise<Caught[]> {
  const found: Caught[] = [];
  const requests = new S3Requests(connection({ ...KEYS, ...options }), {
    clock: new SimTime().clock(null),
    chance: { next: () => 0, bytes: (n) => new Uint8Array(n) },
  });
  await requests.once(async ({ client }) => {
    client.middlewareStack.add(
      () => async (args) => {
        const { method, hostname, path, headers } = args.request as Caught;
        found.push({ method, hostname, path, headers });
        throw Object.assign(new Error("caught"), {
          name: "AccessDenied",
          $metadata: { httpStatusCode: 403 },
        });
      },
      { step: "finalizeRequest", priority: "low" },
    );
  });
  await work(requests).catch(() => {});
  return found;
}

const head = (r: S3Requests) => new S3Objects(r).head("k");

test("virtual-host and path style, AWS and an endpoint of one's own", async () => {
  const place = async (options: object) => {
    const [one] = await caught(options, head);
    return `${one?.hostname}${one?.path}`;
  };
  expect(await place({ region: "eu-central-1" })).toBe("lake.s3.eu-central-1.amazonaws.com/raw/k");
  expect(await place({ endpoint: "http://s3.test:9000" })).toBe("lake.s3.test/raw/k");
  expect(await place({ endpoint: "http://s3.test:9000", style: "path" })).toBe("s3.test/lake/raw/k");
});

test("encryption is asked for where objects begin, and nowhere else", async () => {
  const options = { endpoint: "http://s3.test", sse: "aws:kms", sse_kms_key_id: "alias/lake" };
  const [create] = await caught(options, (r) => new S3Uploads(r).create("k", "token", () => {}));
  expect(create?.headers).toMatchObject({
    "x-amz-server-side-encryption": "aws:kms",
    "x-amz-server-side-encryption-aws-kms-key-id": "alias/lake",
    "x-amz-meta-twg-upload": "token",
    "x-amz-checksum-algorithm": "CRC32",
  });
  const [put] = await caught(options, (r) => new S3Objects(r).put("k", new Uint8Array(3)));
  expect(put?.headers).toMatchObject({ "x-amz-server-side-encryption": "aws:kms" });
  const [part] = await caught(options, (r) => new S3Uploads(r).part("k", "id", 1, new Uint8Array(3)));
  expect(part?.headers["x-amz-server-side-encryption"]).toBeUndefined();
});

test("a part carries its CRC-32, of which the value is known: that of 123456789 is cbf43926", async () => {
  const nine = new TextEncoder().encode("123456789");
  const [part] = await caught({ endpoint: "http://s3.test" }, (r) =>
    new S3Uploads(r).part("k", "id", 1, nine),
  );
  expect(part?.headers["x-amz-checksum-crc32"]).toBe(Buffer.from("cbf43926", "hex").toString("base64"));
  const [bare] = await caught({ endpoint: "http://s3.test", checksum: "none" }, (r) =>
    new S3Uploads(r).part("k", "id", 1, nine),
  );
  expect(Object.keys(bare?.headers ?? {}).filter((h) => h.includes("checksum"))).toEqual([]);
});

test("conditions and session tokens are sent", async () => {
  const put = (revision: string | null) => (r: S3Requests) =>
    new S3Objects(r).putIf("k", new Uint8Array(1), {}, { revision });
  const options = { endpoint: "http://s3.test", session_token: "a-token" };
  const [first] = await caught(options, put(null));
  expect(first?.headers).toMatchObject({ "if-none-match": "*", "x-amz-security-token": "a-token" });
  const [next] = await caught(options, put('"abc"'));
  expect(next?.headers["if-match"]).toBe('"abc"');
  const [complete] = await caught(options, (r) =>
    new S3Uploads(r).complete("k", "id", [{ tag: "t", crc: "" }]),
  );
  expect(complete?.headers["if-none-match"]).toBe("*");
});

test("a request that nobody answers ends at its time, and so do its repetitions", async () => {
  const time = new SimTime();
  const requests = new S3Requests(connection({ ...KEYS, endpoint: "http://s3.test" }), {
    clock: time.clock(null),
    chance: { next: () => 0, bytes: (n) => new Uint8Array(n) },
  });
  let sent = 0;
  const work = requests.repeated("read", "k", () => {
    sent++;
    return new Promise(() => {});
  });
  let failure: Failure | null = null;
  work.catch((e) => {
    failure = e;
  });
  for (let i = 0; i < 200 && failure === null; i++) {
    await Bun.sleep(1);
    await time.step(Number.POSITIVE_INFINITY);
  }
  expect(failure).toMatchObject({ code: "store.unavailable", at: "s3://lake/raw/k" });
  expect(sent).toBe(4);
});

test("without a table the machine's own region and credentials are asked", async () => {
  const c = s3Connection(PLACE, s3Defaults());
  expect([c.endpoint, c.region, c.keys, c.profile, c.pathStyle]).toEqual([null, null, null, null, false]);
  const { client } = await openS3({ ...c, region: "eu-west-1" });
  expect(await client.config.region()).toBe("eu-west-1");
  // The SDK's own repetitions are off: it would repeat a conditional write whose answer was lost.
  expect(await client.config.maxAttempts()).toBe(1);
});
