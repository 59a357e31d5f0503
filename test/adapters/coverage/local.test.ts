/** The coverage in a local folder: the contracts on a real disk, and what only a folder can do wrong. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmod, link, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { coverageFolderOf, LocalVersionedStore } from "../../../src/adapters/coverage/local.ts";
import { LocalObjectStore } from "../../../src/adapters/object-store/local.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { asNobody } from "../../as-nobody.ts";
import { coverageContract } from "../../contract/coverage-contract.ts";
import { versionedContract } from "../../contract/versioned-contract.ts";

const folder = () => mkdtemp(join(tmpdir(), "twg-coverage-"));
const remove = (path: string) => rm(path, { recursive: true, force: true });
const bytes = (text: string) => new TextEncoder().encode(text);

versionedContract("local folder", async () => {
  const root = await folder();
  return { open: () => new LocalVersionedStore(coverageFolderOf(root, "p", "s")), close: () => remove(root) };
});

coverageContract("a local folder", async (_time, traffic) => {
  const root = await folder();
  let serial = 0;
  return {
    versions: () => traffic.watch(new LocalVersionedStore(coverageFolderOf(root, "p", "s"))),
    objects: () =>
      traffic.watch(new LocalObjectStore({ root, staging: join(root, "staging"), instance: `i${serial++}` })),
    close: () => remove(root),
  };
});

describe("a local folder", () => {
  let root: string;
  let place: string;
  let store: LocalVersionedStore;

  beforeEach(async () => {
    root = await folder();
    place = join(root, "a", "b");
    store = new LocalVersionedStore(place);
    await store.prepare();
  });
  afterEach(() => remove(root));

  const failure = async (work: Promise<unknown>): Promise<Failure> => {
    const e: unknown = await work.then(
      () => new Error("did not fail"),
      (e) => e,
    );
    if (!(e instanceof Failure)) throw e;
    return e;
  };

  test("preparing leaves nothing behind, and an empty or absent folder holds no version", async () => {
    expect(await readdir(place)).toEqual([]);
    expect(await store.read()).toBeNull();
    expect(await new LocalVersionedStore(join(root, "not-there")).read()).toBeNull();
  });

  test("versions are whole files under their number; only the newest few stay, and no unfinished one", async () => {
    for (let v = 0; v < 40; v++) await store.write(v === 0 ? null : v, bytes(`${v + 1}`), `t${v}`);
    const names = (await readdir(place)).sort();
    expect(names[0]).toBe("coverage-000000000032.json");
    expect(names.at(-1)).toBe("coverage-000000000040.json");
    expect(names).toHaveLength(9);
    expect(await readFile(join(place, "coverage-000000000033.json"), "utf8")).toBe("33");
  });

  test("a stale writer that links a removed version is not believed, and nobody reads what it wrote", async () => {
    for (let v = 0; v < 40; v++) await store.write(v === 0 ? null : v, bytes(`${v + 1}`), `t${v}`);
    // Version 3 is gone from the folder, so the link to its name succeeds.
    expect(await store.write(2, bytes("stale"), "stale")).toBe("unknown");
    expect((await readdir(place)).filter((n) => n.includes("000003.json"))).toHaveLength(1);
    expect((await store.read())?.version).toBe(40);
    // The next write takes the stray away.
    expect(await store.write(40, bytes("41"), "t40")).toBe("won");
    expect((await readdir(place)).filter((n) => n.includes("000003.json"))).toEqual([]);
  });

  test("files of others in the folder are no versions and stay", async () => {
    await store.write(null, bytes("1"), "t");
    for (const name of [
      "coverage-12.json",
      "coverage-000000000099.json.bak",
      "notes.txt",
      "xcoverage-000000000099.json",
    ]) {
      await writeFile(join(place, name), "other");
    }
    expect((await store.read())?.version).toBe(1);
    await store.sweep(new Set());
    expect(await readdir(place)).toHaveLength(5);
  });

  test("a writer whose unfinished file was swept by a new owner has lost, and that is no outage", async () => {
    const sweeper = new LocalVersionedStore(place);
    const slow = new LocalVersionedStore(place, async (point) => {
      if (point === "coverage_written") await sweeper.sweep(new Set());
    });
    expect(await slow.write(null, bytes("1"), "t")).toBe("lost");
    expect(await store.read()).toBeNull();
  });

  test("processes that start together do not spoil each other's probes for good", async () => {
    // A sweep spoils at most one probe of a process, and there are fewer sweeps than tries.
    const starts = Array.from({ length: 4 }, () => new LocalVersionedStore(place).prepare());
    for (let sweeps = 0; sweeps < 4; sweeps++) await store.sweep(new Set());
    await Promise.all(starts);
    expect(await readdir(place)).toEqual([]);
  });

  test("unfinished writes of a crash are swept", async () => {
    await writeFile(join(place, "i1.7.unfinished"), "half");
    await writeFile(join(place, "index-x.0.json.unfinished"), "half");
    await store.sweep(new Set());
    expect(await readdir(place)).toEqual([]);
  });

  test("what a crash left of a segment is swept by whoever writes it next, and nobody's write fails by that", async () => {
    await writeFile(join(place, "index-x.json-1.unfinished"), "half");
    await writeFile(join(place, "index-xy.json-1.unfinished"), "another's");
    await Promise.all(Array.from({ length: 40 }, () => store.putSegment("x", bytes("whole"))));
    expect((await readdir(place)).toSorted()).toEqual(["index-x.json", "index-xy.json-1.unfinished"]);
    expect(new TextDecoder().decode((await store.getSegment("x"))!)).toBe("whole");
  });

  test("a version that two names lead to is one version: a crash between link and unlink loses nothing", async () => {
    await writeFile(join(place, "i1.0.unfinished"), "one");
    await link(join(place, "i1.0.unfinished"), join(place, "coverage-000000000001.json"));
    expect(await store.write(null, bytes("other"), "t")).toBe("lost");
    await store.sweep(new Set());
    expect(new TextDecoder().decode((await store.read())?.bytes)).toBe("one");
  });

  test("a file where the folder belongs is said to be one", async () => {
    await writeFile(join(root, "file"), "");
    const f = await failure(new LocalVersionedStore(join(root, "file", "x")).prepare());
    expect([f.code, f.kind, f.at]).toEqual(["coverage.denied", "environment", join(root, "file", "x")]);
  });

  test("a version that is a folder is an error that is named, not an endless loop", async () => {
    await mkdir(join(place, "coverage-000000000001.json"));
    const f = await failure(store.read());
    expect([f.code, f.at]).toEqual(["coverage.unavailable", place]);
  });

  test("a link that leads nowhere is not read for ever", async () => {
    await symlink(join(root, "nowhere"), join(place, "coverage-000000000001.json"));
    const f = await failure(store.read());
    expect(f.code).toBe("coverage.unavailable");
  });

  test("a folder that is gone fails every call with its name", async () => {
    await store.write(null, bytes("1"), "t");
    await remove(place);
    const calls = [
      () => store.write(1, bytes("2"), "t"),
      () => store.putSegment("x", bytes("y")),
      () => store.sweep(new Set()),
    ];
    for (const call of calls) {
      const f = await failure(call());
      expect([f.code, f.at?.startsWith(place)]).toEqual(["coverage.unavailable", true]);
    }
  });

  test("a folder without rights is denied, also at the start", async () => {
    await chmod(place, 0o500);
    await asNobody(async () => {
      for (const call of [
        () => store.write(null, bytes("1"), "t"),
        () => store.prepare(),
        () => store.putSegment("x", bytes("y")),
      ]) {
        const f = await failure(call());
        expect([f.code, f.kind]).toEqual(["coverage.denied", "environment"]);
      }
    });
    await chmod(place, 0o700);
  });
});
