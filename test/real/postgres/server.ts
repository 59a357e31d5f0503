/**
 * The real PostgreSQL of these tests, as scripts/with-servers.sh hands it over (TWG_REAL_POSTGRES). Databases are made
 * for each test file; what landed is read by psql, the server's own client.
 */
import { test } from "bun:test";
import { readFileSync } from "node:fs";
import { createNet } from "../../../src/adapters/net/net.ts";
import type { ClientParts } from "../../../src/adapters/postgres/client.ts";
import type { PostgresSettings } from "../../../src/adapters/postgres/settings.ts";
import { systemChance } from "../../../src/adapters/system/chance.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { systemSaslCrypto } from "../../../src/adapters/system/sasl-crypto.ts";
import { tidyAtEnd } from "../../tidy.ts";

export interface RealPostgres {
  readonly version: string;
  readonly host: string;
  readonly port: number;
  readonly bouncerPort: number | null;
  readonly user: string;
  readonly password: string;
  readonly ca: string;
  readonly wrongCa: string;
  readonly clientCert: string;
  readonly clientKey: string;
  readonly folder: string;
  readonly kill: string;
  readonly up: string;
}

const found = process.env.TWG_REAL_POSTGRES;
export const POSTGRES: RealPostgres | null =
  found === undefined || found === "" ? null : (JSON.parse(found) as RealPostgres);

/** A loud line where the server is missing, and a failure where that is not allowed (TWG_STRICT). */
export function demandPostgres(what: string): void {
  const strict = process.env.TWG_STRICT === "1";
  if (POSTGRES === null)
    console.error(`SKIP: no real PostgreSQL (scripts/with-servers.sh): ${what} not tried`);
  test.skipIf(POSTGRES === null && !strict)(`${what}: there is a real PostgreSQL`, () => {
    if (POSTGRES === null) throw new Error("TWG_REAL_POSTGRES is not set");
  });
}

export const parts: ClientParts = {
  net: createNet(systemClock),
  clock: systemClock,
  crypto: systemSaslCrypto,
  chance: systemChance,
};

export function server(): RealPostgres {
  if (POSTGRES === null) throw new Error("there is no real PostgreSQL");
  return POSTGRES;
}

export function settings(database: string, over: Partial<PostgresSettings> = {}): PostgresSettings {
  const { host, port, user, password, ca } = server();
  return {
    hosts: [{ host, port }],
    user,
    password,
    database,
    applicationName: "twg test",
    sslMode: "disable",
    channelBinding: "prefer",
    tls: { ca: readFileSync(ca, "utf8") },
    connectTimeoutMs: 10_000,
    answerTimeoutMs: 20_000,
    ...over,
  };
}

function psqlCall(database: string, statements: string) {
  const { host, port, user, password } = server();
  const target = `host=${host} port=${port} user=${user} dbname=${database}`;
  return {
    cmd: ["psql", "-qtAX", "-v", "ON_ERROR_STOP=1", target, "-c", statements],
    env: { ...process.env, PGPASSWORD: password, PGTZ: "UTC" },
  };
}

/** Output of statements by psql, rows as lines, fields separated by `|`. */
export async function psql(database: string, statements: string): Promise<string> {
  const { cmd, env } = psqlCall(database, statements);
  const child = Bun.spawn(cmd, { stdin: "ignore", stdout: "pipe", stderr: "pipe", env });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`psql: ${err}`);
  return out.trim();
}

/** The same while everything else in this process stands still. */
export function psqlNow(database: string, statements: string): string {
  const { cmd, env } = psqlCall(database, statements);
  const { exitCode, stdout, stderr } = Bun.spawnSync(cmd, { stdin: "ignore", env });
  if (exitCode !== 0) throw new Error(`psql: ${stderr}`);
  return String(stdout).trim();
}

export const lines = (text: string): string[] => (text === "" ? [] : text.split("\n"));

let serial = 0;
const made: string[] = [];

tidyAtEnd(async () => {
  for (const name of made.splice(0)) await psql("postgres", `drop database if exists ${name} with (force)`);
});

/** An empty database that goes at the end of the run. */
export async function freshDatabase(options = ""): Promise<string> {
  const name = `t_${process.pid}_${serial++}`;
  await psql("postgres", `create database ${name} ${options}`);
  made.push(name);
  return name;
}

/** Waits for something to become true; it is the test's own time-out that ends a wait in vain. */
export async function until(is: () => Promise<boolean>): Promise<void> {
  while (!(await is())) await Bun.sleep(20);
}
