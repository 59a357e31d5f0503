/** Goal: AWS_MSK_IAM's two messages. Method: written out by hand from the mechanism's public description. */
import { expect, test } from "bun:test";
import { Failure } from "../../../src/core/failure/failure.ts";
import { awsMskIam, mskIamPayload } from "../../../src/core/sasl/aws-msk-iam.ts";

const bytes = (s: string) => new TextEncoder().encode(s);

test("the payload holds the query's parameters in small letters", () => {
  const query = { Action: "kafka-cluster:Connect", "X-Amz-Expires": "300", "X-Amz-Signature": "ab" };
  expect(JSON.parse(mskIamPayload({ host: "b-1.kafka", userAgent: "twg", query }))).toEqual({
    version: "2020_10_22",
    host: "b-1.kafka",
    "user-agent": "twg",
    action: "kafka-cluster:Connect",
    "x-amz-expires": "300",
    "x-amz-signature": "ab",
  });
});

test("one message, and an answer of the same version ends it", () => {
  const machine = awsMskIam("{}");
  expect(machine.mechanism).toBe("AWS_MSK_IAM");
  expect(machine.step(null)).toEqual({ kind: "send", message: bytes("{}") });
  expect(machine.step(bytes('{"version":"2020_10_22","request-id":"r"}'))).toEqual({ kind: "done" });
});

test("any other answer is none of MSK's", () => {
  for (const answer of ["", "null", "[]", "<html>", '{"version":"2021_01_01"}']) {
    const machine = awsMskIam("{}");
    machine.step(null);
    expect(() => machine.step(bytes(answer))).toThrow(Failure);
  }
});
