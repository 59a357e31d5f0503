/** Goal: the parts of the protocol that no sample body shows. Method: bytes laid out by hand in each test. */
import { describe, expect, test } from "bun:test";
import { ERROR, errorName, kafkaError } from "../../../../src/adapters/kafka/wire/errors.ts";
import {
  API_RANGE,
  APIS,
  type ApiName,
  apiName,
  correlationIdOf,
  decodeRequest,
  decodeRequestHeader,
  decodeResponse,
  encodeRequest,
  encodeResponse,
} from "../../../../src/adapters/kafka/wire/protocol.ts";
import { decodeUuid, encodeUuid, ZERO_UUID } from "../../../../src/adapters/kafka/wire/uuid.ts";
import { Failure } from "../../../../src/core/failure/failure.ts";

const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text.replaceAll(" ", ""), "hex"));

function failureOf(run: () => unknown): Failure {
  try {
    run();
  } catch (e) {
    if (e instanceof Failure) return e;
    throw e;
  }
  throw new Error("nothing was thrown");
}

describe("ApiVersions, which is read before anything is known", () => {
  test("its flexible response has a header without tags", () => {
    // id 7 | error 0 | compact array of 1: key 18, 0 to 4, tags | throttle 9 | tags
    const bytes = hex("00000007 0000 02 0012 0000 0004 00 00000009 00");
    expect(decodeResponse("ApiVersions", 3, bytes)).toMatchObject({
      errorCode: 0,
      throttleTimeMs: 9,
      apiKeys: [{ apiKey: 18, minVersion: 0, maxVersion: 4 }],
    });
  });

  test("a refusal (error 35) is read in the form of v0 whatever was asked", () => {
    const bytes = hex("00000007 0023 00000001 0012 0000 0003");
    const body = decodeResponse("ApiVersions", 4, bytes);
    expect(body.errorCode).toBe(ERROR.UNSUPPORTED_VERSION);
    expect(body.apiKeys).toEqual([{ apiKey: 18, minVersion: 0, maxVersion: 3 }]);
  });

  test("a reply that ends before its throttle time is complete", () => {
    const bytes = hex("00000007 0000 00000001 0003 0000 0009");
    expect(decodeResponse("ApiVersions", 1, bytes)).toMatchObject({
      throttleTimeMs: 0,
      apiKeys: [{ apiKey: 3 }],
    });
  });
});

describe("tagged fields", () => {
  // Fetch v12: id | header tags | throttle | error | session | 1 topic "t" | 1 partition ...
  const start = "00000001 00 00000000 0000 00000000 02 02 74 02";
  // partition 5, error 0, high watermark 9, stable 9, start 0, no aborted, no replica, records null
  const partition = "00000005 0000 0000000000000009 0000000000000009 0000000000000000 00 ffffffff 00";

  test("unknown ones are read over by their size, known ones are found beside them", () => {
    // tags: 1 currentLeader (leader 3, epoch 4, own tags), 99 unknown with 3 bytes
    const tags = "02 01 09 00000003 00000004 00 63 03 aabbcc";
    const body = decodeResponse("Fetch", 12, hex(`${start} ${partition} ${tags} 00 00`));
    const p = body.responses[0]!.partitions[0]!;
    expect(p.currentLeader).toEqual({ leaderId: 3, leaderEpoch: 4 });
    expect(p.divergingEpoch).toEqual({ epoch: -1, endOffset: -1n });
    expect(p.records).toBeNull();
  });

  test("a known one that does not fill its declared size is refused", () => {
    const tags = "01 01 0a 00000003 00000004 00 00";
    const f = failureOf(() => decodeResponse("Fetch", 12, hex(`${start} ${partition} ${tags} 00 00`)));
    expect(f.code).toBe("bytes.invalid");
    expect(f.at).toBe("Fetch response v12");
  });

  test("a known one may not read past its declared size", () => {
    const tags = "01 01 04 00000003 00000004 00";
    expect(
      failureOf(() => decodeResponse("Fetch", 12, hex(`${start} ${partition} ${tags} 00 00`))).code,
    ).toBe("bytes.short");
  });

  test("a header's tags are read over too", () => {
    // Metadata v9: id | one header tag 0 of 2 bytes | throttle | brokers, cluster, controller, topics, operations, tags
    const bytes = hex("00000001 01 00 02 ffff 00000000 01 00 ffffffff 01 80000000 00");
    expect(decodeResponse("Metadata", 9, bytes)).toMatchObject({
      brokers: [],
      clusterId: null,
      controllerId: -1,
    });
  });
});

describe("limits", () => {
  test("an array's count is held against the bytes that are left", () => {
    // SaslHandshake v1: error 0 and 2^31 - 1 mechanisms in no bytes
    const f = failureOf(() => decodeResponse("SaslHandshake", 1, hex("00000001 0000 7fffffff")));
    expect(f.code).toBe("bytes.limit");
  });

  test("structures count with their least size: three topics do not fit in 20 bytes", () => {
    // A topic of Metadata v1 takes at least 9 bytes: error 2, name 2, internal 1, partitions 4.
    const bytes = hex(`00000001 00000000 00000001 00000003 ${"00".repeat(20)}`);
    expect(failureOf(() => decodeResponse("Metadata", 1, bytes)).code).toBe("bytes.limit");
  });

  test("null arrays pass only where the version allows them", () => {
    expect(failureOf(() => decodeResponse("SaslHandshake", 1, hex("00000001 0000 ffffffff"))).code).toBe(
      "bytes.invalid",
    );
    expect(failureOf(() => decodeResponse("SaslHandshake", 1, hex("00000001 0000 fffffffe"))).code).toBe(
      "bytes.invalid",
    );
    // Metadata request v1: null is "all topics"; v0 has no null.
    expect(decodeRequest(hex("0003 0001 00000001 ffff ffffffff")).body).toMatchObject({ topics: null });
    expect(failureOf(() => decodeRequest(hex("0003 0000 00000001 ffff ffffffff"))).code).toBe(
      "bytes.invalid",
    );
  });
});

test("records are a view on the response, not a copy", () => {
  const records = Uint8Array.of(1, 2, 3, 4);
  const bytes = encodeResponse("Fetch", 4, 1, { responses: [{ topic: "t", partitions: [{ records }] }] });
  const body = decodeResponse("Fetch", 4, bytes.subarray(4));
  const seen = body.responses[0]!.partitions[0]!.records!;
  expect(seen).toEqual(records);
  expect(seen.buffer).toBe(bytes.buffer as ArrayBuffer);
});

test("correlation ids are int32 and wrap below zero", () => {
  const bytes = encodeResponse("Metadata", 1, -2147483648, {});
  expect(correlationIdOf(bytes.subarray(4))).toBe(-2147483648);
  expect(decodeRequestHeader(encodeRequest("Metadata", 1, -1, null, {}).subarray(4))).toEqual({
    apiKey: 3,
    version: 1,
    correlationId: -1,
    clientId: null,
  });
});

test("bytes behind a response are ignored, behind a request refused", () => {
  const response = Buffer.concat([encodeResponse("Metadata", 1, 1, {}), Buffer.from([9])]);
  expect(decodeResponse("Metadata", 1, response.subarray(4)).topics).toEqual([]);
  const request = Buffer.concat([encodeRequest("Metadata", 1, 1, "t", {}), Buffer.from([9])]);
  expect(failureOf(() => decodeRequest(request.subarray(4))).code).toBe("bytes.invalid");
});

test("unknown keys and versions of requests are refused", () => {
  expect(failureOf(() => decodeRequest(hex("7fff 0000 00000001 ffff"))).message).toContain("32767");
  expect(failureOf(() => decodeRequest(hex("0001 0003 00000001 ffff"))).message).toContain("Fetch v3");
  expect(apiName(1)).toBe("Fetch");
  expect(apiName(999)).toBeNull();
});

describe("values that a version cannot carry are bugs of the caller, not bytes on the wire", () => {
  const cases: [string, () => unknown][] = [
    ["a number over int32", () => encodeRequest("Fetch", 4, 1, "t", { maxWaitMs: 2 ** 31 })],
    ["a fraction", () => encodeRequest("Fetch", 4, 1, "t", { maxWaitMs: 0.5 })],
    ["a number for int64", () => encodeRequest("OffsetCommit", 2, 1, "t", { retentionTimeMs: 1 as never })],
    ["a bigint over int64", () => encodeRequest("OffsetCommit", 2, 1, "t", { retentionTimeMs: 2n ** 63n })],
    ["null for a string", () => encodeRequest("SaslHandshake", 1, 1, "t", { mechanism: null as never })],
    ["null for an array", () => encodeRequest("Metadata", 0, 1, "t", { topics: null })],
    ["text for bytes", () => encodeRequest("SaslAuthenticate", 0, 1, "t", { authBytes: "x" as never })],
    [
      "text for a bool",
      () => encodeRequest("Metadata", 4, 1, "t", { allowAutoTopicCreation: "yes" as never }),
    ],
    [
      "a number for an id",
      () => encodeRequest("Metadata", 12, 1, "t", { topics: [{ topicId: 5 as never, name: null }] }),
    ],
    ["a number for a structure", () => encodeRequest("Metadata", 1, 1, "t", { topics: [5 as never] })],
    ["a version that is not defined", () => encodeRequest("Fetch", 3, 1, "t", {})],
  ];
  for (const [name, run] of cases) test(name, () => expect(failureOf(run).code).toBe("internal.bug"));

  test("a string over 32767 bytes in the old form", () => {
    const mechanism = "x".repeat(32768);
    expect(failureOf(() => encodeRequest("SaslHandshake", 1, 1, "t", { mechanism })).code).toBe(
      "bytes.limit",
    );
  });
});

test("text keeps what it is: a byte order mark stays, broken UTF-8 becomes replacement characters", () => {
  const read = (text: string) =>
    decodeResponse("SaslHandshake", 1, hex(`00000001 0000 00000001 ${text}`)).mechanisms[0];
  expect(read("0003 efbbbf")).toBe("\ufeff");
  expect(read("0002 ff41")).toBe("\ufffdA");
});

test("every API is defined for the versions that the client speaks", () => {
  for (const api of Object.keys(APIS) as ApiName[]) {
    const [min, max] = APIS[api].request.versions;
    expect(API_RANGE[api].min).toBeGreaterThanOrEqual(min);
    expect(API_RANGE[api].max).toBeLessThanOrEqual(max);
  }
});

test("topic ids read as Kafka's tools print them", () => {
  // Vector: base64url of the bytes 0 to 15, by Python's base64.urlsafe_b64encode.
  const bytes = Uint8Array.from({ length: 16 }, (_, i) => i);
  expect(decodeUuid(bytes)).toBe("AAECAwQFBgcICQoLDA0ODw");
  expect(encodeUuid("AAECAwQFBgcICQoLDA0ODw")).toEqual(bytes);
  expect(decodeUuid(new Uint8Array(16))).toBe(ZERO_UUID);
  for (const bad of ["", "AAECAwQFBgcICQoLDA0OD", "AAECAwQFBgcICQoLDA0OD!", `${ZERO_UUID}A`]) {
    expect(failureOf(() => encodeUuid(bad)).code).toBe("bytes.invalid");
  }
});

test("a code that a later Kafka may bring is not retryable", () => {
  expect(kafkaError(9999)).toEqual({
    code: 9999,
    name: "UNKNOWN_ERROR_9999",
    retriable: false,
    action: "fail",
  });
  expect(errorName(74)).toBe("FENCED_LEADER_EPOCH");
  expect(kafkaError(ERROR.NOT_LEADER_OR_FOLLOWER).action).toBe("refresh");
});
