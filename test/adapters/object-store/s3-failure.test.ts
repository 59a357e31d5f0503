/**
 * What an error of an S3-alike means. Method: errors as the SDK shapes them, each with the class that its outcome must
 * have: whether it surely had no effect, and the code that people see.
 */
import { describe, expect, test } from "bun:test";
import { s3Failure, s3Fault } from "../../../src/adapters/object-store/s3-failure.ts";

const answered = (name: string, status: number, message = name) =>
  Object.assign(new Error(message), { name, $metadata: { httpStatusCode: status } });
const cut = (code: string, message = code) => Object.assign(new Error(message), { code });

/** Error, code of the failure, whether it surely had no effect. */
const CASES: readonly (readonly [string, unknown, string, boolean])[] = [
  ["a missing object", answered("NoSuchKey", 404), "store.absent", false],
  ["a HEAD has no body to name it", answered("UnknownError", 404), "store.absent", false],
  ["a missing upload", answered("NoSuchUpload", 404), "store.absent", false],
  ["acknowledged parts that are gone", answered("InvalidPart", 400), "store.absent", false],
  ["a condition", answered("PreconditionFailed", 412), "store.foreign", false],
  ["a conflict in flight", answered("ConditionalRequestConflict", 409), "store.unavailable", false],
  ["too much", answered("SlowDown", 503), "store.unavailable", false],
  ["too much, by status", answered("UnknownError", 429), "store.unavailable", false],
  ["out of order", answered("InternalError", 500), "store.unavailable", false],
  ["a gateway's 502", answered("UnknownError", 502), "store.unavailable", false],
  ["a success with an error in its body", answered("InternalError", 200), "store.unavailable", false],
  ["a success that cannot be read", answered("SyntaxError", 200), "store.unavailable", false],
  ["a body that came damaged", answered("BadDigest", 400), "store.unavailable", false],
  ["a reset", cut("ECONNRESET"), "store.unavailable", false],
  ["a time-out", Object.assign(new Error("late"), { name: "TimeoutError" }), "store.unavailable", false],
  ["an abort", Object.assign(new Error("aborted"), { name: "AbortError" }), "store.unavailable", false],
  ["nobody listens", cut("ECONNREFUSED"), "store.unavailable", false],
  ["no right", answered("AccessDenied", 403), "store.denied", true],
  ["an unknown key", answered("InvalidAccessKeyId", 403), "store.denied", true],
  ["a token that ended", answered("ExpiredToken", 400), "store.denied", true],
  [
    "no credentials",
    Object.assign(new Error("none"), { name: "CredentialsProviderError" }),
    "store.denied",
    true,
  ],
  ["a clock that is off", answered("RequestTimeTooSkewed", 403), "store.denied", true],
  ["no such bucket", answered("NoSuchBucket", 404), "store.misplaced", true],
  ["another region", answered("PermanentRedirect", 301), "store.misplaced", true],
  ["another region in the signature", answered("AuthorizationHeaderMalformed", 400), "store.misplaced", true],
  ["no region", new Error("Region is missing"), "store.misplaced", true],
  ["an unknown authority", cut("UNABLE_TO_VERIFY_LEAF_SIGNATURE"), "store.untrusted", true],
  ["an expired certificate", cut("CERT_HAS_EXPIRED"), "store.untrusted", true],
  ["another host's certificate", cut("ERR_TLS_CERT_ALTNAME_INVALID"), "store.untrusted", true],
  ["no space", answered("InsufficientStorage", 507), "store.full", false],
  ["a quota", answered("QuotaExceeded", 403), "store.full", true],
  ["a bucket's quota", answered("XMinioAdminBucketQuotaExceeded", 400), "store.full", true],
  [
    "the service of its keys is asked too often",
    answered("ThrottlingException", 400),
    "store.unavailable",
    false,
  ],
  ["a session that ended", answered("ExpiredTokenException", 400), "store.denied", true],
  ["a request that is too old", answered("RequestExpired", 400), "store.denied", true],
  ["a request that is wrong", answered("InvalidRequest", 400), "store.refused", true],
  ["something that is no error", "odd", "store.unavailable", false],
];

describe("the class of an error", () => {
  for (const [what, error, code, noEffect] of CASES) {
    test(`${what}: ${code}`, () => {
      expect(s3Failure(error, "write", "s3://b/k").code as string).toBe(code);
      expect(s3Fault(error).noEffect).toBe(noEffect);
    });
  }
});

test("a failure says what the store said, where, and what to look at", () => {
  const f = s3Failure(answered("AccessDenied", 403, "no s3:PutObject for you"), "write", "s3://lake/x");
  expect([f.message, f.at]).toEqual([
    "cannot write: no s3:PutObject for you (AccessDenied, HTTP 403)",
    "s3://lake/x",
  ]);
  expect(f.hint).toContain("docs/object-stores.md");
});
