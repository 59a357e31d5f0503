/**
 * Goal: the message of AWS_MSK_IAM is what AWS's own tools sign, and missing credentials are one coded failure.
 * Method: requests that botocore signed at a fixed time; the chain reads files and an environment of ours, in a
 * process of its own, since it looks at the environment when it is loaded.
 */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MskIamSigner } from "../../../../src/adapters/kafka/login/aws-msk-iam.ts";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { asFailure } from "../../../../src/core/failure/failure.ts";
import { judgeIam } from "../../../brokers/kafka/msk-iam.ts";

interface Case {
  readonly host: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | null;
  readonly query: Record<string, string>;
}
const golden = JSON.parse(
  readFileSync(join(import.meta.dir, "../../../golden/kafka/msk-iam.json"), "utf8"),
) as { cases: Case[] };
const clock = { ...systemClock, now: () => Date.parse("2026-01-31T12:34:56Z") };

for (const { host, region, query, ...keys } of golden.cases) {
  for (const [from, given, environment] of [
    ["the configuration", region, {}],
    ["the broker's name", null, { AWS_REGION: "eu-west-9" }],
  ] as const) {
    test(`${host}: as botocore signs it, region from ${from}`, async () => {
      const signer = new MskIamSigner({ region: given, keys, profile: null }, clock, environment);
      const payload = JSON.parse(await signer.payload(host)) as Record<string, string>;
      const small = Object.fromEntries(Object.entries(query).map(([k, v]) => [k.toLowerCase(), v]));
      expect(payload).toEqual({ version: "2020_10_22", host, "user-agent": "twg", ...small });
    });
  }
}

test("a name that holds no region: from the environment, else a clear failure", async () => {
  const keys = { accessKeyId: "AK", secretAccessKey: "s", sessionToken: null };
  const of = (env: Record<string, string>) =>
    new MskIamSigner({ region: null, keys, profile: null }, clock, env).payload("kafka.internal");
  for (const name of ["AWS_REGION", "AWS_DEFAULT_REGION"])
    expect(await of({ [name]: "eu-west-9" })).toContain("/eu-west-9/kafka-cluster/");
  const failure = asFailure(await of({}).catch((e) => e));
  expect(failure.code).toBe("aws.credentials_missing");
  expect(failure.hint).toContain("source.sasl.aws.region");
});

describe("the chain", () => {
  const folder = mkdtempSync(join(tmpdir(), "twg-aws-"));
  const credentials = join(folder, "credentials");
  writeFileSync(
    credentials,
    "[default]\naws_access_key_id = AKDEFAULT\naws_secret_access_key = sd\n\n[reader]\naws_access_key_id = AKREADER\naws_secret_access_key = sr\naws_session_token = st\n",
  );
  const program = `
    import { MskIamSigner } from ${JSON.stringify(join(import.meta.dir, "../../../../src/adapters/kafka/login/aws-msk-iam.ts"))};
    import { systemClock } from ${JSON.stringify(join(import.meta.dir, "../../../../src/adapters/system/clock.ts"))};
    const [profile] = process.argv.slice(1);
    const signer = new MskIamSigner({ region: "eu-west-9", keys: null, profile: profile ?? null }, systemClock);
    try { console.log(await signer.payload("b-1")); }
    catch (e) { console.log(JSON.stringify({ code: e.code, message: e.message, hint: e.hint })); }
    process.exit(0);
  `;
  async function run(
    environment: Record<string, string>,
    ...args: string[]
  ): Promise<Record<string, string>> {
    const base = { PATH: process.env["PATH"] ?? "", HOME: folder, AWS_EC2_METADATA_DISABLED: "true" };
    const child = Bun.spawn([process.execPath, "-e", program, ...args], {
      env: { ...base, AWS_CONFIG_FILE: join(folder, "none"), ...environment },
      stdout: "pipe",
      stderr: "inherit",
    });
    return JSON.parse(await new Response(child.stdout).text());
  }
  const server = {
    region: "eu-west-9",
    keys: {
      AKENV: { secret: "se", sessionToken: null },
      AKDEFAULT: { secret: "sd", sessionToken: null },
      AKREADER: { secret: "sr", sessionToken: "st" },
    },
  };
  const judged = (payload: object) => judgeIam(server, Buffer.from(JSON.stringify(payload)), Date.now());

  test("environment, shared file and profile sign what the broker's side computes too", async () => {
    const env = { AWS_ACCESS_KEY_ID: "AKENV", AWS_SECRET_ACCESS_KEY: "se" };
    const file = { AWS_SHARED_CREDENTIALS_FILE: credentials };
    const found = await Promise.all([run(env), run(file), run(file, "reader")]);
    expect(found.map((p) => p["x-amz-credential"]?.split("/")[0])).toEqual([
      "AKENV",
      "AKDEFAULT",
      "AKREADER",
    ]);
    expect(found.map(judged)).toEqual([null, null, null]);
  }, 30_000);

  test("nothing anywhere: one failure that says what to do", async () => {
    const failed = await run({ AWS_SHARED_CREDENTIALS_FILE: join(folder, "none") });
    expect(failed["code"]).toBe("aws.credentials_missing");
    expect(failed["hint"]).toContain("source.sasl.aws");
  }, 30_000);
});
