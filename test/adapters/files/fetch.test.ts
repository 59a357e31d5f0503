/**
 * Goal: what cannot be kept is told apart from what cannot be fetched, with the folder or the address, and what may pass is told
 * so. Method: a server of our own, folders that cannot be used, a full disk (a small tmpfs, which takes root).
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Scratch } from "../../../src/adapters/files/fetch.ts";
import { Failure } from "../../../src/core/failure/failure.ts";

const folder = mkdtempSync(join(tmpdir(), "twg-fetch-"));
const disk = mkdtempSync(join(tmpdir(), "twg-fetch-full-"));
const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=64k", "twg-test", disk]).success;
if (!mounted) console.error("SKIP: a full disk is a small tmpfs, and only root can mount one");

const BYTES = 200_000;
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request) {
    const status = Number(new URL(request.url).pathname.slice(1));
    return new Response(status === 200 ? new Uint8Array(BYTES) : "", { status });
  },
});
const url = (status: number) => `http://user:pw@127.0.0.1:${server.port}/${status}?token=secret`;

afterAll(async () => {
  await server.stop(true);
  if (mounted) Bun.spawnSync(["umount", "-l", disk]);
  for (const f of [folder, disk]) rmSync(f, { recursive: true, force: true });
});

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function failure(parent: string, input: string, stdin = nothing()): Promise<Failure> {
  const scratch = new Scratch(parent);
  try {
    await scratch.fetch(input, stdin);
  } catch (e) {
    if (e instanceof Failure) return e;
    throw e;
  } finally {
    scratch.remove();
  }
  throw new Error("did not fail");
}

describe("files that are fetched", () => {
  test("an address and standard input are kept, and go when the job ends", async () => {
    const scratch = new Scratch(folder);
    async function* said() {
      yield new TextEncoder().encode("a\n");
      yield new TextEncoder().encode("b\n");
    }
    const [from, input] = [await scratch.fetch(url(200), nothing()), await scratch.fetch("-", said())];
    expect([from.bytes, from.name]).toEqual([BYTES, `http://127.0.0.1:${server.port}/200`]);
    expect([readFileSync(input.path, "utf8"), input.name]).toEqual(["a\nb\n", "standard input"]);
    scratch.remove();
    expect(readdirSync(folder)).toEqual([]);
  });

  test("a folder for them that is none", async () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    const f = await failure(file, "-");
    expect([f.code, f.at, f.kind]).toEqual(["files.scratch", file, "environment"]);
    expect(f.message).toContain("a part of the path is a file (ENOTDIR)");
    expect((await failure(join(folder, "gone"), url(200))).code).toBe("files.scratch");
    rmSync(file);
  });

  test.skipIf(!mounted)(
    "a disk that fills meanwhile: of what is fetched and of standard input, and nothing stays",
    async () => {
      async function* much() {
        for (let i = 0; i < 10; i++) yield new Uint8Array(50_000);
      }
      for (const f of [await failure(disk, url(200)), await failure(disk, "-", much())]) {
        expect([f.code, f.at]).toEqual(["files.scratch", disk]);
        expect(f.message).toContain("no space is left (ENOSPC)");
      }
      expect(readdirSync(disk)).toEqual([]);
    },
  );

  test.each([
    [403, false],
    [404, false],
    [408, true],
    [429, true],
    [503, true],
  ])("an answer of %d", async (status, retry) => {
    const f = await failure(folder, url(status));
    expect([f.code, f.retry, f.at]).toEqual([
      "files.http",
      retry,
      `http://127.0.0.1:${server.port}/${status}`,
    ]);
  });

  test("standard input that ends in an error is none of the disk", async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(1);
      throw Object.assign(new Error("read failed"), { code: "EIO" });
    }
    expect(await failure(folder, "-", broken())).toMatchObject({ code: "files.http", at: "standard input" });
  });
});
