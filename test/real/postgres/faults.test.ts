/**
 * Goal: each fault of a server is one coded failure, the set is kept, and it lands once when the fault is over. Method:
 * the faults are made on a real server: locks, time-outs, a full disk, rights, crashes, poolers.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { PostgresSettings } from "../../../src/adapters/postgres/settings.ts";
import { asFailure } from "../../../src/core/failure/failure.ts";
import type { Authority } from "../../../src/core/ports/coverage.ts";
import { bytes, type Row, row } from "../../core/formats/parquet/rows.ts";
import { failed } from "./failed.ts";
import { demandPostgres, freshDatabase, POSTGRES, psql, server, settings } from "./server.ts";
import { KEY, Sink } from "./sink.ts";

demandPostgres("faults of a server");

const rows = (from: number, next: number, size = 10): Row[] =>
  Array.from({ length: next - from }, (_, i) => row(from + i, { value: bytes("v".repeat(size)) }));

describe.skipIf(POSTGRES === null)("a set outlives", () => {
  let database: string;
  let sink: Sink;
  let authorities: readonly Authority[];
  const cleanups: (() => Promise<unknown>)[] = [];

  beforeEach(async () => {
    database = await freshDatabase();
    await begin();
  });
  afterEach(async () => {
    await sink.close();
    for (const c of cleanups.splice(0).reverse()) await c();
  });

  async function begin(over: Partial<PostgresSettings> = {}, lockTimeoutMs = 300): Promise<void> {
    sink = new Sink({ settings: settings(database, over), lockTimeoutMs });
    await sink.prepare();
    authorities = await sink.claimed();
  }

  const lands = (some: readonly Row[]) => sink.sealUntilLanded(some, authorities);
  const there = async () =>
    `${await psql(database, "select count(*), count(distinct _twg_source_offset) from raw")} ${await psql(database, "select first, next from twg.coverage")}`;
  /** A session that holds a lock until it is ended. */
  async function holds(statement: string): Promise<() => Promise<void>> {
    const holder = new Bun.SQL({ ...sqlOptions(), max: 1 });
    const session = await holder.reserve();
    await session.unsafe("begin");
    await session.unsafe(statement);
    return async () => {
      await session.unsafe("rollback");
      session.release();
      await holder.close();
    };
  }
  const sqlOptions = () => {
    const { host, port, user, password } = server();
    return { adapter: "postgres" as const, host, port, user, password, database };
  };

  test("a lock on the table: told, retried, landed once", async () => {
    const release = await holds("lock table raw in access exclusive mode");
    sink.begin(rows(0, 10));
    const f = await failed(sink.seal(rows(0, 10), authorities));
    expect([f.code, f.retry, f.message.includes("55P03")]).toEqual(["postgres.conflict", true, true]);
    await release();
    await lands(rows(0, 10));
    expect(await there()).toBe("10|10 0|10");
  });

  test("a lock on its stream's row", async () => {
    const release = await holds("select * from twg.stream for update");
    sink.begin(rows(0, 10));
    expect((await failed(sink.seal(rows(0, 10), authorities))).code).toBe("postgres.conflict");
    await release();
    await lands(rows(0, 10));
    expect(await there()).toBe("10|10 0|10");
  });

  test("a statement that somebody cancels, and a statement_timeout of the role that is shorter than our work", async () => {
    await psql("postgres", `alter database ${database} set statement_timeout = '1ms'`);
    sink.begin(rows(0, 3000, 200));
    await lands(rows(0, 3000, 200));
    await psql("postgres", `alter database ${database} reset statement_timeout`);
    expect(await there()).toBe("3000|3000 0|3000");
    const release = await holds("lock table raw in access exclusive mode");
    await sink.close();
    await begin({}, 20_000);
    sink.begin(rows(3000, 3010));
    const sealing = failed(sink.seal(rows(3000, 3010), authorities));
    const cancel = `select count(pg_cancel_backend(pid)) from pg_stat_activity where datname = '${database}' and wait_event_type = 'Lock'`;
    while ((await psql("postgres", cancel)) === "0") await Bun.sleep(20);
    expect((await sealing).code).toBe("postgres.timeout");
    await release();
    await lands(rows(3000, 3010));
    expect(await there()).toBe("3010|3010 0|3010");
  });

  test("a deadlock", async () => {
    await psql(database, "alter role current_user set deadlock_timeout = '50ms'");
    cleanups.push(() => psql("postgres", "alter role current_user reset deadlock_timeout"));
    await psql(
      database,
      `create table a(x int); create table b(x int); insert into a values (1); insert into b values (1);
       create function both_of_them() returns trigger language plpgsql as
       $$ begin update a set x = x + 1; perform pg_sleep(0.2); update b set x = x + 1; return null; end $$;
       create trigger t after insert on raw for each statement execute function both_of_them()`,
    );
    await sink.close();
    await begin({}, 20_000);
    sink.begin(rows(0, 5));
    const other = new Bun.SQL({ ...sqlOptions(), max: 1 });
    const against = other.begin(async (tx) => {
      await tx`update b set x = x + 1`;
      await tx`select pg_sleep(0.3)`;
      await tx`update a set x = x + 1`;
    });
    const [mine, theirs] = await Promise.allSettled([sink.seal(rows(0, 5), authorities), against]);
    // One of the two is the victim; where it is ours, it is told so.
    expect([mine.status, theirs.status].sort()).toEqual(["fulfilled", "rejected"]);
    if (mine.status === "rejected") {
      expect(asFailure(mine.reason)).toMatchObject({ code: "postgres.conflict", retry: true });
      await lands(rows(0, 5));
    }
    await other.close();
    expect(await there()).toBe("5|5 0|5");
  });

  test("rights that are taken away, and given back", async () => {
    await psql(
      "postgres",
      "do $$ begin if not exists (select from pg_roles where rolname = 'worker') then create role worker login password 'worker'; end if; end $$",
    );
    await psql(
      database,
      `grant create on database ${database} to worker; grant all on raw to worker; drop schema twg cascade`,
    );
    await sink.close();
    sink = new Sink({ settings: settings(database, { user: "worker", password: "worker" }) });
    authorities = await sink.claimed();
    await psql(database, "revoke insert on raw from worker");
    sink.begin(rows(0, 10));
    const f = await failed(sink.seal(rows(0, 10), authorities));
    expect([f.code, f.kind]).toEqual(["postgres.denied", "environment"]);
    await psql(database, "grant insert on raw to worker");
    await lands(rows(0, 10));
    expect(await there()).toBe("10|10 0|10");
  });

  test("a table that is dropped, and made again", async () => {
    await psql(database, "alter table raw rename to away");
    sink.begin(rows(0, 10));
    const f = await failed(sink.seal(rows(0, 10), authorities));
    expect([f.code, f.kind]).toEqual(["postgres.missing", "environment"]);
    await psql(database, "alter table away rename to raw");
    await lands(rows(0, 10));
    expect(await there()).toBe("10|10 0|10");
  });

  test("sessions that are killed while it is copied, sealed and committed", async () => {
    const kill = `select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = '${database}' and pid <> pg_backend_pid()`;
    let stop = false;
    const killer = (async () => {
      let killed = 0;
      while (!stop) killed += Number(await psql("postgres", kill));
      return killed;
    })();
    for (let i = 0; i < 10; i++) {
      const some = rows(i * 2000, (i + 1) * 2000, 300);
      sink.begin(some);
      await lands(some);
    }
    stop = true;
    expect(await killer).toBeGreaterThan(0);
    expect(await there()).toBe("20000|20000 0|20000");
  });

  test("a server that crashes in the midst of it and comes back", async () => {
    const some = rows(0, 20_000, 300);
    sink.begin(some);
    await sink.writer.flush();
    await shell(server().kill);
    const f = await failed(sink.seal(some, authorities));
    expect([f.retry, /^(postgres|net)\./.test(f.code)]).toEqual([true, true]);
    const down = await failed(sink.seal(some, authorities));
    expect([down.code, down.retry]).toEqual(["net.refused", true]);
    await shell(server().up);
    await lands(some);
    expect(await there()).toBe("20000|20000 0|20000");
    await sink.coverage.heartbeat();
  });

  test("a full disk: told, waited out, landed when there is room", async () => {
    const place = join(server().folder, `small-${database}`);
    mkdirSync(place);
    const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=3m,mode=777", "tmpfs", place]);
    if (!mounted.success) {
      console.error(`SKIP: no tmpfs can be mounted here: a full disk not tried (${mounted.stderr})`);
      rmSync(place, { recursive: true });
      if (process.env.TWG_STRICT === "1" && process.geteuid?.() === 0) throw new Error("no tmpfs");
      return;
    }
    cleanups.push(async () => {
      await psql(database, "drop table if exists raw, ballast");
      await psql("postgres", `drop tablespace if exists small_${database}`);
      Bun.spawnSync(["umount", place]);
      rmSync(place, { recursive: true, force: true });
    });
    mkdirSync(join(place, "space"), { mode: 0o777 });
    Bun.spawnSync(["chmod", "777", join(place, "space")]);
    Bun.spawnSync(["chown", "--reference", join(server().folder, "data"), join(place, "space")]);
    await psql("postgres", `create tablespace small_${database} location '${join(place, "space")}'`);
    await psql(database, `alter table raw set tablespace small_${database}`);
    await psql(
      database,
      "create table ballast tablespace " +
        `small_${database} as select repeat('x', 900) from generate_series(1, 2000)`,
    );
    const some = rows(0, 4000, 300);
    sink.begin(some);
    const f = await failed(sink.seal(some, authorities));
    expect([f.code, f.retry, f.kind]).toEqual(["postgres.full", true, "environment"]);
    expect(await psql(database, "select count(*) from raw")).toBe("0");
    await psql(database, "drop table ballast");
    await psql(database, "vacuum raw");
    await lands(some);
    expect(await there()).toBe("4000|4000 0|4000");
  });

  test.skipIf(POSTGRES?.bouncerPort === null)("pgbouncer in transaction mode", async () => {
    await sink.close();
    await begin({ hosts: [{ host: "127.0.0.1", port: server().bouncerPort ?? 0 }] });
    for (let i = 0; i < 5; i++) {
      const some = rows(i * 1000, (i + 1) * 1000, 1500);
      sink.begin(some);
      await sink.writer.flush();
      await lands(some);
      await sink.coverage.heartbeat();
    }
    expect(await there()).toBe("5000|5000 0|5000");
    expect((await sink.coverage.claim([KEY], null))[0]?.covered).toEqual([{ from: 0n, next: 5000n }]);
  });
});

async function shell(command: string): Promise<void> {
  const child = Bun.spawn(["bash", "-c", command], { stdout: "ignore", stderr: "pipe" });
  const err = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`${command}: ${err}`);
}
