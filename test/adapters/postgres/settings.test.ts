/** Urls and names as people write them: what they mean, and what is refused without quoting the password. */
import { describe, expect, test } from "bun:test";
import { parseUrl } from "../../../src/adapters/postgres/settings.ts";
import { parseTableName, quoted, shownTable } from "../../../src/adapters/postgres/table/names.ts";
import { Failure } from "../../../src/core/failure/failure.ts";

describe("a url", () => {
  test("of every shape", () => {
    expect(parseUrl("postgres://u:p%40%3A@db/lake")).toEqual({
      hosts: [{ host: "db", port: 5432 }],
      user: "u",
      password: "p@:",
      database: "lake",
      sslMode: null,
    });
    expect(parseUrl("postgresql://u@a:1,[::1]:2,c?sslmode=require")).toEqual({
      hosts: [
        { host: "a", port: 1 },
        { host: "::1", port: 2 },
        { host: "c", port: 5432 },
      ],
      user: "u",
      password: null,
      database: "u",
      sslMode: "require",
    });
    expect(parseUrl("postgres://u:a:b:c@db/x").password).toBe("a:b:c");
  });

  test.each([
    "db:5432/x",
    "mysql://u:s3cret@db/x",
    "postgres://db/x",
    "postgres://u:s3cret@db:99999/x",
    "postgres://u:s3cret@/x",
    "postgres://u:s3cret%zz@db/x",
    "postgres://u:s3cret%00@db/x",
    "postgres://u:s3cret@db/x?sslmode=maybe",
    "postgres://u:s3cret@db/x?ssl=true",
    "postgres://u:s3cret@%2Fvar%2Frun/x",
  ])("%s is refused, and nothing of it is printed", (url) => {
    try {
      parseUrl(url);
    } catch (e) {
      if (!(e instanceof Failure)) throw e;
      expect(e.code).toBe("postgres.url_invalid");
      expect(`${e.message} ${e.hint} ${e.at}`).not.toContain("s3cret");
      return;
    }
    throw new Error("it was taken");
  });
});

describe("a table name", () => {
  test("is taken as it is written", () => {
    expect(parseTableName("raw.Orders")).toEqual({ schema: "raw", table: "Orders" });
    expect(parseTableName("orders")).toEqual({ schema: "public", table: "orders" });
    expect(parseTableName('"a.b"."c""d"')).toEqual({ schema: "a.b", table: 'c"d' });
    expect(shownTable({ schema: "raw", table: "Orders" })).toBe('raw."Orders"');
    expect(quoted('a"b')).toBe('"a""b"');
  });

  test("of more than 63 bytes, of too many parts, empty or torn is refused", () => {
    expect(parseTableName("ü".repeat(32))).toBe("a name of 64 bytes, allowed 63");
    expect(parseTableName("ü".repeat(31))).toMatchObject({ schema: "public" });
    for (const name of ["a.b.c", "", ".", "a.", 'a."b', 'a"b', '""."x"'])
      expect(typeof parseTableName(name)).toBe("string");
  });
});
