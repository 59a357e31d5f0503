/**
 * Goal: what is kept of a topic's decoding says all that it depends on, and nothing of who may ask a registry; equal plans have one
 * digest, and the persisted form is the one of the golden file. Method: sections with options of topics and files in memory; the
 * golden file (digest by sha256sum) read, damaged, and written again.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { planOf, readPlan, storedPlan } from "../../src/commands/decode-plan.ts";
import { type DecodeSection, decodeSpec, payloadPlan } from "../../src/core/config/decode-options.ts";
import { asFailure } from "../../src/core/failure/failure.ts";

const DIGEST = "47c4c387494887b0115927e99133dc3c";
const golden = readFileSync(join(import.meta.dir, "../golden/state/plan-v1.json"));
const section = (options: object): DecodeSection => decodeSpec.parse(options);
const bytes = (text: string) => new TextEncoder().encode(text);

function disk(files: Readonly<Record<string, string>>) {
  const read: string[] = [];
  return {
    read,
    file: async (path: string) => {
      read.push(path);
      const text = files[path];
      return text === undefined ? null : bytes(text);
    },
  };
}

const codeOf = (read: () => unknown): string => {
  try {
    read();
    return "";
  } catch (e) {
    return asFailure(e).code;
  }
};

describe("a plan", () => {
  const SECTION = section({
    format: "json",
    schema_file: "/s/all.json",
    unknown_fields: "ignore",
    key: { format: "text", prefix: "k_" },
    topic: [
      { name: "own", schema_file: "/s/own.json", on_error: "fail", key: { format: "none" } },
      { name: "other", format: "protobuf", schema_file: "/p/order.proto", message: ".acme.Order" },
    ],
  });
  const files = disk({
    "/s/all.json": "all",
    "/s/own.json": "own",
    "/p/order.proto": 'import "google/protobuf/any.proto";\nimport "a/money.proto";',
    "/p/a/money.proto": 'import "cents.proto";',
    "/p/cents.proto": "cents",
  }).file;

  test("decodes a topic as the section does, alone", async () => {
    for (const topic of ["own", "other", "any"]) {
      const { decode } = await planOf(SECTION, topic, files);
      for (const part of ["value", "key"] as const)
        expect([topic, part, payloadPlan(decode as DecodeSection, "unnamed", part)]).toEqual([
          topic,
          part,
          payloadPlan(SECTION, topic, part),
        ]);
      expect(decode).toMatchObject({ unknown_fields: "ignore", max_payload_bytes: 16 * 1024 * 1024 });
    }
  });

  test("has the contents of its files, and of what they import", async () => {
    const names = async (topic: string) => [...(await planOf(SECTION, topic, files)).files.keys()].sort();
    expect(await names("any")).toEqual(["/s/all.json"]);
    expect(await names("own")).toEqual(["/s/own.json"]);
    expect(await names("other")).toEqual(["/p/a/money.proto", "/p/cents.proto", "/p/order.proto"]);
  });

  test("is another with another option or another content, and the same for another topic without options", async () => {
    const digest = async (options: DecodeSection, topic: string, text = "all") =>
      storedPlan(await planOf(options, topic, async () => bytes(text))).digest;
    const one = await digest(SECTION, "any");
    expect(await digest(SECTION, "some")).toBe(one);
    expect(await digest({ ...SECTION, topic: [] }, "any")).toBe(one);
    expect(await digest(SECTION, "any", "more")).not.toBe(one);
    expect(await digest(SECTION, "own")).not.toBe(one);
    expect(await digest({ ...SECTION, unknown_fields: "reject" }, "any")).not.toBe(one);
  });

  test("names that there is a registry, or a folder, and says neither where nor with which login", async () => {
    const secret = { token: "hunter2" };
    const registry = { url: ["https://r.example:8081"], ...secret };
    const options = { format: "avro", framing: "confluent" } as const;
    const of = async (more: object) =>
      await planOf({ ...section({ ...options, schema_dir: "/d" }), ...more }, "t", files);
    const asked = await of({ schema_dir: undefined, registry });
    expect(asked.schemas).toBe("registry");
    expect(Buffer.from(storedPlan(asked).bytes).toString()).not.toMatch(/hunter2|r\.example/);
    expect(await of({})).toMatchObject({ schemas: "folder" });
    expect(Buffer.from(storedPlan(await of({})).bytes).toString()).not.toContain("/d");
  });

  test("fails with a file that cannot be read, and is as it is without one that is not there", async () => {
    const gone = await planOf(SECTION, "any", async () => null);
    expect(gone.files.size).toBe(0);
    const denied = planOf(SECTION, "any", () => Promise.reject(new Error("denied")));
    expect(await denied.catch((e: Error) => e.message)).toBe("denied");
  });

  test("of a size that nobody reads again is refused", async () => {
    const big = new Uint8Array(33 * 1024 * 1024).fill(97);
    const plan = await planOf(SECTION, "any", async () => big);
    expect(codeOf(() => storedPlan(plan))).toBe("coverage.too_large");
  });
});

describe("its persisted form", () => {
  const digestOf = (b: Uint8Array) => new Bun.CryptoHasher("sha256").update(b).digest("hex").slice(0, 32);
  const failed = (b: Uint8Array, digest = digestOf(b)) => codeOf(() => readPlan(b, digest));

  test("is that of the golden file, both ways", () => {
    const plan = readPlan(golden, DIGEST);
    expect(plan.schemas).toBe("registry");
    expect(plan.decode).toMatchObject({ format: "avro", subject: "orders-value", key: { format: "text" } });
    expect(plan.files.get("/etc/twg/order.arrow")).toEqual(new Uint8Array([255, 0]));
    const stored = storedPlan(plan);
    expect(Buffer.from(stored.bytes).toString()).toBe(golden.toString());
    expect(stored.digest).toBe(DIGEST);
  });

  test("damage is told, a newer version and options of one are left alone", () => {
    expect(failed(golden, "0".repeat(32))).toBe("recovery.plan_corrupt");
    for (const [from, to, wanted] of [
      ['"version":1', '"version":2', "coverage.newer_version"],
      ['"max_depth"', '"most_depth"', "recovery.plan_unfit"],
      ['"format":"avro"', '"format":"cbor"', "recovery.plan_unfit"],
      ['"registry"', '"oracle"', "recovery.plan_corrupt"],
      ['"base64":"/wA="', '"base64":"!"', "recovery.plan_corrupt"],
      ['"base64":"/wA="', '"text":"a","base64":"/wA="', "recovery.plan_corrupt"],
      ['"schemas"', '"schemes"', "recovery.plan_corrupt"],
    ] as const) {
      const damaged = golden.toString().replace(from, to);
      expect([from, failed(Buffer.from(damaged))]).toEqual([from, wanted]);
    }
    for (let cut = 0; cut < golden.length - 1; cut += 31)
      expect([cut, failed(golden.subarray(0, cut))]).toEqual([cut, "recovery.plan_corrupt"]);
  });
});
