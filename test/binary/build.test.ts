/**
 * Goal: a built binary needs glibc alone, carries its libraries, finds its Worker, and takes nothing from the
 * folder it is started in. Method: the real build script on a stand-in program (standin/), run in a bare root.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type BuiltBinary, buildBinary } from "../../scripts/build-binary.ts";
import { BareRoot, GLIBC_PARTS } from "./bare-root.ts";

const room = mkdtempSync(join(tmpdir(), "twg-build-"));
const bare = new BareRoot();
const refused = BareRoot.refused();
if (refused !== null) console.error(`SKIP: no bare root here: ${refused}`);
const inBareRoot = test.skipIf(refused !== null);
let built: BuiltBinary;
let inside = "";

beforeAll(async () => {
  const root = resolve(import.meta.dir, "standin");
  built = await buildBinary({
    root,
    entrypoints: ["src/main.ts", "src/lane.ts"],
    outfile: join(room, "standin"),
  });
  inside = bare.add(built.outfile);
}, 60_000);

afterAll(() => {
  rmSync(room, { recursive: true, force: true });
  bare.remove();
});

function run(args: string[], options: { cwd?: string; env?: Record<string, string> } = {}): string {
  const cwd = options.cwd ?? room;
  const env = { PATH: "/usr/bin:/bin", HOME: room, ...options.env };
  const done = Bun.spawnSync([built.outfile, ...args], { cwd, env, stderr: "pipe", timeout: 60_000 });
  return done.stdout.toString() + done.stderr.toString();
}

test("asks the loader for nothing but glibc", () => {
  const out = Bun.spawnSync(["ldd", built.outfile]).stdout.toString();
  const names = out.split("\n").flatMap((line) => line.match(/([\w+.-]+\.so[\w.]*)/)?.[1] ?? []);
  expect(names.filter((n) => n.startsWith("libc."))).toHaveLength(1); // ldd did list something
  const foreign = names.filter((n) => !GLIBC_PARTS.includes(n) && n !== "linux-vdso.so.1");
  expect(foreign).toEqual([]);
});

test("reports what it embedded, and the file is what it says", async () => {
  expect(built.natives.map((n) => n.name)).toEqual(["libgcc_s.so.1", "libstdc++.so.6", "libduckdb.so"]);
  const bytes = await Bun.file(built.outfile).bytes();
  expect(built.bytes).toBe(bytes.length);
  expect(built.sha256).toBe(new Bun.CryptoHasher("sha256").update(bytes).digest("hex"));
});

test("holds nothing of where it was built, so another checkout gives the same bytes", async () => {
  const bytes = Buffer.from(await Bun.file(built.outfile).arrayBuffer());
  const repo = resolve(import.meta.dir, "../..");
  expect(bytes.includes("/$bunfs/root/")).toBeTrue(); // paths would be found
  expect([repo, room].filter((path) => bytes.includes(path))).toEqual([]);
});

test("a missing entry point is named", async () => {
  const build = buildBinary({ root: room, entrypoints: ["src/none.ts"], outfile: join(room, "x") });
  await expect(build).rejects.toThrow(/entry point .*src\/none\.ts is missing/);
});

test("unpacks nothing until a library is needed", () => {
  const cache = join(room, "lazy");
  expect(run(["--version"], { env: { XDG_CACHE_HOME: cache } })).toBe("standin 0.0.0\n");
  expect(existsSync(cache)).toBeFalse();
  expect(run(["duckdb"], { env: { XDG_CACHE_HOME: cache } })).toStartWith(`duckdb v1.5.6 from ${cache}/twg/`);
  expect(readdirSync(join(cache, "twg"))).toHaveLength(3);
});

test("takes neither .env nor bunfig.toml from the folder it is started in", () => {
  const cwd = mkdtempSync(join(room, "planted-"));
  writeFileSync(join(cwd, ".env"), "PLANTED=yes\n");
  writeFileSync(join(cwd, "bunfig.toml"), 'preload = ["./evil.ts"]\n');
  writeFileSync(join(cwd, "evil.ts"), 'console.log("EVIL RAN");\n');
  expect(run(["env"], { cwd })).toBe("PLANTED=\n");
});

inBareRoot.each([
  ["--version", /^standin 0\.0\.0$/],
  ["crc", /^crc32c e3069283$/], // CRC-32C of "123456789", the check value of its catalogue entry
  ["duckdb", /^duckdb v1\.5\.6 from \/cache\/twg\//],
  ["worker", /^worker has duckdb v1\.5\.6$/],
])("runs where there is glibc and nothing else: %s", (command, expected) => {
  const { code, stdout, stderr } = bare.run([inside, command], { XDG_CACHE_HOME: "/cache" });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.trim()).toMatch(expected);
});
