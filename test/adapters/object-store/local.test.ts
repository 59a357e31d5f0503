/**
 * The local object store: every state that a kill can leave is mended, what is not ours is never touched, and each
 * refusal of the file system is one coded failure that names the path.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { LocalObjectStore, stagingOf } from "../../../src/adapters/object-store/local.ts";
import { storeFailure } from "../../../src/adapters/object-store/local-failure.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { Target } from "../../../src/core/ports/object-store.ts";
import { asNobody } from "../../as-nobody.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "twg-store-"));
  chmodSync(root, 0o777);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const bytes = (text: string) => new TextEncoder().encode(text);
const store = (instance = "a", at = root) =>
  new LocalObjectStore({ root: at, staging: stagingOf(at, "p", "s"), instance });
const stagedIn = (at = root) => readdirSync(stagingOf(at, "p", "s"));
const pathOf = (t: Target) => join(root, t.key);
const stagedPath = (t: Target) => join(stagingOf(root, "p", "s"), t.staging);

async function sealed(
  s: LocalObjectStore,
  key = "orders/2026-01-01/x-1-0.parquet",
  text = "hello",
): Promise<Target> {
  const object = await s.stage(key);
  await object.append(bytes(text));
  return object.seal(7);
}

async function failure(work: () => Promise<unknown>): Promise<Failure> {
  try {
    await work();
  } catch (e) {
    if (e instanceof Failure) return e;
    throw e;
  }
  throw new Error("it did not fail");
}

describe("the way of an object", () => {
  test("staged, sealed, published; then only the published file is there", async () => {
    const s = store();
    const object = await s.stage("t/f.parquet");
    await object.append(bytes("ab"));
    await object.append(bytes("cde"));
    expect(existsSync(join(root, "t"))).toBe(false);
    const target = await object.seal(3);
    expect(target).toEqual({ key: "t/f.parquet", staging: "a-0.staged", bytes: 5, rows: 3 });
    expect(await s.probe(target)).toBe("staged");
    await s.publish(target);
    expect(readFileSync(pathOf(target), "utf8")).toBe("abcde");
    expect(await s.probe(target)).toBe("published");
    expect(stagedIn()).toEqual([]);
  });

  test("a target survives a process: another store publishes it", async () => {
    const target = JSON.parse(JSON.stringify(await sealed(store("a")))) as Target;
    await store("b").publish(target);
    expect(readFileSync(pathOf(target), "utf8")).toBe("hello");
  });

  test("abort and discard remove staged bytes, twice without complaint, and never a published file", async () => {
    const s = store();
    const object = await s.stage("k");
    await object.append(bytes("x"));
    await object.abort();
    await object.abort();
    expect(stagedIn()).toEqual([]);
    const target = await sealed(s);
    await s.publish(target);
    await s.discard(target);
    expect(existsSync(pathOf(target))).toBe(true);
    const other = await sealed(s, "other");
    await s.discard(other);
    await s.discard(other);
    expect(await s.probe(other)).toBe("absent");
    expect((await failure(() => s.publish(other))).code).toBe("store.absent");
  });

  test("use after the end is a bug that is told", async () => {
    const s = store();
    const object = await s.stage("k");
    await object.seal(0);
    expect((await failure(() => object.append(bytes("x")))).code).toBe("internal.bug");
  });
});

describe("what a kill leaves", () => {
  test("after link: both names of one file; publish finishes", async () => {
    const s = store();
    const target = await sealed(s);
    mkdirSync(dirname(pathOf(target)), { recursive: true });
    linkSync(stagedPath(target), pathOf(target));
    expect(await s.probe(target)).toBe("published");
    await store("b").publish(target);
    expect(stagedIn()).toEqual([]);
    expect(readFileSync(pathOf(target), "utf8")).toBe("hello");
  });

  test("a staged file that was cut short is as good as gone: never shown, and can be discarded", async () => {
    const s = store();
    const target = await sealed(s);
    truncateSync(stagedPath(target), 3);
    expect(await s.probe(target)).toBe("absent");
    expect((await failure(() => s.publish(target))).code).toBe("store.absent");
    expect(existsSync(pathOf(target))).toBe(false);
    await s.discard(target);
    expect(stagedIn()).toEqual([]);
  });

  test("after unlink: publish is done again without harm", async () => {
    const s = store();
    const target = await sealed(s);
    await s.publish(target);
    await s.publish(target);
    await store("b").publish(target);
    expect(readFileSync(pathOf(target), "utf8")).toBe("hello");
  });

  test("two processes publish at once, a hundred times: one file, no failure", async () => {
    for (let i = 0; i < 100; i++) {
      const target = await sealed(store(`r${i}`), `race/${i}`);
      await Promise.all([store("b").publish(target), store("c").publish(target)]);
      expect(readFileSync(pathOf(target), "utf8")).toBe("hello");
    }
    expect(stagedIn()).toEqual([]);
  });

  test("sweep removes what no intent names, and nothing else", async () => {
    const s = store();
    const kept = await sealed(s, "k1");
    const stray = await sealed(s, "k2");
    const unfinished = await s.stage("k3");
    await unfinished.append(bytes("half"));
    writeFileSync(join(stagingOf(root, "p", "s"), "notes.txt"), "of somebody");
    const other = new LocalObjectStore({ root, staging: stagingOf(root, "p", "s2"), instance: "z" });
    const neighbour = await sealed(other, "k4");
    const gone = await store("b").sweep(new Set([kept.staging]));
    expect([...gone].sort()).toEqual([stray.staging, "a-2.staged"].sort());
    expect(stagedIn().sort()).toEqual([kept.staging, "notes.txt"].sort());
    expect(await other.probe(neighbour)).toBe("staged");
  });

  test("sweep before anything was staged", async () => {
    expect(await store().sweep(new Set())).toEqual([]);
  });

  test("a probe that was killed in the middle is swept", async () => {
    await store().prepare();
    writeFileSync(join(stagingOf(root, "p", "s"), "dead-probe.staged"), "twg");
    expect(await store().sweep(new Set())).toEqual(["dead-probe.staged"]);
  });

  test("bytes of an append that failed half-way do not stay behind the end", async () => {
    const s = store();
    const object = await s.stage("k");
    await object.append(bytes("whole"));
    // What a short write leaves: bytes in the file that the object does not count.
    writeFileSync(join(stagingOf(root, "p", "s"), "a-0.staged"), "whole and a half", { flag: "r+" });
    const target = await object.seal(1);
    await s.publish(target);
    expect(readFileSync(pathOf(target), "utf8")).toBe("whole");
  });
});

describe("what is not ours", () => {
  test("a file under our key is left as it is, also one of the same size", async () => {
    for (const text of ["a file of somebody", "HELLO"]) {
      const s = store();
      const target = await sealed(store(`n${text.length}`), `f-${text.length}`);
      writeFileSync(pathOf(target), text);
      expect((await failure(() => s.publish(target))).code).toBe("store.foreign");
      expect((await failure(() => s.probe(target))).code).toBe("store.foreign");
      expect(readFileSync(pathOf(target), "utf8")).toBe(text);
      // Our bytes are still there for when it was moved away.
      unlinkSync(pathOf(target));
      await s.publish(target);
      expect(readFileSync(pathOf(target), "utf8")).toBe("hello");
    }
  });

  test("a link or a folder under our key is not followed", async () => {
    const s = store();
    const target = await sealed(s, "f");
    writeFileSync(join(root, "secret"), "hello");
    symlinkSync(join(root, "secret"), pathOf(target));
    expect((await failure(() => s.publish(target))).code).toBe("store.foreign");
    unlinkSync(pathOf(target));
    mkdirSync(pathOf(target));
    expect((await failure(() => s.publish(target))).code).toBe("store.foreign");
  });

  test("stored names that lead out of the folder are refused", async () => {
    const s = store();
    const good = await sealed(s);
    for (const bad of [
      { ...good, key: "../x" },
      { ...good, key: "a/../../x" },
      { ...good, key: "/etc/x" },
      { ...good, key: "" },
      { ...good, staging: "../../../../x.staged" },
      { ...good, staging: "x" },
    ]) {
      expect((await failure(() => s.publish(bad))).code).toBe("internal.bug");
      expect((await failure(() => s.probe(bad))).code).toBe("internal.bug");
    }
    expect((await failure(() => s.discard({ ...good, staging: "../x.staged" }))).code).toBe("internal.bug");
  });
});

describe("folders", () => {
  test("that vanish while we run are made again", async () => {
    const s = store();
    await s.publish(await sealed(s, "d/e/f1"));
    rmSync(join(root, "_twg"), { recursive: true });
    const target = await sealed(s, "d/e/f2");
    rmSync(join(root, "d"), { recursive: true });
    await s.publish(target);
    expect(readFileSync(pathOf(target), "utf8")).toBe("hello");
  });

  test("the root itself is made", async () => {
    const deep = join(root, "x/y/z");
    await store("a", deep).prepare();
    expect(stagedIn(deep)).toEqual([]);
    expect(store("a", deep).place).toBe(deep);
  });
});

describe("refusals of the file system", () => {
  test("no right to write: prepare, stage and publish say so and name the path", () =>
    asNobody(async () => {
      const closed = join(root, "closed");
      mkdirSync(closed);
      chmodSync(closed, 0o555);
      for (const work of [() => store("a", closed).prepare(), () => store("a", closed).stage("k")]) {
        const f = await failure(work);
        expect(f.code).toBe("store.denied");
        expect(f.kind).toBe("environment");
        expect(f.at).toStartWith(closed);
        expect(f.hint).toContain("`path`");
      }
      const s = store();
      const target = await sealed(s, "closed/f");
      expect((await failure(() => s.publish(target))).code).toBe("store.denied");
      chmodSync(closed, 0o755);
      await s.publish(target);
      expect(existsSync(pathOf(target))).toBe(true);
    }));

  test("sweep and discard in a folder that is closed", () =>
    asNobody(async () => {
      const s = store();
      const target = await sealed(s);
      chmodSync(stagingOf(root, "p", "s"), 0o555);
      expect((await failure(() => s.sweep(new Set()))).code).toBe("store.denied");
      expect((await failure(() => s.discard(target))).code).toBe("store.denied");
      chmodSync(stagingOf(root, "p", "s"), 0o755);
      chmodSync(join(root, "_twg"), 0o000);
      expect((await failure(() => s.probe(target))).code).toBe("store.denied");
      chmodSync(join(root, "_twg"), 0o755);
    }));

  test("a file where a folder belongs", async () => {
    writeFileSync(join(root, "f"), "");
    expect((await failure(() => store("a", join(root, "f")).prepare())).code).toBe("store.misplaced");
    const s = store();
    const target = await sealed(s, "f/x.parquet");
    expect((await failure(() => s.publish(target))).code).toBe("store.misplaced");
  });

  test("a name that is too long", async () => {
    const s = store();
    const target = await sealed(s, `${"n".repeat(300)}/x`);
    expect((await failure(() => s.publish(target))).code).toBe("store.misplaced");
  });

  test("each errno has its code, and what is unknown is an I/O error that may pass", () => {
    const of = (code: string) =>
      storeFailure(Object.assign(new Error(`${code}: text`), { code }), "write", "/p/f");
    const seen = ["ENOSPC", "EDQUOT", "EACCES", "EPERM", "EROFS", "ENOTDIR", "EXDEV", "EMFILE", "EIO"].map(
      of,
    );
    expect(seen.map((f) => [f.code, f.retry])).toEqual([
      ["store.full", true],
      ["store.full", true],
      ["store.denied", false],
      ["store.denied", false],
      ["store.read_only", false],
      ["store.misplaced", false],
      ["store.misplaced", false],
      ["store.io", true],
      ["store.io", true],
    ]);
    expect(seen.every((f) => f.at === "/p/f" && f.kind === "environment")).toBe(true);
    expect(storeFailure("odd", "write", "/p").message).toBe("cannot write: odd");
    const own = new Failure("store.absent", "x");
    expect(storeFailure(own, "write", "/p")).toBe(own);
  });
});
