/**
 * Goal: the identity of a file is the one that FileDigest defines, however its parts are shared out; a file that becomes
 * shorter is noticed. Method: node:crypto over the same bytes, in shares of one and of many parts.
 */
import { afterAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  BLOCK_BYTES,
  blockCheck,
  digestOf,
  EMPTY_DIGEST,
  hashRange,
} from "../../../src/adapters/files/blocks.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { PART_BYTES } from "../../../src/core/records/file-stream.ts";

const room = mkdtempSync(join(tmpdir(), "twg-blocks-"));
afterAll(() => rmSync(room, { recursive: true }));
const path = join(room, "f");
const sha = (...parts: Uint8Array[]) => {
  const hash = createHash("sha256");
  for (const p of parts) hash.update(p);
  return hash.digest();
};

test("a small file is its SHA-256", () => {
  const content = new TextEncoder().encode("a,b\n1,2\n");
  writeFileSync(path, content);
  const { parts, blocks } = hashRange({ file: 3, path, revision: null, from: 0, to: content.length });
  expect(digestOf(parts)).toBe(sha(content).toString("hex"));
  expect([...blocks]).toEqual([blockCheck(content)]);
  expect(EMPTY_DIGEST).toBe(sha().toString("hex"));
});

test("a large one is the SHA-256 of those of its parts, in whatever shares", () => {
  const content = new Uint8Array(2 * PART_BYTES + BLOCK_BYTES + 5);
  for (let i = 0; i < content.length; i += 4099) content[i] = i % 251;
  writeFileSync(path, content);
  const part = (i: number) => sha(content.subarray(i * PART_BYTES, (i + 1) * PART_BYTES));
  const whole = hashRange({ file: 0, path, revision: null, from: 0, to: content.length });
  expect(digestOf(whole.parts)).toBe(sha(part(0), part(1), part(2)).toString("hex"));
  const shares = [0, 1, 2].map((i) =>
    hashRange({
      file: 0,
      path,
      revision: null,
      from: i * PART_BYTES,
      to: Math.min(content.length, (i + 1) * PART_BYTES),
    }),
  );
  expect(Buffer.concat(shares.map((s) => s.parts))).toEqual(Buffer.from(whole.parts));
  expect(shares.flatMap((s) => [...s.blocks])).toEqual([...whole.blocks]);
  expect(whole.blocks).toHaveLength(18);
  expect(whole.blocks[17]).toBe(blockCheck(content.subarray(17 * BLOCK_BYTES)));
});

test("a file that became shorter, or is not there, is no other file", () => {
  writeFileSync(path, new Uint8Array(100));
  truncateSync(path, 99);
  const codeOf = (fn: () => unknown) => {
    try {
      return fn();
    } catch (e) {
      return e instanceof Failure ? e.code : e;
    }
  };
  expect(codeOf(() => hashRange({ file: 0, path, revision: null, from: 0, to: 100 }))).toBe("files.changed");
  expect(codeOf(() => hashRange({ file: 0, path: `${path}.nix`, revision: null, from: 0, to: 1 }))).toBe(
    "files.unreadable",
  );
  expect(codeOf(() => hashRange({ file: 0, path: room, revision: null, from: 0, to: 1 }))).toBe(
    "files.unreadable",
  );
});
