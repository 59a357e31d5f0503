// Goal: each option type takes what its text says and nothing else. Method: tables of written and held values.
import { describe, expect, test } from "bun:test";
import {
  byteSize,
  durationMs,
  formatBytes,
  formatMs,
  GIB,
  hostPort,
  MIB,
  parseHostPort,
  pemText,
  secretString,
  wholeNumber,
} from "../../../src/core/config/option-types.ts";
import { FileRef, Secret, SecretRef } from "../../../src/core/config/secret.ts";

describe("byteSize", () => {
  test.each([
    ["64MiB", 64 * MIB],
    ["1GB", 1_000_000_000],
    ["1.5GiB", 1.5 * GIB],
    ["512 KB", 512_000],
    ["7B", 7],
    [4096, 4096],
    [0, 0],
  ] as const)("%p is %d bytes", (written, bytes) => {
    expect(byteSize().parse(written)).toBe(bytes);
  });

  test.each([
    "64",
    "64mib",
    "MiB",
    "-1MiB",
    "1e3MiB",
    "1.5B",
    "0x10MiB",
    " 1MiB",
    "1MiB\n",
    "9999999TiB",
    "",
    1.5,
    -1,
    true,
    null,
    {},
  ])("%p is refused", (written) => {
    expect(byteSize().safeParse(written).success).toBe(false);
  });

  test("bounds hold for both ways of writing", () => {
    const bounded = byteSize({ min: MIB, max: GIB });
    expect(bounded.safeParse(MIB - 1).success).toBe(false);
    expect(bounded.safeParse("2GiB").success).toBe(false);
    expect(bounded.parse("1GiB")).toBe(GIB);
    expect(bounded.parse(MIB)).toBe(MIB);
  });
});

describe("durationMs", () => {
  test.each([
    ["500ms", 500],
    ["10s", 10_000],
    ["1.5s", 1500],
    ["5m", 300_000],
    ["1h", 3_600_000],
    ["7d", 604_800_000],
    [250, 250],
  ] as const)("%p is %d ms", (written, ms) => {
    expect(durationMs().parse(written)).toBe(ms);
  });

  test.each(["10", "1min", "1M", "0.5ms", "ten s"])("%p is refused", (written) => {
    expect(durationMs().safeParse(written).success).toBe(false);
  });
});

describe("hostPort", () => {
  test.each([
    ["kafka:9092", { host: "kafka", port: 9092 }],
    ["127.0.0.1:1", { host: "127.0.0.1", port: 1 }],
    ["[::1]:65535", { host: "::1", port: 65535 }],
    ["[fe80::1%eth0]:9092", { host: "fe80::1%eth0", port: 9092 }],
  ] as const)("%s", (written, held) => {
    expect(hostPort().parse(written)).toEqual(held);
  });

  test.each([
    "kafka",
    "kafka:",
    ":9092",
    "kafka:0",
    "kafka:65536",
    "kafka:9092 ",
    "http://kafka:9092",
    "a:1,b:2",
    "::1:9092",
    "u@h:1",
    "h:1/x",
  ])("%s is refused", (written) => {
    expect(hostPort().safeParse(written).success).toBe(false);
  });

  test("a listener may ask for any free port", () => {
    expect(parseHostPort("127.0.0.1:0")).toEqual({ host: "127.0.0.1", port: 0 });
  });
});

describe("secrets", () => {
  test("a literal is wrapped at once, a reference is kept", () => {
    const literal = secretString().parse("hunter2");
    expect(literal).toBeInstanceOf(Secret);
    expect((literal as Secret).reveal()).toBe("hunter2");
    const ref = secretString().parse({ secret: "kafka-password" });
    expect((ref as SecretRef).name).toBe("kafka-password");
  });

  test.each(["../etc/passwd", "a/b", ".hidden", "", "-x", "a b", "x".repeat(129), "ä"])(
    "%p is no secret name",
    (name) => {
      expect(secretString().safeParse({ secret: name }).success).toBe(false);
    },
  );

  test("a reference has no other keys, and empty literals are refused", () => {
    expect(secretString().safeParse({ secret: "a", file: "b" }).success).toBe(false);
    expect(secretString().safeParse({ file: "b" }).success).toBe(false);
    expect(secretString().safeParse("").success).toBe(false);
  });

  test("PEM is text, a secret or a file; a bare path is not taken for PEM", () => {
    expect(pemText().parse("-----BEGIN CERTIFICATE-----\n...")).toBeInstanceOf(Secret);
    expect(pemText().parse({ file: "/ca.pem" })).toBeInstanceOf(FileRef);
    expect(pemText().parse({ secret: "ca" })).toBeInstanceOf(SecretRef);
    expect(pemText().safeParse("/etc/ca.pem").success).toBe(false);
  });
});

test("whole numbers keep their bounds", () => {
  expect(wholeNumber({ min: 1, max: 3 }).parse(3)).toBe(3);
  for (const bad of [0, 4, 1.5, "1", 2n ** 60n, Number.NaN]) {
    expect(wholeNumber({ min: 1, max: 3 }).safeParse(bad).success).toBe(false);
  }
});

test("sizes and times are shown in the shortest exact form", () => {
  const bytes = [64 * MIB, 1_000_000, 1001, 0, 1536, GIB].map(formatBytes);
  expect(bytes).toEqual(["64MiB", "1MB", "1001B", "0B", "1536B", "1GiB"]);
  expect([10_000, 90_000, 120_000, 250, 0, 86_400_000].map(formatMs)).toEqual([
    "10s",
    "90s",
    "2m",
    "250ms",
    "0ms",
    "1d",
  ]);
});
