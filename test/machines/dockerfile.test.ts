/** Goal: the Dockerfile has no fault that is known of Dockerfiles. Method: hadolint, where it can be had, else a loud skip. */
import { expect, test } from "bun:test";
import { join, resolve } from "node:path";

const repo = resolve(import.meta.dir, "../..");
const folder = join(repo, ".cache/hadolint");
const need = `. scripts/lib/need.sh && need_python "$1" test/machines/requirements.txt`;
const installed = Bun.spawnSync(["bash", "-c", need, "bash", folder], { cwd: repo, stderr: "pipe" });
const strict = process.env.TWG_STRICT === "1";
if (!installed.success)
  console.error(`SKIP no hadolint: ${installed.stderr.toString().trim().split("\n").at(-1)}`);

test.skipIf(!installed.success && !strict)("hadolint finds nothing, and finds what is wrong", () => {
  const lint = (file: string, input = "") =>
    Bun.spawnSync([join(folder, "bin/hadolint"), "--no-color", file], {
      cwd: repo,
      stdin: Buffer.from(input),
      stderr: "pipe",
    });
  const ours = lint("Dockerfile.distroless");
  expect(ours.stdout.toString() + ours.stderr.toString()).toBe("");
  expect(ours.exitCode).toBe(0);
  expect(lint("-", "FROM debian\nRUN cd /tmp\n").stdout.toString()).toContain("DL3006");
});
