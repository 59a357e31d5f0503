/**
 * Goal: what the user names becomes the files meant, in a fixed order, and what is no data file is left out or refused
 * by name. Method: a folder of real files, with globs, links, a pipe and broken ones.
 */

import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLocalFile } from "../../../src/adapters/files/file-bytes.ts";
import {
  compressionOf,
  fileAt,
  formatOf,
  formatOfName,
  localFiles,
} from "../../../src/adapters/files/locate.ts";
import { Failure } from "../../../src/core/failure/failure.ts";

const room = mkdtempSync(join(tmpdir(), "twg-locate-"));
afterAll(() => rmSync(room, { recursive: true }));

function put(name: string, content: string | Uint8Array = "x"): string {
  const path = join(room, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, content);
  return path;
}

function refusal(fn: () => unknown): string {
  try {
    return `no failure: ${JSON.stringify(fn())}`;
  } catch (e) {
    if (e instanceof Failure) return `${e.code}: ${e.message}`;
    throw e;
  }
}

const namesOf = (input: string) => localFiles(input).map((f) => f.name.slice(room.length + 1));

test("a file by its name, with its size", () => {
  const path = put("one/any.thing", "12345");
  expect(localFiles(path)).toEqual([{ name: path, path, revision: null, bytes: 5 }]);
});

test("a folder: files of known formats at any depth, by name; hidden ones and our own are passed over", () => {
  for (const f of ["b.csv", "a.ndjson.gz", "deep/er/c.json", "README.md", ".hidden.csv", "_schema.json"])
    put(`dir/${f}`);
  for (const f of ["_rejects/r.ndjson", ".git/x.csv", "deep/_twg/y.csv"]) put(`dir/${f}`);
  const expected = ["dir/a.ndjson.gz", "dir/b.csv", "dir/deep/er/c.json"];
  expect(namesOf(join(room, "dir"))).toEqual(expected);
  expect(localFiles(`${join(room, "dir")}/`).map((f) => f.bytes)).toEqual([1, 1, 1]);
});

test("a folder whose own path has a hidden part is read all the same", () => {
  put(".cache/_in/a.csv");
  expect(namesOf(join(room, ".cache/_in"))).toEqual([".cache/_in/a.csv"]);
});

test("a glob: in order, links followed, hidden files and folders left out", () => {
  for (const f of ["2.csv", "10.csv", "1.csv", ".3.csv", "4.txt"]) put(`glob/${f}`);
  mkdirSync(join(room, "glob/5.csv"));
  symlinkSync(join(room, "glob/4.txt"), join(room, "glob/6.csv"));
  expect(namesOf(join(room, "glob/*.csv"))).toEqual([
    "glob/1.csv",
    "glob/10.csv",
    "glob/2.csv",
    "glob/6.csv",
  ]);
  expect(namesOf(join(room, "glob/{2,4}.*"))).toEqual(["glob/2.csv", "glob/4.txt"]);
});

test("a file whose name looks like a glob is that file", () => {
  const path = put("odd/a[1].csv", "123");
  put("odd/a1.csv");
  expect(localFiles(path).map((f) => f.bytes)).toEqual([3]);
});

test("nothing there is said by name, never an empty list", () => {
  mkdirSync(join(room, "empty"));
  expect(refusal(() => localFiles(join(room, "nix.csv")))).toBe("files.none: there is no such file");
  expect(refusal(() => localFiles(join(put("file.csv"), "below")))).toBe("files.none: there is no such file");
  expect(refusal(() => localFiles(join(room, "nix*.csv")))).toBe("files.none: no file matches");
  expect(refusal(() => localFiles(join(room, "empty")))).toBe(
    "files.none: no file of a known format is in the folder",
  );
  expect(refusal(() => localFiles(join(room, `${"n".repeat(300)}.csv`)))).toStartWith("files.unreadable: ");
});

test("what is no regular file is refused", () => {
  expect(refusal(() => fileAt("/dev/null", "null"))).toBe("files.unreadable: it is no regular file");
  expect(refusal(() => fileAt(join(room, "gone"), "gone"))).toBe("files.unreadable: there is no such file");
});

test("formats by name, the compression's ending left out", () => {
  const cases: Record<string, string | null> = {
    "a.csv": "csv",
    "A.TSV.GZ": "csv",
    "a.tab": "csv",
    "x/y.jsonl.zst": "ndjson",
    "a.jsonlines.gzip": "ndjson",
    "a.json.zstd": "json",
    "a.parquet": "parquet",
    "https://host/a.csv?sig=x.json#y": "csv",
    "a.gz": null,
    "a.csv.bak": null,
    csv: null,
  };
  for (const [name, format] of Object.entries(cases))
    expect([name, formatOfName(name)]).toEqual([name, format]);
  expect(formatOf("a.csv", { format: "auto" })).toBe("csv");
  expect(formatOf("a.csv", { format: "json" })).toBe("json");
  expect(refusal(() => formatOf("data", { format: "auto" }))).toStartWith("files.format: ");
});

test("compression by the first bytes, not by the name", async () => {
  const text = new TextEncoder().encode("a,b\n");
  const kinds = {
    gzip: Bun.gzipSync(text),
    zstd: Bun.zstdCompressSync(text),
    none: text,
  };
  const of = (path: string, compression: "auto" | "zstd" = "auto") =>
    compressionOf({ path, revision: null, bytes: 0 }, { compression }, openLocalFile);
  for (const [kind, content] of Object.entries(kinds))
    expect(await of(put(`c/${kind}.csv.gz`, content))).toBe(kind as "gzip" | "zstd" | "none");
  for (const short of [[], [0x1f], [0x28, 0xb5, 0x2f]])
    expect(await of(put("c/short", Uint8Array.from(short)))).toBe("none");
  expect(await of(join(room, "gone"), "zstd")).toBe("zstd");
  expect(of(join(room, "gone"))).rejects.toMatchObject({ code: "files.unreadable" });
});
