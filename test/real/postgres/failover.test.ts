/**
 * Goal: a primary that dies costs a wait and nothing else, where a synchronous standby takes its place; a standby is never
 * written. Method: two real servers of the test's own, the second a streaming standby of the first, which is promoted after
 * the first was killed in the midst of a set.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PgConnection } from "../../../src/adapters/postgres/client.ts";
import type { PostgresSettings } from "../../../src/adapters/postgres/settings.ts";
import { asFailure } from "../../../src/core/failure/failure.ts";
import type { Authority } from "../../../src/core/ports/coverage.ts";
import { bytes, type Row, row } from "../../core/formats/parquet/rows.ts";
import { freePorts } from "../../servers/ports.ts";
import {
  killPostgres,
  type PostgresServer,
  psql,
  SUPERUSER,
  startPostgres,
  stopPostgres,
  upPostgres,
} from "../../servers/postgres/server.ts";
import { demandPostgres, POSTGRES, parts, until } from "./server.ts";
import { Sink } from "./sink.ts";

demandPostgres("failover");

const rows = (from: number, next: number): Row[] =>
  Array.from({ length: next - from }, (_, i) => row(from + i, { value: bytes("v".repeat(300)) }));

describe.skipIf(POSTGRES === null)("a failover", () => {
  const folder = mkdtempSync(join(tmpdir(), "twg-failover-"));
  const at = { primary: join(folder, "primary"), standby: join(folder, "standby") };
  let primary: PostgresServer;
  let standby: PostgresServer;

  beforeAll(async () => {
    primary = await startPostgres(at.primary);
    await stopPostgres(at.primary);
    // Later lines win. Whoever may log in may replicate here.
    appendFileSync(
      join(at.primary, "data/postgresql.auto.conf"),
      "wal_level = replica\nmax_wal_senders = 4\n",
    );
    appendFileSync(join(at.primary, "data/pg_hba.conf"), "host replication all 127.0.0.1/32 scram-sha-256\n");
    await upPostgres(at.primary);
    const [port = 0] = await freePorts(1);
    standby = { ...primary, port, bouncerPort: null, processes: {} };
    mkdirSync(at.standby);
    const data = join(at.standby, "data");
    const target = `host=127.0.0.1 port=${primary.port} user=${SUPERUSER.user} password='${SUPERUSER.password.replaceAll("'", "\\'")}' application_name=standby`;
    const copied = Bun.spawnSync([
      join(primary.bin, "pg_basebackup"),
      "-D",
      data,
      "-d",
      target,
      "-R",
      "-X",
      "stream",
      "-c",
      "fast",
    ]);
    if (!copied.success) throw new Error(`pg_basebackup: ${copied.stderr}`);
    const own = `port = ${port}\nunix_socket_directories = '${at.standby}'\n`;
    appendFileSync(join(data, "postgresql.auto.conf"), own);
    if (primary.runAs !== null) {
      const { uid, gid } = primary.runAs;
      const owned = Bun.spawnSync(["chown", "-R", `${uid}:${gid}`, at.standby]);
      if (!owned.success) throw new Error(`chown: ${owned.stderr}`);
    }
    writeFileSync(join(at.standby, "postgres.json"), JSON.stringify(standby));
    await upPostgres(at.standby);
    psql(primary, "postgres", "alter system set synchronous_standby_names = 'standby'");
    psql(primary, "postgres", "select pg_reload_conf()");
    await until(
      async () => psql(primary, "postgres", "select sync_state from pg_stat_replication") === "sync",
    );
  }, 60_000);
  afterAll(async () => {
    await Promise.all([stopPostgres(at.standby), stopPostgres(at.primary)]);
    rmSync(folder, { recursive: true, force: true });
  });

  const settings = (...servers: PostgresServer[]): PostgresSettings => ({
    ...SUPERUSER,
    hosts: servers.map(({ port }) => ({ host: "127.0.0.1", port })),
    database: "twg",
    applicationName: "twg test",
    sslMode: "disable",
    channelBinding: "prefer",
    tls: { ca: readFileSync(primary.tls.ca, "utf8") },
    connectTimeoutMs: 10_000,
    answerTimeoutMs: 20_000,
  });
  const count = (server: PostgresServer) =>
    psql(
      server,
      "twg",
      "select count(*), count(distinct _twg_source_offset), (select next from twg.coverage) from raw",
    );

  test("a standby is not written: alone it is refused by name, among others it is passed over", async () => {
    const e: unknown = await PgConnection.open(settings(standby), parts).catch((f: unknown) => f);
    expect(e).toMatchObject({ code: "postgres.read_only", retry: true });
    const c = await PgConnection.open(settings(standby, primary), parts);
    expect(c.at).toBe(`127.0.0.1:${primary.port}`);
    c.close();
  });

  test("a set that is half there when the primary dies lands on the promoted standby, once", async () => {
    const sink = new Sink({ settings: settings(primary, standby) });
    await sink.prepare();
    const authorities: readonly Authority[] = await sink.claimed();
    await sink.land(rows(0, 1000), authorities);
    const some = rows(1000, 8000);
    sink.begin(some);
    await sink.writer.flush();
    await killPostgres(at.primary);
    const codes = new Set<string>();
    let promoted = false;
    for (;;) {
      try {
        await sink.seal(some, authorities);
        break;
      } catch (e) {
        const f = asFailure(e);
        expect([f.code, f.retry]).toEqual([f.code, true]);
        codes.add(f.code);
        // Not before a standby that is still one was met.
        if (codes.has("postgres.read_only") && !promoted) {
          promoted = true;
          psql(standby, "postgres", "select pg_promote()");
        }
        await Bun.sleep(50);
      }
    }
    expect(promoted).toBe(true);
    expect(count(standby)).toBe("8000|8000|8000");
    // The owner goes on there as if nothing had been.
    await sink.coverage.heartbeat();
    await sink.land(rows(8000, 8010), authorities);
    expect(count(standby)).toBe("8010|8010|8010");
    await sink.close();
  }, 60_000);
});
