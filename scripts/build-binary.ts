/**
 * Builds `twg` as one file: the program as bytecode, libduckdb and the C++ runtime that it needs.
 *
 *   bun scripts/build-binary.ts [--out dist/twg]            for this machine
 *   bun scripts/build-binary.ts --all [--dir dist]          for all: dist/twg-linux-x64, ..., and dist/SHA256SUMS
 *   bun scripts/build-binary.ts --target linux-arm64 [...]  for some
 *     --twice   build each again and compare: exits 1 if the bytes differ
 *     --json    one line of JSON at the end: {targets: [{target, file, bytes, sha256, natives, skipped}]}
 *
 * A target whose parts cannot be had here is skipped with a loud line; under --strict that is a failure.
 * What the results need of a host: docs/decisions/0003-static-linking.md and 0012-binaries.md.
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { quickHash } from "../src/adapters/duckdb/embedded.ts";
import type { NativeFile } from "../src/adapters/duckdb/native-files.ts";
import { type Parts, partsOf, Unavailable } from "./build/parts.ts";
import { hostTarget, TARGETS, type Target, targetNamed } from "./build/targets.ts";

const repo = resolve(import.meta.dir, "..");

export interface BuildOptions {
  /** Folder from which entry points are named; a Worker is addressed as `./src/lane.ts` below it. */
  readonly root: string;
  /** The first one is run. Relative to `root`. */
  readonly entrypoints: readonly string[];
  readonly outfile: string;
  /** Without it: this machine. */
  readonly target?: Target;
}

export interface BuiltBinary {
  readonly outfile: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly natives: readonly NativeFile[];
}

/**
 * Throws an Error with a message for people if a library or an entry point is missing or the bundler fails, and
 * `Unavailable` if parts for another machine cannot be fetched.
 */
export async function buildBinary(options: BuildOptions): Promise<BuiltBinary> {
  const entrypoints = options.entrypoints.map((e) => join(options.root, e));
  for (const e of entrypoints) if (!existsSync(e)) throw new Error(`entry point ${e} is missing`);
  const target = options.target ?? hostTarget();
  const parts = await partsOf(target);
  const natives = await Promise.all(parts.libraries.map(describe));
  mkdirSync(dirname(options.outfile), { recursive: true });
  // Compiled beside its place, then moved: a running twg keeps its old file. The path becomes part of the content,
  // so it holds no process id or time.
  const staging = join(dirname(options.outfile), `.build-${basename(options.outfile)}`);
  const built = join(staging, "twg");
  try {
    const result = await Bun.build({
      entrypoints,
      root: options.root,
      target: "bun",
      format: "esm",
      minify: true,
      splitting: true,
      bytecode: true,
      sourcemap: "none",
      define: { "process.env.NODE_ENV": JSON.stringify("production") },
      plugins: [embedNatives(natives), embedCrc32(parts.crc32)],
      compile: {
        outfile: built,
        autoloadDotenv: false,
        autoloadBunfig: false,
        ...runtimeOf(target, parts),
      },
    });
    for (const log of result.logs) console.error(String(log));
    if (!result.success) throw new Error("the bundler failed");
    renameSync(built, options.outfile);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  const bytes = statSync(options.outfile).size;
  return { outfile: options.outfile, bytes, sha256: await sha256(options.outfile), natives };
}

/** With the runtime given, Bun fetches none by itself: what is put in is what the lock file pins. */
function runtimeOf(
  target: Target,
  parts: Parts,
): { target?: Bun.Build.CompileTarget; executablePath?: string } {
  return parts.runtime === null ? {} : { target: target.bunTarget, executablePath: parts.runtime };
}

/** Replaces src/adapters/duckdb/native-files.ts by one that names the embedded files. */
function embedNatives(natives: readonly NativeFile[]): Bun.BunPlugin {
  const lines = natives.map(
    (n, i) => `import file${i} from ${JSON.stringify(n.path)} with { type: "file" };`,
  );
  const entries = natives.map((n, i) => `{ ...${JSON.stringify({ ...n, path: "" })}, path: file${i} }`);
  const contents = `${lines.join("\n")}\nexport const NATIVE_FILES = [${entries.join(", ")}];\n`;
  return {
    name: "embed-natives",
    setup(build) {
      build.onLoad({ filter: /adapters\/duckdb\/native-files\.ts$/ }, () => ({ contents, loader: "js" }));
    },
  };
}

/** The package's own entry looks at the host to choose a file, at run time and among those of the machine that built. */
function embedCrc32(addon: string): Bun.BunPlugin {
  // Named one by one, or an import by name finds nothing.
  const contents = `const addon = require(${JSON.stringify(addon)});\nexports.crc32c = addon.crc32c;\nexports.crc32 = addon.crc32;\n`;
  return {
    name: "embed-crc32",
    setup(build) {
      build.onLoad({ filter: /@node-rs\/crc32\/index\.js$/ }, () => ({ contents, loader: "js" }));
    },
  };
}

async function describe(library: { name: string; path: string }): Promise<NativeFile> {
  const fd = openSync(library.path, "r");
  const quick = quickHash(fd);
  closeSync(fd);
  return { ...library, size: statSync(library.path).size, sha256: await sha256(library.path), quick };
}

async function sha256(path: string): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  for await (const piece of Bun.file(path).stream()) hash.update(piece);
  return hash.digest("hex");
}

interface Outcome {
  readonly target: string;
  readonly file: string;
  readonly built: BuiltBinary | null;
  /** Why there is none. */
  readonly skipped: string | null;
  /** Of a second build; null if there was none. */
  readonly again: string | null;
}

async function outcomeOf(target: Target, outfile: string, twice: boolean): Promise<Outcome> {
  const file = relative(repo, outfile);
  const build = (to: string) =>
    buildBinary({ root: repo, entrypoints: ["src/main.ts", "src/lane.ts"], outfile: to, target });
  try {
    const built = await build(outfile);
    if (!twice) return { target: target.name, file, built, skipped: null, again: null };
    const second = `${outfile}.again`;
    const again = (await build(second)).sha256;
    rmSync(second);
    return { target: target.name, file, built, skipped: null, again };
  } catch (e) {
    if (!(e instanceof Unavailable)) throw e;
    return { target: target.name, file, built: null, skipped: e.message, again: null };
  }
}

const MB = 1e6;

function printOutcome({ target, file, built, skipped, again }: Outcome, natives: boolean): void {
  if (built === null) {
    console.log(`SKIP  ${target.padEnd(18)} ${skipped}`);
    return;
  }
  const line = (name: string, bytes: number, sha: string) =>
    console.log(`${name.padEnd(24)} ${(bytes / MB).toFixed(1).padStart(6)} MB  sha256 ${sha}`);
  if (natives) for (const n of built.natives) line(n.name, n.size, n.sha256);
  line(file, built.bytes, built.sha256);
  if (again !== null && again !== built.sha256) line("  built again: DIFFERS", built.bytes, again);
}

function jsonOf({ target, file, built, skipped, again }: Outcome): object {
  if (built === null) return { target, file, skipped };
  const natives = built.natives.map((n) => ({ name: n.name, bytes: n.size, sha256: n.sha256 }));
  const reproduced = again === null ? null : again === built.sha256;
  return { target, file, bytes: built.bytes, sha256: built.sha256, natives, reproduced, skipped: null };
}

/** 0 if everything was built and, where that was asked, built twice the same. */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      out: { type: "string", default: "dist/twg" },
      dir: { type: "string", default: "dist" },
      all: { type: "boolean", default: false },
      target: { type: "string", multiple: true, default: [] },
      twice: { type: "boolean", default: false },
      strict: { type: "boolean", default: process.env["TWG_STRICT"] === "1" },
      json: { type: "boolean", default: false },
    },
  });
  const targets = values.all ? TARGETS : values.target.map(targetNamed);
  const single = targets.length === 0;
  const outcomes: Outcome[] = [];
  for (const target of single ? [hostTarget()] : targets) {
    const out = single ? values.out : join(values.dir, `twg-${target.name}`);
    const outcome = await outcomeOf(target, resolve(repo, out), values.twice);
    printOutcome(outcome, single);
    outcomes.push(outcome);
  }
  if (!single) writeSums(resolve(repo, values.dir), outcomes);
  if (values.json) console.log(JSON.stringify({ targets: outcomes.map(jsonOf) }));
  const skips = outcomes.filter((o) => o.skipped !== null).length;
  const differing = outcomes.filter((o) => o.again !== null && o.again !== o.built?.sha256).length;
  if (differing > 0)
    console.log(`${differing} of ${outcomes.length} targets did not come out the same twice`);
  return differing > 0 || (skips > 0 && (values.strict || single)) ? 1 : 0;
}

/** In the form that `sha256sum --check` reads. */
function writeSums(folder: string, outcomes: readonly Outcome[]): void {
  const lines = outcomes.flatMap((o) =>
    o.built === null ? [] : [`${o.built.sha256}  ${basename(o.file)}\n`],
  );
  writeFileSync(join(folder, "SHA256SUMS"), lines.join(""));
}

if (import.meta.main) {
  try {
    process.exitCode = await main();
  } catch (e) {
    console.error(`build-binary: ${e instanceof Error ? e.message : String(e)}`);
    process.exit(1);
  }
}
