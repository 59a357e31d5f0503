/**
 * Goal: the twg that users get starts in a bare root and carries everything. Method: the very file that
 * scripts/test.sh built (TWG_BINARY), or a build made here.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import packageJson from "../../package.json";
import { buildBinary } from "../../scripts/build-binary.ts";
import { BareRoot } from "./bare-root.ts";

const repo = resolve(import.meta.dir, "../..");
const room = mkdtempSync(join(tmpdir(), "twg-binary-"));
const bare = new BareRoot();
const refused = BareRoot.refused();
let twg = process.env.TWG_BINARY ?? "";

beforeAll(async () => {
  if (twg === "" || !existsSync(twg)) {
    twg = join(room, "twg");
    await buildBinary({ root: repo, entrypoints: ["src/main.ts", "src/lane.ts"], outfile: twg });
  }
}, 60_000);

afterAll(() => {
  rmSync(room, { recursive: true, force: true });
  bare.remove();
});

test("--version prints the version of package.json and nothing on stderr", () => {
  const done = Bun.spawnSync([twg, "--version"], { stderr: "pipe", timeout: 60_000 });
  expect(done.stdout.toString()).toContain(packageJson.version);
  expect(done.stderr.toString()).toBe("");
  expect(done.exitCode).toBe(0);
});

test.skipIf(refused !== null)("--version and --help answer where there is glibc and nothing else", () => {
  const inside = bare.add(twg);
  expect(bare.run([inside, "--version"]).stdout).toContain(packageJson.version);
  const help = bare.run([inside, "--help"]);
  expect(help.code).toBe(0);
  expect(help.stdout).toContain("stream");
});
