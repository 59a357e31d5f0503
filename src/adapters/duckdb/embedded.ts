/**
 * Where libduckdb.so is. In `bun run` it lies in node_modules. In the compiled binary it is embedded together with
 * the C++ runtime that it needs and a bare host lacks; the dynamic loader wants real files, so the three are
 * written once to a private cache folder named by their content, or to anonymous memory where no folder can be
 * used. Nothing happens before the first call: `twg --version` never pays for 70 MB.
 *
 * The order matters. libduckdb.so asks for libstdc++.so.6 and libgcc_s.so.1 by name; the loader is content with
 * libraries of that SONAME that are already in the process, so loading ours first makes the host's unneeded.
 */
import { dlopen, FFIType } from "bun:ffi";
import {
  closeSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  statfsSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asFailure, Failure } from "../../core/failure/failure.ts";
import { NATIVE_FILES, type NativeFile } from "./native-files.ts";

/** A symbol of each library: bun:ffi opens none without naming one. */
const ANCHOR: Readonly<Record<string, string>> = {
  "libgcc_s.so.1": "_Unwind_GetIP",
  "libstdc++.so.6": "__cxa_get_globals",
  "libduckdb.so": "duckdb_library_version",
};

/** Checked in pieces of this size: 70 MB of library must not cost 70 MB of memory at every start. */
const PIECE = 1 << 20;

/** Stays free where a library is put: a small /tmp is for others too, among them the runtime, which unpacks addons there. */
const SPARE_BYTES = 32 << 20;

const HINT = "Set XDG_CACHE_HOME to a folder that this user can write to and execute from";

let loaded: ReadonlyMap<string, string> = new Map();

/**
 * Absolute path of libduckdb.so for `dlopen`; the C++ runtime it needs is in the process when this returns.
 * The first call on a machine may take half a second (it writes 70 MB), later ones some 20 ms a thread.
 * Throws `duckdb.library` (environment) if the library can be had nowhere.
 */
export function libduckdbPath(): string {
  return nativePath("libduckdb.so") ?? packagePath();
}

/**
 * Puts libgcc_s into the process, which native addons (CRC32C) ask for by name. Call it before the first
 * `require` of one; does nothing in `bun run` and never throws: the addon's own loading says if the host lacks it.
 * Cheap: it does not touch libduckdb.
 */
export function loadRuntime(): void {
  nativePath("libgcc_s.so.1");
}

function nativePath(name: string): string | null {
  const files = NATIVE_FILES.slice(0, NATIVE_FILES.findIndex((f) => f.name === name) + 1);
  loaded = loadAll(files, loaded, (file) =>
    materialise(file, cacheFolders(process.env), (at) => open(file.name, at)),
  );
  return loaded.get(name) ?? null;
}

/**
 * Provides `files` in order, those of `before` excepted. The C++ runtime may fail to load (it asks for a glibc as new as
 * the build machine's) on a host whose own would do: only libduckdb must succeed.
 */
export function loadAll(
  files: readonly NativeFile[],
  before: ReadonlyMap<string, string>,
  provide: (file: NativeFile) => string,
): ReadonlyMap<string, string> {
  const paths = new Map(before);
  const reasons: string[] = [];
  for (const file of files) {
    if (paths.has(file.name)) continue;
    try {
      paths.set(file.name, provide(file));
    } catch (e) {
      const failure = asFailure(e, "duckdb.library");
      reasons.push(failure.message);
      if (file.name === "libduckdb.so")
        throw new Failure("duckdb.library", reasons.join("; "), { hint: failure.hint ?? HINT, cause: e });
    }
  }
  return paths;
}

/** Proves that the loader takes the file: a folder on a `noexec` mount can be written to and is of no use. Never closed. */
function open(name: string, path: string): void {
  const anchor = ANCHOR[name];
  if (anchor !== undefined) dlopen(path, { [anchor]: { args: [], returns: FFIType.ptr } });
}

/** Package managers install the one that fits the machine. */
function packagePath(): string {
  const { resolve } = createRequire(import.meta.url);
  const name = `@duckdb/node-bindings-linux-${process.arch}`;
  const causes: unknown[] = [];
  for (const libc of ["", "-musl"]) {
    try {
      return resolve(`${name}${libc}/libduckdb.so`);
    } catch (e) {
      causes.push(e);
    }
  }
  throw new Failure("duckdb.library", `${name} is not installed`, {
    hint: "Run scripts/setup.sh",
    cause: causes[0],
  });
}

/** Folders to try, best first. Only absolute ones: a relative cache would follow the working directory. */
export function cacheFolders(env: Readonly<Record<string, string | undefined>>): string[] {
  const absolute = (path: string | undefined): path is string => path?.startsWith("/") ?? false;
  // systemd's CacheDirectory= is a list, and ours already; the others are shared between programs.
  const given = env["CACHE_DIRECTORY"]?.split(":")[0];
  const home = env["HOME"];
  const shared = [env["XDG_CACHE_HOME"], absolute(home) ? join(home, ".cache") : undefined, "/var/cache"];
  const folders = [given, ...shared.filter(absolute).map((c) => join(c, "twg"))].filter(absolute);
  // The temporary folder is shared between users, so the name there holds ours.
  return [...new Set(folders), join(tmpdir(), `twg-${uid()}`)];
}

/**
 * A path whose content is exactly `file` and which `accept` takes without throwing: in the first folder that can
 * be used, else in anonymous memory.
 */
export function materialise(
  file: NativeFile,
  folders: readonly string[],
  accept: (path: string) => void,
): string {
  const places = [...folders.map((folder) => () => inFolder(file, folder)), () => inMemory(file)];
  const reasons: string[] = [];
  for (const place of places) {
    try {
      const path = place();
      accept(path);
      return path;
    } catch (e) {
      reasons.push(e instanceof Error ? e.message : String(e));
    }
  }
  throw new Failure("duckdb.library", `${file.name} can be unpacked nowhere: ${reasons.join("; ")}`, {
    hint: HINT,
  });
}

function inFolder(file: NativeFile, folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stat = lstatSync(folder);
  // Code is loaded from here: a folder that somebody else owns or may write to is as good as their code.
  if (!stat.isDirectory() || stat.uid !== uid() || (stat.mode & 0o022) !== 0)
    throw new Error(`${folder} is not a folder that only this user can write to`);
  const path = join(folder, `${file.sha256.slice(0, 32)}-${file.name}`);
  if (holds(path, file)) return path;
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize < file.size + SPARE_BYTES) throw new Error(`${folder} has too little room`);
  const part = `${path}.${process.pid}.${crypto.randomUUID()}`;
  try {
    using out = openFile(part, "wx", 0o500);
    copyChecked(file, out.fd);
    Bun.gc(true);
    fsyncSync(out.fd);
    renameSync(part, path);
  } catch (e) {
    unlinkQuietly(part);
    throw e;
  }
  using parent = openFile(folder, "r");
  fsyncSync(parent.fd);
  return path;
}

/** True only for a regular file of ours with the very content: a torn or changed file is written anew. */
function holds(path: string, file: NativeFile): boolean {
  try {
    using input = openFile(path, "r");
    const stat = fstatSync(input.fd);
    if (!stat.isFile() || stat.size !== file.size || stat.uid !== uid()) return false;
    return quickHash(input.fd) === file.quick;
  } catch {
    return false;
  }
}

/** The virtual file system inside the binary knows whole reads only, so unpacking costs the size once, and is then given back. */
function copyChecked(file: NativeFile, out: number): void {
  const bytes = readFileSync(file.path);
  const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
  if (bytes.length !== file.size || sha256 !== file.sha256)
    throw new Error(`the copy of ${file.name} inside this binary is damaged`);
  let done = 0;
  while (done < bytes.length) done += writeSync(out, bytes, done);
}

/** A file without a folder: memfd_create(2). The descriptor stays open for as long as the process. */
function inMemory(file: NativeFile): string {
  // musl answers to this name too: it takes every `libc.` for itself.
  const libc = dlopen("libc.so.6", {
    memfd_create: { args: [FFIType.cstring, FFIType.u32], returns: FFIType.i32 },
  });
  const MFD_CLOEXEC = 1; // linux/memfd.h
  const fd = libc.symbols.memfd_create(Buffer.from(`${file.name}\0`), MFD_CLOEXEC);
  if (fd < 0) throw new Error("memfd_create failed");
  copyChecked(file, fd);
  return `/proc/self/fd/${fd}`;
}

/** xxHash64 of the file, a piece at a time, each seeded with the hash before: some 10 GB/s, against damage, not malice. */
export function quickHash(fd: number): string {
  let hash = 0n;
  for (const piece of pieces(fd)) hash = Bun.hash.xxHash64(piece, hash);
  return hash.toString(16);
}

/** The content in order; every piece lies in the same buffer. */
function* pieces(fd: number): Generator<Uint8Array> {
  const buffer = new Uint8Array(PIECE);
  for (let at = 0; ; ) {
    let filled = 0;
    // Whole pieces whatever the kernel returns: the hash depends on where they end.
    while (filled < PIECE) {
      const n = readSync(fd, buffer, filled, PIECE - filled, at + filled);
      if (n === 0) break;
      filled += n;
    }
    if (filled === 0) return;
    yield buffer.subarray(0, filled);
    at += filled;
  }
}

interface OpenFile {
  readonly fd: number;
  [Symbol.dispose](): void;
}

function openFile(path: string, flags: string, mode?: number): OpenFile {
  const fd = openSync(path, flags, mode);
  return { fd, [Symbol.dispose]: () => closeSync(fd) };
}

function unlinkQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It was never made.
  }
}

function uid(): number {
  return process.getuid?.() ?? 0;
}
