/** Urls and names as people write them: what they mean, and what is refused without quoting the password. */
import { describe, expect, test } from "bun:test";
import { parseUrl, postgresSettings } from "../../../src/adapters/postgres/settings.ts";
import { postgresSinkSpec } from "../../../src/adapters/postgres/spec.ts";
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

describe("settings", () => {
  const settings = (more: Record<string, unknown>, written = false) => {
    const spec = postgresSinkSpec.parse({ url: "postgres://u:p@db/x", table: "raw.t", ...more });
    return postgresSettings(spec as never, "twg p/raw", written);
  };

  test("are safe by default, and the url may say less only where the option says nothing", () => {
    expect(settings({})).toMatchObject({ sslMode: "verify-full", channelBinding: "prefer", tls: {} });
    const url = "postgres://u:p@db/x?sslmode=require";
    expect(settings({ url }).sslMode).toBe("require");
    expect(settings({ url, sslmode: "require" }, true).sslMode).toBe("require");
    expect(() => settings({ url, sslmode: "verify-full" }, true)).toThrow("says sslmode=require");
  });

  test("take the certificates of the tls section", () => {
    const pem = "-----BEGIN CERTIFICATE-----";
    const tls = { ca: pem, cert: pem, key: pem, server_name: "db.internal" };
    expect(settings({ tls }).tls).toEqual({ ca: pem, cert: pem, key: pem, serverName: "db.internal" });
    expect(() => settings({ tls: { cert: pem } })).toThrow("`cert` and `key` go together");
  });

  test("names that cannot be are refused by the spec", () => {
    for (const bad of [{ table: "a.b.c" }, { state_schema: "" }, { state_schema: "x".repeat(64) }]) {
      expect(postgresSinkSpec.safeParse({ url: "postgres://u@db/x", table: "t", ...bad }).success).toBe(
        false,
      );
    }
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
