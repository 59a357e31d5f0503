/**
 * Goal: a scratch file that finds no place is refused with its folder and what to do. Method: a folder that is not there,
 * and a disk of 64 KiB, for which it takes root.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemoryFile } from "../../../src/adapters/duckdb/memory-file.ts";

const disk = mkdtempSync(join(tmpdir(), "twg-scratch-test-"));
const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=64k", "twg-test", disk]).success;
if (!mounted) console.error("SKIP: a full disk is a small tmpfs, and only root can mount one");

afterAll(() => {
  if (mounted) Bun.spawnSync(["umount", disk]);
  rmSync(disk, { recursive: true, force: true });
});

test("what is written is read, in memory and on a disk, and leaves no name", () => {
  for (const folder of [null, tmpdir()]) {
    const file = new MemoryFile(folder);
    file.write(Uint8Array.of(1, 2, 3), 0);
    file.write(Uint8Array.of(9), 1);
    expect([...file.read(0, 10)]).toEqual([1, 9, 3]);
    expect([...file.take()]).toEqual([1, 9, 3]);
    expect(file.size).toBe(0);
    file.close();
  }
});

test("no folder", () => {
  const gone = join(disk, "gone");
  expect(() => new MemoryFile(gone)).toThrow(expect.objectContaining({ code: "files.scratch", at: gone }));
});

test.skipIf(!mounted)("no space", () => {
  const file = new MemoryFile(disk);
  expect(() => file.write(new Uint8Array(100_000), 0)).toThrow(
    expect.objectContaining({ code: "files.scratch", at: disk }),
  );
  file.close();
  expect(readdirSync(disk)).toEqual([]);
});
