/**
 * Goal: the begin of a file is seen as UTF-8 text in whatever encoding and compression it is, with the truth of whether
 * that is all of it; a fault further on does not hide what there is. Method: real files, whole, cut off and broken.
 */

import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLocalFile } from "../../../src/adapters/files/file-bytes.ts";
import { encodingOf, rawHead, sampleOf } from "../../../src/adapters/files/sample.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { Compression, TextEncoding } from "../../../src/core/ports/batch-lane.ts";

const room = mkdtempSync(join(tmpdir(), "twg-sample-"));
afterAll(() => rmSync(room, { recursive: true }));

function put(name: string, content: string | Uint8Array): string {
  const path = join(room, name);
  writeFileSync(path, content);
  return path;
}

interface How {
  readonly compression?: Compression;
  readonly encoding?: TextEncoding;
  readonly array?: boolean;
  readonly most?: number;
}

async function sample(
  path: string,
  { compression = "none", encoding = "utf-8", array = false, most = 1e6 }: How = {},
) {
  const layout = { format: "ndjson", array } as const;
  const { bytes, whole } = await sampleOf(
    { path, revision: null, bytes: 0, compression, layout },
    encoding,
    most,
    openLocalFile,
  );
  return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes), whole };
}

const codeOf = (p: Promise<unknown>) =>
  p.then(
    (v) => `no failure: ${JSON.stringify(v)}`,
    (e) => (e instanceof Failure ? e.code : `no Failure: ${e}`),
  );

test("a small file is the whole of it, without its mark", async () => {
  expect(await sample(put("a", "a,b\n1,ü"))).toEqual({ text: "a,b\n1,ü", whole: true });
  expect(await sample(put("bom", "\ufeffa,b\n"))).toEqual({ text: "a,b\n", whole: true });
  expect(await sample(put("tiny", "x"))).toEqual({ text: "x", whole: true });
  expect(await sample(put("none", ""))).toEqual({ text: "", whole: true });
});

test("no more than asked for, and then it is not whole", async () => {
  // No two blocks are alike: one that was read over another would be seen.
  const content = Array.from({ length: 300_000 }, (_, i) => `${1e9 + i}\n`).join("");
  const path = put("large", content);
  for (const most of [10, 1_048_576, 2_000_000])
    expect(await sample(path, { most })).toEqual({ text: content.slice(0, most), whole: false });
  const { text, whole } = await sample(path, { most: 4e6 });
  expect({ whole, same: text === content }).toEqual({ whole: true, same: true });
});

test("other encodings become UTF-8", async () => {
  const le = Buffer.from("\ufeffü,€\n", "utf16le");
  expect(await sample(put("le", le), { encoding: "utf-16le" })).toEqual({ text: "ü,€\n", whole: true });
  expect(await sample(put("be", Buffer.from(le).swap16()), { encoding: "utf-16be" })).toEqual({
    text: "ü,€\n",
    whole: true,
  });
  const latin = Uint8Array.of(0xfc, 0x80);
  expect((await sample(put("w", latin), { encoding: "windows-1252" })).text).toBe("ü€");
  expect(await codeOf(sample(put("odd", le.subarray(0, 3)), { encoding: "utf-16le" }))).toBe(
    "files.encoding",
  );
});

test("compressed ones, members one after another too; a torn one gives what it has", async () => {
  const a = new TextEncoder().encode("a,b\n1,2\n");
  const b = new TextEncoder().encode("3,4\n");
  const gzip = Buffer.concat([Bun.gzipSync(a), Bun.gzipSync(b)]);
  expect(await sample(put("gz", gzip), { compression: "gzip" })).toEqual({
    text: "a,b\n1,2\n3,4\n",
    whole: true,
  });
  const zstd = Buffer.concat([Bun.zstdCompressSync(a), Bun.zstdCompressSync(b)]);
  expect(await sample(put("zst", zstd), { compression: "zstd" })).toEqual({
    text: "a,b\n1,2\n3,4\n",
    whole: true,
  });

  const noise = Array.from({ length: 400_000 }, (_, i) => (i * 2_654_435_761) % 997).join();
  const packed = Bun.gzipSync(new TextEncoder().encode(noise));
  const torn = await sample(put("torn", packed.subarray(0, packed.length - 100)), {
    compression: "gzip",
    most: 1e8,
  });
  expect(torn.whole).toBe(false);
  expect(torn.text.length).toBeGreaterThan(100_000);
  expect(noise.startsWith(torn.text)).toBe(true);
  expect(await codeOf(sample(put("no", "not gzip"), { compression: "gzip" }))).toBe("files.compression");
});

test("an array of objects is a line each", async () => {
  const { text } = await sample(put("array", '[{"a":1},\n {"a":\n2}]'), { array: true });
  const rows = text.split("\n").filter((l) => l.trim() !== "");
  expect(rows.map((l) => JSON.parse(l))).toEqual([{ a: 1 }, { a: 2 }]);
});

test("the raw head decides the encoding, unless it is declared", async () => {
  const auto = { encoding: "auto" } as const;
  const le = Buffer.from("\ufeffa", "utf16le");
  expect(
    await rawHead({ path: put("h1", Bun.gzipSync(le)), revision: null, bytes: 0 }, "gzip", openLocalFile),
  ).toEqual(le);
  expect(
    await rawHead({ path: put("h2", ""), revision: null, bytes: 0 }, "none", openLocalFile),
  ).toHaveLength(0);
  expect(encodingOf(le, auto)).toBe("utf-16le");
  expect(encodingOf(Buffer.from(le).swap16(), auto)).toBe("utf-16be");
  expect(encodingOf(new TextEncoder().encode("\ufeffa"), auto)).toBe("utf-8");
  expect(encodingOf(new Uint8Array(0), auto)).toBe("utf-8");
  expect(encodingOf(le, { encoding: "iso-8859-1" })).toBe("iso-8859-1");
});
