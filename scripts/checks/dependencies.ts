/**
 * What comes with the dependencies: licences, native code, install scripts, known advisories. Lists what is allowed
 * by name; anything new fails until a reviewed change names it.
 */
import { join } from "node:path";
import { Glob } from "bun";
import { type Check, output, readJson, readText } from "./check.ts";

export interface Package {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  /** Names of scripts that a package manager runs on installation. */
  readonly installScripts: readonly string[];
  readonly folder: string;
}

interface PackageJson {
  readonly name?: string;
  readonly version?: string;
  readonly license?: string | { readonly type?: string };
  readonly licenses?: readonly { readonly type?: string }[];
  readonly scripts?: Readonly<Record<string, string>>;
}

export async function installedPackages(repo: string): Promise<Package[]> {
  const packages: Package[] = [];
  const manifests = new Glob("node_modules/**/package.json");
  for await (const file of manifests.scan({ cwd: repo, dot: true, followSymlinks: false })) {
    // A package's own root, not a package.json somewhere inside it.
    if (!/(^|\/)node_modules\/(@[^/]+\/)?[^/]+\/package\.json$/.test(file)) continue;
    const manifest = await readJson<PackageJson>(repo, file);
    if (manifest.name === undefined || manifest.version === undefined) continue;
    packages.push({
      name: manifest.name,
      version: manifest.version,
      license: licenceOf(manifest),
      installScripts: ["preinstall", "install", "postinstall"].filter(
        (s) => manifest.scripts?.[s] !== undefined,
      ),
      folder: file.slice(0, -"/package.json".length),
    });
  }
  return packages.sort((a, b) => a.name.localeCompare(b.name));
}

function licenceOf(manifest: PackageJson): string {
  if (typeof manifest.license === "string") return manifest.license;
  return manifest.license?.type ?? manifest.licenses?.map((l) => l.type ?? "?").join(" OR ") ?? "";
}

/** Permissive licences that ask for no more than their notice. */
const PERMISSIVE = new Set([
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "CC0-1.0",
  "ISC",
  "MIT",
  "MIT-0",
  "Python-2.0",
  "Unlicense",
  "Zlib",
]);

/** SPDX expression: every part of an AND, one part of an OR. */
export function isPermissive(expression: string): boolean {
  const plain = expression.trim().replace(/^\((.*)\)$/, "$1");
  if (plain.includes("(")) return false;
  return plain
    .split(/\s+OR\s+/)
    .some((choice) => choice.split(/\s+AND\s+/).every((one) => PERMISSIVE.has(one)));
}

export const licences: Check = {
  name: "licences of dependencies",
  async run(repo) {
    const packages = await installedPackages(repo);
    if (packages.length === 0) return { problems: ["no package is installed"] };
    const bad = packages.filter((p) => !isPermissive(p.license));
    return {
      problems: bad.map(
        (p) => `${p.name}@${p.version}: licence "${p.license}" is not on the permissive list`,
      ),
    };
  },
};

export interface Purity {
  /** Installed packages that hold native code or WebAssembly, each with its reason. */
  readonly native: Readonly<Record<string, string>>;
  /** Families of packages for other platforms, by prefix: in the lock file, never installed here. */
  readonly platforms: Readonly<Record<string, string>>;
  /** Files of the build machine that go into the binary. */
  readonly embedded: Readonly<Record<string, string>>;
  /** Packages whose install scripts may exist (Bun runs none of them). */
  readonly installScripts: Readonly<Record<string, string>>;
}

/** scripts/purity.json names every piece of code that is not JavaScript. */
export const purity: Check = {
  name: "purity list",
  async run(repo) {
    const allowed = await readJson<Purity>(repo, "scripts/purity.json");
    const packages = await installedPackages(repo);
    const found = new Map<string, string>();
    for (const p of packages) {
      const why = await impurity(repo, p.folder);
      if (why !== null) found.set(p.name, why);
    }
    const build = await readText(repo, "scripts/build/parts.ts");
    const pins = await readText(repo, "scripts/build/pins/bun.lock");
    const lock = await readText(repo, "bun.lock");
    return {
      problems: [
        ...[...found]
          .filter(([n]) => !(n in allowed.native))
          .map(([n, why]) => `${n} holds ${why}: not on the list`),
        ...Object.keys(allowed.native)
          .filter((n) => !found.has(n) && (!lock.includes(`"${n}@`) || packages.some((p) => p.name === n)))
          .map((n) => `${n} is on the purity list but is gone or holds nothing native: take it off`),
        ...packages
          .filter((p) => p.installScripts.length > 0 && !(p.name in allowed.installScripts))
          .map((p) => `${p.name} has install scripts (${p.installScripts.join(", ")}): not on the list`),
        ...[...platformPackages(lock), ...platformPackages(pins)]
          .filter(
            (n) => !(n in allowed.native) && !Object.keys(allowed.platforms).some((f) => n.startsWith(f)),
          )
          .map((n) => `${n} is built for one platform: neither it nor its family is on the list`),
        ...[...build.matchAll(/"([^"/]+\.so[^"/]*)"/g)]
          .map((m) => m[1]!)
          .filter((n) => !(n in allowed.embedded))
          .map((n) => `scripts/build/parts.ts embeds ${n}: not on the list`),
      ],
    };
  },
};

/** Names in bun.lock that carry an `os` or `cpu` restriction. */
export function platformPackages(lock: string): string[] {
  return [
    ...lock.matchAll(/^ {4}"[^"]+": \["((?:@[^/"]+\/)?[^@"]+)@[^"]*", "[^"]*", \{[^\n]*"(?:os|cpu)":/gm),
  ].map((m) => m[1]!);
}

const BASE64_WASM = "AGFzbQ"; // "\0asm", the magic number of a WebAssembly module

/** The first sign of native code or WebAssembly in a package's own files, or null. */
async function impurity(repo: string, folder: string): Promise<string | null> {
  const files = new Glob("**/*.{node,so,so.*,dylib,dll,wasm,exe,js,mjs,cjs}");
  for await (const file of files.scan({ cwd: join(repo, folder), dot: true })) {
    if (file.includes("node_modules/")) continue;
    if (!/\.(js|mjs|cjs)$/.test(file)) return file;
    if ((await readText(repo, join(folder, file))).includes(BASE64_WASM)) return `WebAssembly inside ${file}`;
  }
  for (const pattern of ["*", "bin/*"]) {
    for await (const file of new Glob(pattern).scan({ cwd: join(repo, folder) }))
      if (await isElf(join(repo, folder, file))) return `the program ${file}`;
  }
  return null;
}

async function isElf(file: string): Promise<boolean> {
  const head = await Bun.file(file).slice(0, 4).bytes();
  return Buffer.from(head).toString("latin1") === "\x7fELF";
}

interface Advisory {
  readonly id: number;
  readonly title: string;
  readonly severity: string;
  readonly url: string;
}

export const advisories: Check = {
  name: "advisories on dependencies",
  async run(repo) {
    const done = await output([process.execPath, "audit", "--json"], repo);
    const text = done.stdout.trim();
    if (!text.startsWith("{")) {
      const why =
        (done.stderr || done.stdout)
          .trim()
          .split("\n")
          .at(-1)
          ?.replace(/https?:\/\/\S+/g, "the registry") ?? "";
      return { problems: [], notes: [`no advisories could be fetched (${why}): nothing was compared`] };
    }
    return { problems: advisoryProblems(text) };
  },
};

/** `bun audit --json`: package name -> advisories. Low ones are left to the reader of the report. */
export function advisoryProblems(json: string): string[] {
  const report = JSON.parse(json) as Record<string, readonly Advisory[]>;
  return Object.entries(report).flatMap(([name, list]) =>
    list.filter((a) => a.severity !== "low").map((a) => `${name}: ${a.severity}: ${a.title} (${a.url})`),
  );
}
