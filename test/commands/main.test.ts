// Goal: the process itself keeps streams and exit codes apart. Method: run src/main.ts as a child.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { fileWith } from "./fake-cli.ts";

const MAIN = join(import.meta.dir, "../../src/main.ts");

function twg(...argv: string[]) {
  const done = Bun.spawnSync([process.execPath, MAIN, ...argv], { env: { ...process.env, NO_COLOR: "1" } });
  return { code: done.exitCode, out: done.stdout.toString(), err: done.stderr.toString() };
}

test("results on stdout, errors on stderr, exit codes by kind", () => {
  expect(twg("--version")).toMatchObject({ code: 0, err: "" });
  expect(twg("--nonsense")).toMatchObject({ code: 2, out: "" });
  expect(twg("inspect", "parquet", "/does/not/exist")).toMatchObject({ code: 3, out: "" });
  const broken = twg("config", "validate", "-c", fileWith("x = 1\n"));
  expect([broken.code, broken.out]).toEqual([2, ""]);
  expect(broken.err).toContain("config.unknown_key");
});

test("all of a long result arrives through a pipe", () => {
  const { code, out } = twg("config", "schema");
  expect(code).toBe(0);
  expect(out.length).toBeGreaterThan(5000);
  JSON.parse(out);
});

test("a reader that stops early is no failure", () => {
  const command = `"${process.execPath}" "${MAIN}" config schema 2>&1 1>&3 | cat >&2; echo "code \${PIPESTATUS[0]}" >&2`;
  const done = Bun.spawnSync(["bash", "-c", `{ ${command}; } 3>&1 | true`]);
  expect(done.stderr.toString()).toBe("code 0\n");
});

test("what a full disk swallows is a failure of the command, and keeps the exit code of another one", () => {
  const full = (...argv: string[]) => {
    const done = Bun.spawnSync(["bash", "-c", '"$@" >/dev/full', "full", process.execPath, MAIN, ...argv]);
    return { code: done.exitCode, err: done.stderr.toString() };
  };
  for (const argv of [["--version"], ["config", "schema"]]) {
    const { code, err } = full(...argv);
    expect(code).toBe(3);
    expect(err).toContain("cli.output");
  }
  expect(full("--nonsense").code).toBe(2);
});
