/**
 * Goal: limits are found where the kernel tells them, and too little is said before it hurts. Method: folders that look
 * like /proc and /sys/fs/cgroup of the common systems, and real folders for room and rights.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import {
  type HostNeeds,
  hostCheckup,
  kernel,
  memory,
  memoryLimit,
  room,
} from "../../../src/adapters/system/doctor.ts";
import type { Finding } from "../../../src/core/ports/doctor.ts";

const MIB = 1024 * 1024;
const folders: string[] = [];
afterAll(() => {
  for (const f of folders) rmSync(f, { recursive: true, force: true });
});

/** A folder with these files; a path without a slash in front. */
function laid(files: Readonly<Record<string, string>>): { proc: string; cgroup: string } {
  const root = mkdtempSync(join(tmpdir(), "twg-doctor-"));
  folders.push(root);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return { proc: join(root, "proc"), cgroup: join(root, "cgroup") };
}

const V1 = "5:cpu,cpuacct:/a\n4:memory:/docker/abc\n0::/init\n";

test.each([
  ["v2 in a container", { "proc/self/cgroup": "0::/\n", "cgroup/memory.max": "536870912\n" }, 512 * MIB],
  ["v2 without a limit", { "proc/self/cgroup": "0::/\n", "cgroup/memory.max": "max\n" }, null],
  [
    "v2 of a unit whose slice has less",
    {
      "proc/self/cgroup": "0::/system.slice/twg.service\n",
      "cgroup/system.slice/memory.max": "268435456\n",
      "cgroup/system.slice/twg.service/memory.max": "1073741824\n",
    },
    256 * MIB,
  ],
  [
    "v1",
    { "proc/self/cgroup": V1, "cgroup/memory/docker/abc/memory.limit_in_bytes": "104857600\n" },
    100 * MIB,
  ],
  // Only the container's own part of the tree is shown, at its root.
  [
    "v1 in a container",
    { "proc/self/cgroup": V1, "cgroup/memory/memory.limit_in_bytes": "104857600\n" },
    100 * MIB,
  ],
  ["no control groups at all", {}, null],
])("memory limit: %s", async (_, files, limit) => {
  expect(await memoryLimit(laid(files))).toBe(limit);
});

const NEEDS: HostNeeds = {
  version: "0.1.0",
  lanes: 2,
  budgetBytes: 48 * MIB,
  sinkBytes: 32 * MIB,
  filesPerLane: 64,
  folders: [],
};

test.each([
  [null, 8192, "ok"],
  [400, 8192, "ok"],
  // 200 MiB for the program, twice the budget, and what the sink keeps: 328.
  [320, 8192, "warning"],
  [null, 320, "warning"],
  [240, 8192, "failed"],
])("a limit of %p MiB on a machine of %d MiB is %s", (limit, total, verdict) => {
  const found = memory(NEEDS, limit === null ? null : limit * MIB, total * MIB);
  expect(found.verdict as string).toBe(verdict);
  expect(found.seen).toContain("about 328 MiB needed");
});

test("an old kernel is named", () => {
  expect(kernel("6.1.0-18-amd64").verdict).toBe("ok");
  expect(kernel("4.18.0-553.el8_10.x86_64").verdict).toBe("ok");
  expect(kernel("3.10.0-1160.el7.x86_64").verdict).toBe("warning");
});

test("room is looked at where a folder will be made", async () => {
  const root = mkdtempSync(join(tmpdir(), "twg-room-"));
  folders.push(root);
  const missing = join(root, "a/b");
  const found = await room(missing, 1);
  expect(found.map((f) => f.check)).toContain("host.disk");
  expect(found.at(-1)).toMatchObject({ check: "host.folder", verdict: "ok", at: missing });
  expect(found.at(-1)?.seen).toContain(`it will be made below ${root}`);
  const [full] = await room(missing, Number.MAX_SAFE_INTEGER);
  expect(full).toMatchObject({ check: "host.disk", verdict: "failed" });
});

test("a path that cannot be a folder is a finding, not an error", async () => {
  const root = mkdtempSync(join(tmpdir(), "twg-room-"));
  folders.push(root);
  writeFileSync(join(root, "file"), "");
  const found = await room(join(root, "file", "below"), 1);
  expect(found.at(-1)).toMatchObject({ check: "host.folder", verdict: "failed" });
});

test("too few descriptors are a warning with the number", async () => {
  const limits = "Max open files            200                  4096                 files     \n";
  const places = { ...laid({ "proc/self/limits": limits }), totalMemory: 8192 * MIB };
  const findings: Finding[] = [];
  const signal = new AbortController().signal;
  await hostCheckup(NEEDS, places).run({ clock: systemClock, signal, report: (f) => findings.push(f) });
  const found = findings.find((f) => f.check === "host.descriptors");
  expect(found).toMatchObject({ verdict: "warning", seen: "200 open files allowed, up to 256 needed" });
});
