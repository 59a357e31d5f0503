/**
 * Goal: the test broker's check of AWS_MSK_IAM is the real one. Method: AWS's published vector of a signing key, and
 * requests that botocore signed; each changed in one place is refused.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { judgeIam, signatureOf, signingKey } from "./msk-iam.ts";

const SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const AT = Date.parse("2026-01-31T12:34:56Z");

interface Case {
  readonly host: string;
  readonly region: string;
  readonly sessionToken: string | null;
  readonly query: Record<string, string>;
}
const golden = JSON.parse(readFileSync(join(import.meta.dir, "../../golden/kafka/msk-iam.json"), "utf8")) as {
  cases: Case[];
};

// From "Deriving the signing key" of AWS's description of Signature Version 4.
test("the published signing key", () => {
  expect(signingKey(SECRET, "20150830", "us-east-1", "iam").toString("hex")).toBe(
    "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9",
  );
});

for (const { host, region, sessionToken, query } of golden.cases) {
  describe(host, () => {
    const server = { region, keys: { AKIDEXAMPLE: { secret: SECRET, sessionToken } } };
    const payload = (change: Record<string, string> = {}) => {
      const small = Object.fromEntries(Object.entries(query).map(([k, v]) => [k.toLowerCase(), v]));
      return Buffer.from(
        JSON.stringify({ version: "2020_10_22", host, "user-agent": "x", ...small, ...change }),
      );
    };

    test("as botocore signs it: let in", () => {
      const { "X-Amz-Signature": signature, ...rest } = query;
      expect(signatureOf(rest, host, SECRET)).toBe(signature!);
      expect(judgeIam(server, payload(), AT)).toBeNull();
      expect(judgeIam(server, payload(), AT + 300_000)).toBeNull();
    });

    const changes: [string, Record<string, string>, number][] = [
      ["another host", { host: "b-2.other" }, AT],
      ["another action", { action: "kafka-cluster:Delete" }, AT],
      ["another key", { "x-amz-credential": query["X-Amz-Credential"]!.replace("AKID", "AKIX") }, AT],
      ["a longer life", { "x-amz-expires": "900" }, AT],
      ["another token", { "x-amz-security-token": "t" }, AT],
      ["another field", { "x-amz-more": "t" }, AT],
      ["another version", { version: "1" }, AT],
      ["too late", {}, AT + 300_001],
    ];
    for (const [name, change, at] of changes) {
      test(`${name}: refused`, () => expect(judgeIam(server, payload(change), at)).not.toBeNull());
    }
  });
}
