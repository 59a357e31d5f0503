/**
 * Goal: a binary for another machine is made of the same versions as the one for this, and of nothing unpinned.
 * Method: the lock file of scripts/build/pins is compared with the project's own, package by package.
 */
import { expect, test } from "bun:test";
import { join, resolve } from "node:path";
import projectPackage from "../../../package.json";
import { TARGETS, targetNamed } from "../../../scripts/build/targets.ts";

const repo = resolve(import.meta.dir, "../../..");

/** name -> [version, hash] of every package in a bun.lock. */
async function locked(path: string): Promise<Map<string, readonly [string, string]>> {
  const text = await Bun.file(join(repo, path)).text();
  const lines = text.matchAll(/^ {4}"[^"]+": \["(@?[^"@]+)@([^"]+)", .*"(sha512-[^"]+)"\],$/gm);
  return new Map([...lines].map(([, name, version, hash]) => [name!, [version!, hash!]]));
}

const pins = await locked("scripts/build/pins/bun.lock");
const own = await locked("bun.lock");

test("every part of every target is pinned by version and hash", () => {
  const parts = TARGETS.flatMap((t) => [t.runtime, t.duckdb, t.crc32]);
  expect(new Set(parts).size).toBe(12);
  expect([...pins.keys()].sort()).toEqual([...parts].sort());
});

test("what goes into this machine's binary too is of the same version and hash there", () => {
  const shared = [...pins].filter(([name]) => !name.startsWith("@oven/"));
  expect(shared).toHaveLength(8);
  for (const [name, pin] of shared) expect({ name, pin }).toEqual({ name, pin: own.get(name)! });
});

test("the runtimes are the Bun that builds", () => {
  const versions = [...pins].filter(([n]) => n.startsWith("@oven/")).map(([, [version]]) => version);
  expect(versions).toEqual(Array(4).fill(projectPackage.engines.bun));
  expect(Bun.version).toBe(projectPackage.engines.bun);
});

test("a target that is not there is answered with those that are", () => {
  expect(targetNamed("linux-arm64-musl").runtime).toBe("@oven/bun-linux-aarch64-musl");
  expect(() => targetNamed("linux-sparc")).toThrow(
    "no target linux-sparc; there are linux-x64, linux-arm64, linux-x64-musl, linux-arm64-musl",
  );
});
