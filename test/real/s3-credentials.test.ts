/**
 * Where keys come from: static, environment, profile, web identity, container and instance metadata, the last two
 * renewed before they end; and TLS with an authority of one's own. Method: a whole `twg inspect coverage` against a real
 * versitygw, which checks every signature, and stand-ins of the metadata services that speak their documents.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { S3Objects } from "../../src/adapters/object-store/s3-objects.ts";
import type { Failure } from "../../src/core/failure/failure.ts";
import { command } from "../e2e/twg.ts";
import { connectionTo, freshPrefix, requestsTo, S3_SERVERS } from "../s3/servers.ts";

const failureOf = (work: Promise<unknown>): Promise<Failure> =>
  work.then(
    () => Promise.reject(new Error("it did not fail")),
    (e: Failure) => e,
  );

describe.skipIf(S3_SERVERS === null)("credentials", () => {
  const server = S3_SERVERS?.versitygw ?? { endpoint: "", accessKey: "", secretKey: "", bucket: "" };
  const folder = mkdtempSync(join(tmpdir(), "twg-keys-"));
  const url = `s3://${server.bucket}/${freshPrefix()}`;
  const keys = { AccessKeyId: server.accessKey, SecretAccessKey: server.secretKey };
  /** No credentials of the machine that runs the test. */
  const NONE: Record<string, string> = {
    AWS_ENDPOINT_URL: server.endpoint,
    AWS_REGION: "us-east-1",
    AWS_SHARED_CREDENTIALS_FILE: join(folder, "none"),
    AWS_CONFIG_FILE: join(folder, "none"),
    AWS_EC2_METADATA_DISABLED: "true",
    AWS_ACCESS_KEY_ID: "",
    AWS_SECRET_ACCESS_KEY: "",
  };
  let metadata: ReturnType<typeof Bun.serve>;
  const asked: string[] = [];

  beforeAll(() => {
    metadata = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        const { pathname } = new URL(request.url);
        asked.push(pathname);
        const Expiration = new Date(Date.now() + 3_600_000).toISOString();
        if (pathname === "/container") return Response.json({ ...keys, Token: "", Expiration });
        // So close to its end that it counts as ended: asked again for every request.
        if (pathname === "/ending")
          return Response.json({
            ...keys,
            Token: "",
            Expiration: new Date(Date.now() + 60_000).toISOString(),
          });
        if (pathname === "/latest/api/token") return new Response("a-token");
        if (pathname === "/latest/meta-data/iam/security-credentials/") return new Response("role");
        if (pathname === "/latest/meta-data/iam/security-credentials/role")
          return Response.json({ Code: "Success", Type: "AWS-HMAC", ...keys, Token: "", Expiration });
        const form = new URLSearchParams(await request.text());
        if (form.get("Action") !== "AssumeRoleWithWebIdentity") return new Response("", { status: 404 });
        asked.push(`token ${form.get("WebIdentityToken")}`);
        return new Response(
          `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult>
<Credentials><AccessKeyId>${server.accessKey}</AccessKeyId><SecretAccessKey>${server.secretKey}</SecretAccessKey><SessionToken></SessionToken><Expiration>${Expiration}</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
          { headers: { "content-type": "text/xml" } },
        );
      },
    });
  });
  afterAll(async () => {
    await metadata.stop(true);
    rmSync(folder, { recursive: true, force: true });
  });

  const at = () => `http://127.0.0.1:${metadata.port}`;
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const inspect = (environment: Record<string, string>) =>
    command(["inspect", "coverage", url, "--json"], { ...NONE, ...environment });

  test("none at all is said with where they are looked for", async () => {
    const ended = await inspect({});
    expect([ended.code, ended.failure?.code]).toEqual([3, "store.denied"]);
  });

  test("the environment's", async () => {
    const good = { AWS_ACCESS_KEY_ID: server.accessKey, AWS_SECRET_ACCESS_KEY: server.secretKey };
    expect((await inspect(good)).code).toBe(0);
    const bad = await inspect({ ...good, AWS_SECRET_ACCESS_KEY: "wrong" });
    expect([bad.code, bad.failure?.code]).toEqual([3, "store.denied"]);
  });

  test("a profile's", async () => {
    const credentials = `[lake]\naws_access_key_id = ${server.accessKey}\naws_secret_access_key = ${server.secretKey}\n`;
    const profile = { AWS_SHARED_CREDENTIALS_FILE: file("credentials", credentials), AWS_PROFILE: "lake" };
    expect((await inspect(profile)).code).toBe(0);
  });

  test("the container's", async () => {
    const ended = await inspect({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${at()}/container` });
    expect([ended.code, asked.includes("/container")]).toEqual([0, true]);
  });

  test("the instance's", async () => {
    const ended = await inspect({
      AWS_EC2_METADATA_DISABLED: "false",
      AWS_EC2_METADATA_SERVICE_ENDPOINT: at(),
    });
    expect(ended.code).toBe(0);
    expect(asked).toContain("/latest/meta-data/iam/security-credentials/role");
  });

  test("a web identity's", async () => {
    const ended = await inspect({
      AWS_WEB_IDENTITY_TOKEN_FILE: file("token", "the-token"),
      AWS_ROLE_ARN: "arn:aws:iam::123456789012:role/lake",
      AWS_ENDPOINT_URL_STS: at(),
    });
    expect([ended.code, asked.includes("token the-token")]).toEqual([0, true]);
  });

  test("those that end are renewed while the process runs", async () => {
    process.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = `${at()}/ending`;
    const shadowed = Object.entries(NONE).map(([k, v]) => [k, process.env[k], v] as const);
    for (const [k, , v] of shadowed) process.env[k] = v;
    try {
      const objects = new S3Objects(requestsTo(connectionTo(server, "x", { keys: null })));
      for (let i = 0; i < 3; i++) expect(await objects.head("nothing")).toBeNull();
      expect(asked.filter((a) => a === "/ending").length).toBeGreaterThan(1);
    } finally {
      delete process.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"];
      for (const [k, before] of shadowed) {
        if (before === undefined) delete process.env[k];
        else process.env[k] = before;
      }
    }
  });

  test("a session token goes with the keys: a made-up one is refused", async () => {
    const made = {
      accessKeyId: server.accessKey,
      secretAccessKey: server.secretKey,
      sessionToken: "made-up",
    };
    const f = await failureOf(new S3Objects(requestsTo(connectionTo(server, "x", { keys: made }))).list(""));
    expect(f.code).toBe("store.denied");
  });
});

describe.skipIf(S3_SERVERS === null)("TLS", () => {
  const server = S3_SERVERS?.versitygwTls ?? {
    endpoint: "",
    accessKey: "",
    secretKey: "",
    bucket: "",
    ca: "",
    wrongCa: "",
  };
  const list = (ca: string | null) =>
    new S3Objects(requestsTo(connectionTo(server, freshPrefix(), { ca }))).list("");

  test("with its authority it is trusted; without, or with another, it is not", async () => {
    expect(await list(readFileSync(server.ca, "utf8"))).toEqual([]);
    for (const ca of [null, readFileSync(server.wrongCa, "utf8")]) {
      const f = await failureOf(list(ca));
      expect([f.code, f.kind]).toEqual(["store.untrusted", "environment"]);
    }
  });
});
