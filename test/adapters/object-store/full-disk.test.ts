/**
 * Goal: a disk that is really full loses nothing and damages nothing; once space is free the same calls go on.
 * Method: a tmpfs of one MiB, filled by a file that is removed again. Mounting it takes root.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalVersionedStore } from "../../../src/adapters/coverage/local.ts";
import { LocalObjectStore, stagingOf } from "../../../src/adapters/object-store/local.ts";
import { Failure } from "../../../src/core/failure/failure.ts";

const DISK_BYTES = 1024 * 1024;
const disk = mkdtempSync(join(tmpdir(), "twg-full-"));
const size = `size=${DISK_BYTES},nr_inodes=60`;
const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", size, "twg-test", disk]).success;
if (!mounted) console.error("SKIP: a full disk is a small tmpfs, and only root can mount one");

const filler = join(disk, "filler");

async function failure(work: Promise<unknown>): Promise<Failure> {
  const e: unknown = await work.then(
    () => new Error("did not fail"),
    (e) => e,
  );
  if (!(e instanceof Failure)) throw e;
  return e;
}

/** Takes what is free, all but `left` bytes. */
function fill(left: number): void {
  for (let bytes = DISK_BYTES; bytes > left; bytes -= 4096) {
    try {
      writeFileSync(filler, new Uint8Array(bytes));
      const kept = statSync(filler).size - left;
      writeFileSync(filler, new Uint8Array(Math.max(0, kept)));
      return;
    } catch {
      // Too much: try with a page less.
    }
  }
}

describe.skipIf(!mounted)("a full disk", () => {
  afterAll(() => {
    Bun.spawnSync(["umount", "-l", disk]);
    rmSync(disk, { recursive: true, force: true });
  });

  test("in the middle of an append: the same bytes again, once there is space, make the same file", async () => {
    const store = new LocalObjectStore({ root: disk, staging: stagingOf(disk, "p", "s"), instance: "i" });
    await store.prepare();
    const pieces = Array.from({ length: 6 }, (_, i) => new Uint8Array(100_000).fill(i + 1));
    const staged = await store.stage("a/b.parquet");
    fill(250_000);
    let full = 0;
    for (const piece of pieces) {
      for (;;) {
        const f = await staged.append(piece).then(
          () => null,
          (e) => e,
        );
        if (f === null) break;
        expect([f.code, f.retry, f.at.startsWith(disk)]).toEqual(["store.full", true, true]);
        // Twice, as a lane does that waits: the first try may have written a part.
        if (++full === 2) unlinkSync(filler);
      }
    }
    expect(full).toBe(2);
    const target = await staged.seal(6);
    await store.publish(target);
    expect(Buffer.compare(readFileSync(join(disk, "a/b.parquet")), Buffer.concat(pieces))).toBe(0);
    unlinkSync(join(disk, "a/b.parquet"));
  });

  test("for the coverage state: no version, no remains; with space the same write wins", async () => {
    const place = join(disk, "coverage");
    const versions = new LocalVersionedStore(place);
    await versions.prepare();
    expect(await versions.write(null, new Uint8Array(1000), "t0")).toBe("won");
    fill(8192);
    const f = await failure(versions.write(1, new Uint8Array(100_000), "t1"));
    expect([f.code, f.retry]).toEqual(["coverage.full", true]);
    expect((await failure(versions.putSegment("s", new Uint8Array(100_000)))).code).toBe("coverage.full");
    expect((await versions.read())?.version).toBe(1);
    unlinkSync(filler);
    expect(await versions.write(1, new Uint8Array(100_000), "t1")).toBe("won");
    await versions.putSegment("s", new Uint8Array(100_000));
    await versions.sweep(new Set(["s"]));
    expect(readdirSync(place).sort()).toEqual([
      "coverage-000000000001.json",
      "coverage-000000000002.json",
      "index-s.json",
    ]);
    rmSync(place, { recursive: true });
  });

  test("that has no room for another name: a file cannot be begun, and can be later", async () => {
    const store = new LocalObjectStore({ root: disk, staging: stagingOf(disk, "p", "s"), instance: "j" });
    const names = Array.from({ length: 80 }, (_, i) => join(disk, `name-${i}`));
    const made = names.filter((n) => {
      try {
        writeFileSync(n, "");
        return true;
      } catch {
        return false;
      }
    });
    expect((await failure(store.stage("c.parquet"))).code).toBe("store.full");
    for (const n of made) unlinkSync(n);
    await (await store.stage("c.parquet")).abort();
  });
});
