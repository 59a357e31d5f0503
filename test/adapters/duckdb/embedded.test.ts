/**
 * Goal: the unpacked library is exactly the embedded one or nothing at all. Method: a small file stands for the
 * library, in folders of each kind that a host may offer. The loading itself is tested with a real binary in
 * test/binary.
 */
import { afterAll, expect, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  cacheFolders,
  libduckdbPath,
  loadAll,
  loadRuntime,
  materialise,
  quickHash,
} from "../../../src/adapters/duckdb/embedded.ts";
import type { NativeFile } from "../../../src/adapters/duckdb/native-files.ts";
import { Failure } from "../../../src/core/failure/failure.ts";

const room = mkdtempSync(join(tmpdir(), "twg-embedded-"));
afterAll(() => rmSync(room, { recursive: true, force: true }));

// Three pieces and a bit, so that the piecewise hash is used in full.
const content = new Uint8Array(3 * (1 << 20) + 77).map((_, i) => (i * 31) & 0xff);
const source = join(room, "source.so");
writeFileSync(source, content);

const file: NativeFile = {
  name: "lib.so",
  path: source,
  size: content.length,
  sha256: new Bun.CryptoHasher("sha256").update(content).digest("hex"),
  quick: hashOf(source),
};

function hashOf(path: string): string {
  const fd = openSync(path, "r");
  try {
    return quickHash(fd);
  } finally {
    closeSync(fd);
  }
}

let folders = 0;
const freshFolder = () => join(room, `cache-${folders++}`, "twg");
const anything = () => {};
const same = (path: string) => expect(Bun.hash(readFileSync(path))).toBe(Bun.hash(content));

test("unpacks into a private folder under a name made of the content", () => {
  const folder = freshFolder();
  const path = materialise(file, [folder], anything);
  expect(path).toBe(join(folder, `${file.sha256.slice(0, 32)}-lib.so`));
  same(path);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(statSync(path).mode & 0o777).toBe(0o500);
  expect(readdirSync(folder)).toHaveLength(1); // no part file stays
});

test("an intact copy is used again, not written again", () => {
  const folder = freshFolder();
  const first = materialise(file, [folder], anything);
  const inode = statSync(first).ino;
  expect(materialise(file, [folder], anything)).toBe(first);
  expect(statSync(first).ino).toBe(inode);
});

test.each([
  ["one changed byte", (b: Uint8Array) => b.with(2_000_000, b[2_000_000]! ^ 1)],
  ["cut short", (b: Uint8Array) => b.slice(0, 1000)],
  ["empty", () => new Uint8Array(0)],
])("a damaged copy is replaced: %s", (_name, damage) => {
  const folder = freshFolder();
  const path = materialise(file, [folder], anything);
  chmodSync(path, 0o700);
  writeFileSync(path, damage(content));
  expect(materialise(file, [folder], anything)).toBe(path);
  same(path);
});

test("a folder that others may write to is passed over", () => {
  const open = freshFolder();
  mkdirSync(open, { recursive: true });
  chmodSync(open, 0o777);
  const next = freshFolder();
  expect(materialise(file, [open, next], anything)).toStartWith(next);
  expect(readdirSync(open)).toHaveLength(0);
});

test("a folder that cannot be made is passed over", () => {
  const next = freshFolder();
  expect(materialise(file, [join(source, "below-a-file"), next], anything)).toStartWith(next);
});

test("a place whose file the loader refuses (a noexec mount) is passed over, down to anonymous memory", () => {
  const noexec = freshFolder();
  const path = materialise(file, [noexec], (at) => {
    if (at.startsWith(noexec)) throw new Error("failed to map segment from shared object");
  });
  expect(path).toMatch(/^\/proc\/self\/fd\/\d+$/);
  same(path);
});

test("a damaged copy inside the binary is never handed out", () => {
  const folder = freshFolder();
  const wrong = { ...file, sha256: "0".repeat(64) };
  const attempt = () => materialise(wrong, [folder], anything);
  expect(attempt).toThrow(Failure);
  expect(attempt).toThrow(/lib\.so can be unpacked nowhere: .*damaged/);
  expect(readdirSync(folder)).toHaveLength(0);
});

const named = (name: string): NativeFile => ({ ...file, name });
const THREE = ["libgcc_s.so.1", "libstdc++.so.6", "libduckdb.so"].map(named);

test("libraries are provided in order, each once", () => {
  const asked: string[] = [];
  const provide = (f: NativeFile) => {
    asked.push(f.name);
    return `/x/${f.name}`;
  };
  const first = loadAll(THREE.slice(0, 1), new Map(), provide);
  expect([...first]).toEqual([["libgcc_s.so.1", "/x/libgcc_s.so.1"]]);
  expect(loadAll(THREE, first, provide).get("libduckdb.so")).toBe("/x/libduckdb.so");
  expect(asked).toEqual(THREE.map((f) => f.name));
});

test("a C++ runtime that this host's glibc is too old for is left to the host", () => {
  const provide = (f: NativeFile) => {
    if (f.name !== "libduckdb.so") throw new Error(`${f.name}: version GLIBC_9 not found`);
    return "/x";
  };
  expect([...loadAll(THREE, new Map(), provide)]).toEqual([["libduckdb.so", "/x"]]);
});

test("where libduckdb cannot be loaded, every reason is told", () => {
  const provide = (f: NativeFile): string => {
    throw new Error(`no ${f.name}`);
  };
  expect(() => loadAll(THREE, new Map(), provide)).toThrow(
    "no libgcc_s.so.1; no libstdc++.so.6; no libduckdb.so",
  );
});

test("cache folders: systemd's, then XDG, home, system, temporary; relative and empty ones never", () => {
  const uid = process.getuid!();
  const last = join(tmpdir(), `twg-${uid}`);
  expect(cacheFolders({ CACHE_DIRECTORY: "/c/twg:/d", XDG_CACHE_HOME: "/x", HOME: "/h" })).toEqual([
    "/c/twg",
    "/x/twg",
    "/h/.cache/twg",
    "/var/cache/twg",
    last,
  ]);
  expect(cacheFolders({ XDG_CACHE_HOME: "cache", HOME: "", CACHE_DIRECTORY: "" })).toEqual([
    "/var/cache/twg",
    last,
  ]);
});

test("in the source tree the library of node_modules is used as it lies", () => {
  loadRuntime();
  const path = libduckdbPath();
  expect(path).toMatch(/node_modules\/@duckdb\/node-bindings-linux-[a-z0-9-]+\/libduckdb\.so$/);
  expect(existsSync(path)).toBeTrue();
});
