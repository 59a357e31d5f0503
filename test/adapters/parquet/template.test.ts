/** Path templates: filled in per record, in runs; whatever brokers and producers send stays below the root. */
import { describe, expect, test } from "bun:test";
import { join, normalize } from "node:path";
import fc from "fast-check";
import { PathTemplate, plainText, rootOf, templateProblem } from "../../../src/adapters/parquet/template.ts";
import type { Failure } from "../../../src/core/failure/failure.ts";
import { batchOf, row, STREAM } from "../../core/formats/parquet/rows.ts";

const DAY = 86_400_000n;
/** 2026-01-01T00:00:00Z. */
const NEW_YEAR = 1_767_225_600_000n;

function foldersOf(path: string, timestamps: readonly (bigint | null)[], topic = "orders"): string[] {
  const rows = timestamps.map((t, i) =>
    row(i, t === null ? { timestampType: 0, timestamp: -1n } : { timestamp: t }),
  );
  const out: string[] = [];
  let next = 0;
  new PathTemplate(path, "p1").eachFolder(batchOf(rows, { ...STREAM, topic }), ({ folder, from, to }) => {
    expect(from).toBe(next);
    expect(to).toBeGreaterThan(from);
    next = to;
    out.push(`${folder} ${from}-${to}`);
    return true;
  });
  expect(next).toBe(rows.length);
  return out;
}

describe("root", () => {
  const roots: [string, string][] = [
    ["/data/raw", "/data/raw"],
    ["/data/raw///", "/data/raw"],
    ["/data/{topic}/{date}", "/data"],
    ["/data/orders-{date}/x", "/data"],
    ["{topic}", "."],
    ["out/{topic}", "out"],
    ["/{topic}", "/"],
    ["./a/../b/{topic}", "./a/../b"],
  ];
  for (const [path, root] of roots) test(`of ${path}`, () => expect(rootOf(path)).toBe(root));
});

describe("problems are found before anything runs", () => {
  const bad: [string, RegExp][] = [
    ["/d/{tpoic}", /\{tpoic\} is not known/],
    ["/d/{}", /\{\} is not known/],
    ["/d/{Topic}", /\{Topic\} is not known/],
    ["/d/{topic", /brace/],
    ["/d/topic}", /brace/],
    ["/d/{{topic}}", /not known|brace/],
    ["/d/{topic}/../x", /`\.\.`/],
    ["/d/a\0b", /zero byte/],
    ["s3://b/{topic}", /'b' is no name of a bucket/],
    ["s3://bucket{topic}/x", /'bucket{topic}' is no name of a bucket/],
    ["s3://bucket/a//b", /two slashes/],
    ["s3://bucket/a/../b", /'\.\.'/],
    ["gs://bucket/x", /not to gs:\/\/: Google Cloud Storage takes no If-None-Match/],
    ["abfss://c@x.dfs.core.windows.net/y", /Azure Blob Storage does not speak/],
    ["r2://bucket/x", /for R2 write s3:\/\//],
    ["s3://bucket/a\\b", /backslash/],
    [`s3://bucket/${"a".repeat(600)}`, /at most 512 bytes/],
    ["file:///data", /not to file:\/\//],
  ];
  for (const [path, problem] of bad) {
    test(JSON.stringify(path), () => {
      expect(templateProblem(path)).toMatch(problem);
      expect(() => new PathTemplate(path, "p")).toThrow();
    });
  }
  test("and good paths have none", () => {
    for (const good of [
      "/d",
      "d/{topic}",
      "/d/topic={topic}/date={date}/{hour}",
      "/a..b/{pipeline}-{partition}",
    ]) {
      expect(templateProblem(good)).toBeNull();
    }
  });
});

describe("filling in", () => {
  test("without a part in braces all rows go to the root", () =>
    expect(foldersOf("/d/raw", [1n, 2n])).toEqual([" 0-2"]));

  test("topic, partition, pipeline: one folder for the batch", () =>
    expect(foldersOf("/d/t={topic}/{pipeline}-{partition}/", [1n, NEW_YEAR])).toEqual(["t=orders/p1-3 0-2"]));

  test("a batch over midnight is cut where the date changes, back and forth", () =>
    expect(
      foldersOf("/d/{date}", [NEW_YEAR - 1n, NEW_YEAR, NEW_YEAR + 5n, NEW_YEAR - DAY, NEW_YEAR + DAY]),
    ).toEqual(["2025-12-31 0-1", "2026-01-01 1-3", "2025-12-31 3-4", "2026-01-02 4-5"]));

  test("the hour cuts finer, the date alone does not", () => {
    const hours = [NEW_YEAR, NEW_YEAR + 3_599_999n, NEW_YEAR + 3_600_000n, NEW_YEAR + 23n * 3_600_000n];
    expect(foldersOf("/d/{date}/{hour}", hours)).toEqual([
      "2026-01-01/00 0-2",
      "2026-01-01/01 2-3",
      "2026-01-01/23 3-4",
    ]);
    expect(foldersOf("/d/{date}", hours)).toEqual(["2026-01-01 0-4"]);
  });

  test("before 1970, and the day of the epoch itself", () =>
    expect(foldersOf("/d/{date}-{hour}", [0n, -2n, -DAY])).toEqual([
      "1970-01-01-00 0-1",
      "1969-12-31-23 1-2",
      "1969-12-31-00 2-3",
    ]));

  test("no timestamp, -1 and what no calendar has are `unknown`; the first and last day of the calendar are not", () =>
    expect(
      foldersOf("/d/{date}", [
        null,
        null,
        -1n,
        2n ** 63n - 1n,
        -(2n ** 63n),
        -62_135_596_800_000n,
        253_402_300_799_999n,
        253_402_300_800_000n,
      ]),
    ).toEqual(["unknown 0-2", "unknown 2-5", "0001-01-01 5-6", "9999-12-31 6-7", "unknown 7-8"]));

  test("-1 in the middle of a day stands alone", () =>
    expect(foldersOf("/d/{date}", [0n, -1n, 1n])).toEqual([
      "1970-01-01 0-1",
      "unknown 1-2",
      "1970-01-01 2-3",
    ]));
  test("also among others of its own day, the last of 1969", () =>
    expect(foldersOf("/d/{date}", [-2n, -1n, -3n])).toEqual([
      "1969-12-31 0-1",
      "unknown 1-2",
      "1969-12-31 2-3",
    ]));

  test("an empty batch has no folder", () => expect(foldersOf("/d/{date}", [])).toEqual([]));

  test("property: dates are those of the platform's calendar", () => {
    const day = fc.bigInt({ min: -62_135_596_800_000n, max: 253_402_300_799_999n }).filter((t) => t !== -1n);
    fc.assert(
      fc.property(fc.array(day, { minLength: 1, maxLength: 8 }), (timestamps) => {
        const seen = foldersOf("/d/{date}/{hour}", timestamps).flatMap((f) => {
          const [folder, rows] = f.split(" ");
          const [from, to] = (rows ?? "").split("-").map(Number);
          return Array.from({ length: to! - from! }, () => folder);
        });
        const iso = timestamps.map((t) => new Date(Number(t)).toISOString());
        expect(seen).toEqual(iso.map((s) => `${s.slice(0, 10)}/${s.slice(11, 13)}`));
      }),
    );
  });
});

describe("what brokers send cannot lead out", () => {
  const folder = (topic: string, path = "/d/{topic}") => foldersOf(path, [1n], topic)[0]!.split(" ")[0]!;

  test("names with a meaning of their own become plain names", () => {
    expect(folder("..")).toBe("%2E%2E");
    expect(folder(".")).toBe("%2E");
    expect(folder("../../etc/passwd")).toBe("..%2F..%2Fetc%2Fpasswd");
    expect(folder("a/b")).toBe("a%2Fb");
    expect(folder("")).toBe("%");
    expect(folder("é\n")).toBe("%C3%A9%0A");
    expect(folder("._", "/d/.{topic}")).toBe("._".replace("._", ".._"));
    expect(folder(".", "/d/.{topic}")).toBe("%2E%2E");
  });

  test("our own folder is not entered, in whatever case and however it is put together", () => {
    expect(folder("_twg")).toBe("%5Ftwg");
    expect(folder("_TWG")).toBe("%5FTWG");
    expect(folder("twg", "/d/_{topic}")).toBe("%5Ftwg");
    expect(folder("_twg", "/d/x{partition}/{topic}")).toBe("x3/_twg");
  });

  test("names too long for a file system are cut, and stay apart", () => {
    const [a, b] = [
      folder(`${"t".repeat(249)}a`, "/d/topic={topic}"),
      folder(`${"t".repeat(249)}b`, "/d/topic={topic}"),
    ];
    expect(a).not.toBe(b);
    expect(a.length).toBeLessThanOrEqual(255);
    expect(folder("t".repeat(249))).toBe("t".repeat(249));
  });

  test("property: any topic stays below the root, outside of `_twg`, and no two share a folder", () => {
    const wild = fc.oneof(
      fc.string({ maxLength: 12 }),
      fc.constantFrom("..", "/", "\\", "_twg", "a/../../b", "\0"),
    );
    fc.assert(
      fc.property(wild, wild, (a, b) => {
        const path = normalize(join("/lake", folder(a)));
        expect(path.startsWith("/lake/")).toBe(true);
        expect(path.split("/").length).toBe(3);
        expect(path).not.toBe("/lake/_twg");
        if (a.isWellFormed() && b.isWellFormed()) expect(folder(a) === folder(b)).toBe(a === b);
      }),
    );
  });

  test("plain text is left alone", () => expect(plainText("orders.v2_eu-west")).toBe("orders.v2_eu-west"));
});

test("a template that should have been refused is a bug, not a path", () => {
  try {
    new PathTemplate("/d/{x}", "p");
    expect.unreachable();
  } catch (e) {
    expect((e as Failure).code).toBe("internal.bug");
  }
});
