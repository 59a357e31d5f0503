/** Goal: doctor's word on a database is true, and it leaves nothing in it. Method: a real PostgreSQL; psql looks. */
import { describe, expect, test } from "bun:test";
import { postgresCheckup } from "../../../src/adapters/postgres/doctor.ts";
import type { PostgresSettings } from "../../../src/adapters/postgres/settings.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { runCheckups } from "../../../src/commands/doctor-run.ts";
import type { Finding } from "../../../src/core/ports/doctor.ts";
import { demandPostgres, freshDatabase, POSTGRES, parts, psql, settings } from "./server.ts";

demandPostgres("doctor of a Postgres sink");

describe.skipIf(POSTGRES === null)("doctor", () => {
  const TABLE = { schema: "public", table: "landed" };

  function look(database: string, create: boolean, over: Partial<PostgresSettings> = {}): Promise<Finding[]> {
    const options = {
      settings: settings(database, over),
      table: TABLE,
      prefix: "_twg_",
      create,
      rejects: null,
      upsert: false,
      key: { pipeline: "p", sink: "raw" },
      stateSchema: "twg",
      raw: true,
    };
    return runCheckups([postgresCheckup(options, parts)], systemClock, 20_000);
  }
  const told = (findings: readonly Finding[]) => findings.map((f) => `${f.check} ${f.verdict}`);
  const relations = (database: string) =>
    psql(
      database,
      "select count(*) from pg_class c join pg_namespace n on n.oid = relnamespace where nspname in ('public', 'twg')",
    );

  test("what a start would make is tried and rolled back", async () => {
    const database = await freshDatabase();
    expect(told(await look(database, true))).toEqual([
      "postgres.login warning",
      "postgres.server ok",
      "postgres.clock ok",
      "postgres.state ok",
      "postgres.table ok",
    ]);
    expect(await relations(database)).toBe("0");
  });

  test("TLS with a name that is proven is no warning", async () => {
    const database = await freshDatabase();
    const [login] = await look(database, true, { sslMode: "verify-full" });
    expect(login).toMatchObject({ check: "postgres.login", verdict: "ok" });
  });

  test("a table that is missing, or does not fit, comes with what to do", async () => {
    const database = await freshDatabase();
    const missing = (await look(database, false)).at(-1);
    expect(missing).toMatchObject({ check: "postgres.table", verdict: "failed", code: "postgres.missing" });
    expect(missing?.advice).toContain("CREATE TABLE");
    await psql(database, "create table landed (other int not null)");
    expect((await look(database, false)).at(-1)).toMatchObject({ code: "postgres.table_mismatch" });
  });

  test("a user without rights: the state fails, and the table is still looked at", async () => {
    const database = await freshDatabase();
    const user = `reader_${database}`;
    await psql(
      database,
      `create role ${user} login password 'reader-pw'; revoke create on schema public from public`,
    );
    try {
      const findings = await look(database, true, { user, password: "reader-pw" });
      expect(told(findings)).toContain("postgres.state failed");
      expect(told(findings)).toContain("postgres.table failed");
      expect(findings.find((f) => f.check === "postgres.state")?.code).toBe("postgres.denied");
      expect(JSON.stringify(findings)).not.toContain("reader-pw");
    } finally {
      await psql(database, `drop role ${user}`);
    }
  });

  test("a wrong password is told without it", async () => {
    const database = await freshDatabase();
    const wrong = await look(database, true, { password: "not it" });
    expect(told(wrong)).toEqual(["postgres.login failed"]);
    expect(JSON.stringify(wrong)).not.toContain("not it");
  });
});
