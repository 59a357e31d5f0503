// Goal: secrets come out exactly as stored, from where they should and from nowhere else. Method: a real folder laid out as Kubernetes does
// it, with links, pipes, large and empty files; an environment made of an object.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  directoryBackend,
  environmentBackend,
  environmentName,
  secretSources,
} from "../../../src/adapters/secrets/backends.ts";
import { askRefs, type Lookup } from "../../../src/core/config/resolve.ts";
import { FileRef, SecretRef } from "../../../src/core/config/secret.ts";

let root = "";
let dir = "";

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "twg-secrets-"));
  dir = join(root, "mounted");
  mkdirSync(join(dir, "..2026_01_31"), { recursive: true });
  symlinkSync("..2026_01_31", join(dir, "..data"));
  writeFileSync(join(dir, "..2026_01_31", "kafka-password"), "hunter2\n");
  symlinkSync("..data/kafka-password", join(dir, "kafka-password"));
  writeFileSync(join(root, "outside"), "not yours");
  symlinkSync("../outside", join(dir, "leads-out"));
  symlinkSync("loop", join(dir, "loop"));
  mkdirSync(join(dir, "folder"));
  writeFileSync(join(dir, "empty"), "");
  writeFileSync(join(dir, "only-newline"), "\n");
  writeFileSync(join(dir, "two-newlines"), "x\n\n");
  writeFileSync(join(dir, "crlf"), "x\r\n");
  writeFileSync(join(dir, "spaces"), "  x  ");
  writeFileSync(join(dir, "binary"), new Uint8Array([0xff, 0x00]));
  writeFileSync(join(dir, "bom"), "\ufeffx");
  writeFileSync(join(dir, "large"), "x".repeat(1024 * 1024 + 1));
  writeFileSync(join(dir, "largest"), "x".repeat(1024 * 1024));
  Bun.spawnSync(["mkfifo", join(dir, "pipe")]);
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

const text = (found: Lookup) => (found.state === "present" ? found.secret.reveal() : found.state);

describe("the folder", () => {
  test.each([
    ["kafka-password", "hunter2"],
    ["two-newlines", "x\n"],
    ["crlf", "x"],
    ["spaces", "  x  "],
    ["bom", "\ufeffx"],
    ["nothing-here", "missing"],
    ["empty", "empty"],
    ["only-newline", "empty"],
    ["binary", "unreadable"],
    ["large", "unreadable"],
    ["folder", "unreadable"],
    ["pipe", "unreadable"],
    ["leads-out", "unreadable"],
    ["loop", "unreadable"],
    ["../outside", "unreadable"],
    ["..data", "unreadable"],
    ["..", "unreadable"],
    ["a/b", "unreadable"],
  ])("%s is %j", async (name, expected) => {
    expect(text(await directoryBackend(dir).lookup(name))).toBe(expected);
  });

  test("the largest allowed is read whole", async () => {
    expect(text(await directoryBackend(dir).lookup("largest"))).toHaveLength(1024 * 1024);
  });

  test("a folder that is not there has nothing", async () => {
    expect(text(await directoryBackend(join(root, "none")).lookup("a"))).toBe("missing");
  });

  test("asking again sees what Kubernetes swapped in meanwhile", async () => {
    mkdirSync(join(dir, "..2026_02_01"));
    writeFileSync(join(dir, "..2026_02_01", "kafka-password"), "hunter3\n");
    symlinkSync("..2026_02_01", join(dir, "..next"));
    renameSync(join(dir, "..next"), join(dir, "..data"));
    expect(text(await directoryBackend(dir).lookup("kafka-password"))).toBe("hunter3");
  });
});

describe("the environment", () => {
  test("names are upper-cased, all else becomes an underscore", () => {
    expect(environmentName("kafka-password.v2")).toBe("TWG_SECRET_KAFKA_PASSWORD_V2");
  });

  test.each([
    ["kafka-password", "from env"],
    ["hollow", "empty"],
    ["toString", "missing"],
  ])("%s is %j", async (name, expected) => {
    const environment = { TWG_SECRET_KAFKA_PASSWORD: "from env", TWG_SECRET_HOLLOW: "" };
    expect(text(await environmentBackend(environment).lookup(name))).toBe(expected);
  });
});

test("the folder wins over the environment, which answers where the folder is silent", async () => {
  const sources = secretSources(dir, { TWG_SECRET_SPACES: "env", TWG_SECRET_ENV_ONLY: "env" });
  const refs = ["spaces", "env-only"].map((name) => ({ path: [name], ref: new SecretRef(name) }));
  const asked = await askRefs(refs, sources);
  expect(asked.map((a) => [text(a.lookup), a.status.backend, a.status.place])).toEqual([
    ["  x  ", "directory", join(dir, "spaces")],
    ["env", "environment", "TWG_SECRET_ENV_ONLY"],
  ]);
});

test("a file reference reads any file that is text, wherever it is", async () => {
  const refs = [join(root, "outside"), join(root, "none"), root].map((path) => ({
    path: [path],
    ref: new FileRef(path),
  }));
  const asked = await askRefs(refs, secretSources(dir, {}));
  expect(asked.map((a) => text(a.lookup))).toEqual(["not yours", "missing", "unreadable"]);
});
