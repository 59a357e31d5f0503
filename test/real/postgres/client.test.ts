/**
 * Goal: a connection is as safe as its sslmode says, every way to log in works or is refused by name, and every failure
 * of a server comes out as one code. Method: a real server with users and databases of each kind, and impostors.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { PgConnection } from "../../../src/adapters/postgres/client.ts";
import type { PostgresSettings } from "../../../src/adapters/postgres/settings.ts";
import { failed } from "./failed.ts";
import { demandPostgres, freshDatabase, POSTGRES, parts, psql, server, settings, until } from "./server.ts";

demandPostgres("connections");

const open: PgConnection[] = [];
const servers: Server[] = [];
afterAll(() => {
  for (const c of open) c.close();
  for (const s of servers) s.close();
});

async function connected(database: string, over: Partial<PostgresSettings> = {}): Promise<PgConnection> {
  const connection = await PgConnection.open(settings(database, over), parts);
  open.push(connection);
  return connection;
}

const code = async (work: Promise<unknown>): Promise<string> => (await failed(work)).code;

/** A peer that says one thing to everybody; its port. */
function impostor(answer: string | Uint8Array): Promise<number> {
  return new Promise((resolve) => {
    const peer = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.write(answer));
    });
    servers.push(peer);
    peer.listen(0, "127.0.0.1", () => {
      const address = peer.address();
      resolve(address !== null && typeof address === "object" ? address.port : 0);
    });
  });
}

describe.skipIf(POSTGRES === null)("TLS", () => {
  const named = () => ({ hosts: [{ host: "localhost", port: server().port }] });
  const wrongCa = () => ({ ca: readFileSync(server().wrongCa, "utf8") });
  const otherName = () => ({ ...settings("twg").tls, serverName: "other.example" });
  const secure = async (over: Partial<PostgresSettings>) => {
    const c = await connected("twg", { ...named(), ...over });
    return (await c.query("select ssl::text from pg_stat_ssl where pid = pg_backend_pid()")).rows[0]?.[0];
  };

  test("disable is plain text, prefer takes TLS where it is", async () => {
    expect(await secure({ sslMode: "disable" })).toBe("false");
    expect(await secure({ sslMode: "prefer" })).toBe("true");
  });

  test("verify-full wants the authority and the name", async () => {
    expect(await secure({ sslMode: "verify-full" })).toBe("true");
    expect(await code(secure({ sslMode: "verify-full", tls: wrongCa() }))).toBe("net.tls_untrusted");
    expect(await code(secure({ sslMode: "verify-full", tls: otherName() }))).toBe("net.tls_name");
  });

  test("verify-ca wants the authority alone, require nothing", async () => {
    expect(await secure({ sslMode: "verify-ca", tls: otherName() })).toBe("true");
    expect(await code(secure({ sslMode: "verify-ca", tls: wrongCa() }))).toBe("net.tls_untrusted");
    expect(await secure({ sslMode: "require", tls: { ...wrongCa(), serverName: "other.example" } })).toBe(
      "true",
    );
  });

  test("a client certificate is sent where the server asks for one", async () => {
    const { clientCert, clientKey } = server();
    const pair = { cert: readFileSync(clientCert, "utf8"), key: readFileSync(clientKey, "utf8") };
    const over = { ...named(), sslMode: "verify-full" as const };
    expect(await code(connected("certonly", over))).toBe("postgres.auth_failed");
    const c = await connected("certonly", { ...over, tls: { ...settings("twg").tls, ...pair } });
    expect((await c.query("select 1")).rows).toEqual([["1"]]);
  });

  test("plain text to a server that wants TLS, and TLS to one that has none", async () => {
    expect(await code(connected("tlsonly", { sslMode: "disable" }))).toBe("postgres.auth_failed");
    const none = await impostor("N");
    const at = { hosts: [{ host: "127.0.0.1", port: none }], connectTimeoutMs: 500 };
    expect(await code(connected("twg", { ...at, sslMode: "require" }))).toBe("postgres.tls_refused");
    // prefer goes on in plain text; this peer then says nothing more.
    expect(await code(connected("twg", { ...at, sslMode: "prefer" }))).toBe("postgres.timeout");
  });

  test("bytes that somebody puts before the TLS handshake are refused", async () => {
    const port = await impostor("SE and what the server is to have said");
    const over = { hosts: [{ host: "127.0.0.1", port }], sslMode: "require" as const };
    expect(await code(connected("twg", over))).toBe("net.tls_handshake");
  });

  test("another service on the port is named", async () => {
    const web = await impostor("HTTP/1.1 400 Bad Request\r\n\r\n");
    for (const sslMode of ["disable", "require"] as const) {
      const over = { hosts: [{ host: "127.0.0.1", port: web }], sslMode };
      expect(await code(connected("twg", over))).toMatch(/postgres.not_postgres|net.tls_handshake/);
    }
  });

  test("the login is bound to the TLS connection, if the server can", async () => {
    const over = { ...named(), sslMode: "verify-full" as const, channelBinding: "require" as const };
    expect((await (await connected("twg", over)).query("select 1")).rows).toEqual([["1"]]);
    const plain = { ...over, sslMode: "disable" as const };
    expect(await code(connected("twg", plain))).toBe("postgres.auth_unsupported");
  });
});

describe.skipIf(POSTGRES === null)("a login", () => {
  beforeAll(async () => {
    await psql(
      "postgres",
      `do $$ begin
         if not exists (select from pg_roles where rolname = 'md5user') then
           set password_encryption = 'md5'; create role md5user login password 'old pw';
           set password_encryption = 'scram-sha-256';
           create role plainuser login password 'clear pw';
           create role nonascii login password 'pä\u00a0\u2168ss';
         end if; end $$`,
    );
  });

  test("by SCRAM, with what SASLprep makes of a password", async () => {
    // PostgreSQL stored what RFC 4013 makes of it: the other space is a space, the Roman nine is "IX".
    const c = await connected("twg", { user: "nonascii", password: "pä IXss" });
    expect((await c.query("select current_user::text")).rows).toEqual([["nonascii"]]);
    expect((await connected("twg", { user: "nonascii", password: "pä\u00a0\u2168ss" })).failure).toBeNull();
  });

  test("by MD5", async () => {
    const c = await connected("twg", { user: "md5user", password: "old pw" });
    expect((await c.query("select current_user::text")).rows).toEqual([["md5user"]]);
  });

  test("in clear text only to a server that has proven who it is", async () => {
    const user = { user: "plainuser", password: "clear pw" };
    expect(await code(connected("twg", user))).toBe("postgres.auth_unsupported");
    expect(await code(connected("twg", { ...user, sslMode: "require" }))).toBe("postgres.auth_unsupported");
    const hosts = [{ host: "localhost", port: server().port }];
    const c = await connected("twg", { ...user, hosts, sslMode: "verify-full" });
    expect((await c.query("select current_user::text")).rows).toEqual([["plainuser"]]);
  });

  test("with a wrong or a missing password, to a database that is not there", async () => {
    const wrong = await failed(connected("twg", { password: "secret guess" }));
    expect([wrong.code, wrong.retry]).toEqual(["postgres.auth_failed", false]);
    expect(JSON.stringify([wrong.message, wrong.hint])).not.toContain("guess");
    expect(await code(connected("twg", { password: null }))).toBe("postgres.auth_failed");
    expect(await code(connected("nowhere"))).toBe("postgres.missing");
  });

  test("nobody listens, or never answers", async () => {
    expect(await code(connected("twg", { hosts: [{ host: "127.0.0.1", port: 1 }] }))).toBe("net.refused");
    const silent = await impostor("");
    const over = { hosts: [{ host: "127.0.0.1", port: silent }], connectTimeoutMs: 300 };
    expect(await code(connected("twg", over))).toBe("postgres.timeout");
  });

  test("of several hosts the one that takes writes is found", async () => {
    const hosts = [
      { host: "127.0.0.1", port: 1 },
      { host: server().host, port: server().port },
    ];
    expect((await connected("twg", { hosts })).at).toBe(`${server().host}:${server().port}`);
    const database = await freshDatabase();
    await psql("postgres", `alter database ${database} set default_transaction_read_only = on`);
    const f = await failed(connected(database));
    expect([f.code, f.retry]).toEqual(["postgres.read_only", true]);
  });
});

describe.skipIf(POSTGRES === null)("statements", () => {
  let database: string;
  beforeAll(async () => {
    database = await freshDatabase();
  });

  test("parameters and results of every shape: null, empty, quotes, all of Unicode", async () => {
    const c = await connected(database);
    const texts = ["", "'", '"\\', "ü😀\u{10ffff}\u0001", "a\nb"];
    const asked = await c.query(
      "select $1::text, $2::text, $3::text, $4::text, $5::text, $6::text",
      null,
      ...texts,
    );
    expect(asked).toEqual({ rows: [[null, ...texts]], tag: "SELECT 1" });
    expect((await c.query("select where false")).rows).toEqual([]);
  });

  test("an error names its place and leaves the connection usable", async () => {
    const c = await connected(database);
    await c.script("create table one(a int primary key check (a < 10))");
    await c.query("insert into one values (1)");
    const doubled = await failed(c.query("insert into one values (1)"));
    expect([doubled.code, doubled.retry]).toEqual(["postgres.constraint", false]);
    expect(doubled.message).toContain("constraint one_pkey");
    // What a row holds is nobody's business: the server's DETAIL says (a)=(1).
    expect(doubled.message).not.toContain("(1)");
    expect(await code(c.query("select * from nowhere"))).toBe("postgres.missing");
    expect(await code(c.query("select nothing from one"))).toBe("postgres.table_mismatch");
    expect((await c.query("select count(*)::text from one")).rows).toEqual([["1"]]);
  });

  test("a pipeline stops at its first error, and nothing after it happens", async () => {
    const c = await connected(database);
    await c.script("create table piped(a int)");
    const insert = (a: string) => ({ sql: "insert into piped values ($1::int)", parameters: [a] });
    expect(await code(c.pipeline([insert("1"), insert("x"), insert("2")]))).toBe("postgres.value_refused");
    expect((await c.query("select count(*)::text from piped")).rows).toEqual([["0"]]);
  });

  test("an answer that is late ends the connection, and the statement on the server too", async () => {
    const c = await connected(database, { answerTimeoutMs: 300 });
    const f = await failed(c.query("select pg_sleep(60), 'late one'"));
    expect([f.code, f.retry]).toEqual(["postgres.timeout", true]);
    expect(c.failure).toBe(f);
    const running =
      "select count(*) from pg_stat_activity where query like '%late one%' and pid <> pg_backend_pid()";
    await until(async () => (await psql(database, running)) === "0");
  });

  test("a session that the server ends says why, and everything after fails the same way", async () => {
    const c = await connected(database);
    const [[pid = ""] = []] = (await c.query("select pg_backend_pid()::text")).rows;
    const waiting = failed(c.query("select pg_sleep(60)"));
    await psql("postgres", `select pg_terminate_backend(${pid})`);
    const f = await waiting;
    expect([f.code, f.retry]).toEqual(["postgres.unavailable", true]);
    expect(await failed(c.query("select 1"))).toBe(f);
  });
});

describe.skipIf(POSTGRES === null)("COPY", () => {
  let database: string;
  beforeAll(async () => {
    database = await freshDatabase();
    await psql(database, "create table copied(a int check (a < 1000), b text)");
  });

  /** A CopyData message with these bytes, a character each. */
  function data(text: string): Uint8Array {
    const content = Buffer.from(text, "latin1");
    const message = new Uint8Array(5 + content.length);
    message[0] = 0x64;
    new DataView(message.buffer).setInt32(1, 4 + content.length);
    message.set(content, 5);
    return message;
  }

  test("counts the rows that the server took", async () => {
    const c = await connected(database);
    const copy = await c.copyIn("copy copied from stdin");
    await copy.write(data("1\ta\n2\tb\n"));
    await copy.write(data("3\t\\N\n"));
    expect(await copy.end()).toBe(3);
    expect(await psql(database, "select count(*), count(b) from copied")).toBe("3|2");
  });

  for (const [what, text, expected] of [
    ["a value of no such type", "1\ta\nx\tb\n", "postgres.value_refused"],
    ["a row that a constraint refuses", "5000\ta\n", "postgres.constraint"],
    ["text with a NUL", "1\ta\0b\n", "postgres.value_refused"],
    ["text that is no UTF-8", "1\t\xff\n", "postgres.value_refused"],
  ] as const) {
    test(`${what}: the error comes out, before or at the end, and the connection goes on`, async () => {
      const c = await connected(database);
      const copy = await c.copyIn("begin; copy copied from stdin");
      const f = await failed(copy.write(data(text)).then(() => copy.end()));
      expect(f.code).toBe(expected);
      await c.script("rollback");
      expect((await c.query("select 1")).rows).toEqual([["1"]]);
    });
  }

  test("a server that stands still takes no more, and memory does not grow", async () => {
    const c = await connected(database, { answerTimeoutMs: 1000 });
    const [[pid = ""] = []] = (await c.query("select pg_backend_pid()::text")).rows;
    const copy = await c.copyIn("begin; copy copied from stdin");
    await copy.write(data("1\ta\n"));
    process.kill(Number(pid), "SIGSTOP");
    try {
      const row = data(`1\t${"x".repeat(1_000_000)}\n`);
      let taken = 0;
      const f = await failed(
        (async () => {
          for (; taken < 200; taken++) await copy.write(row);
        })(),
      );
      // What fits into the sockets' buffers, and no more.
      expect([f.code, taken < 60]).toEqual(["postgres.timeout", true]);
    } finally {
      process.kill(Number(pid), "SIGCONT");
    }
  });

  test("a session that is killed in the midst of it is told", async () => {
    const c = await connected(database);
    const [[pid = ""] = []] = (await c.query("select pg_backend_pid()::text")).rows;
    const copy = await c.copyIn("begin; copy copied from stdin");
    await copy.write(data("1\ta\n"));
    await psql("postgres", `select pg_terminate_backend(${pid})`);
    expect(await code(copy.end())).toBe("postgres.unavailable");
  });
});

describe.skipIf(POSTGRES === null || POSTGRES.bouncerPort === null)("through pgbouncer", () => {
  const pooled = () => ({ hosts: [{ host: "127.0.0.1", port: server().bouncerPort ?? 0 }] });

  // Four server connections for all: statements of one client run on whichever is free.
  test("in transaction mode nothing that we do is left behind in a server session", async () => {
    const clients = await Promise.all(Array.from({ length: 12 }, () => connected("twg", pooled())));
    const asked = await Promise.all(
      clients.flatMap((c, i) => [c.query("select $1::text, pg_backend_pid()::text", String(i))]),
    );
    expect(asked.map((r) => r.rows[0]?.[0])).toEqual(clients.map((_, i) => String(i)));
    for (let round = 0; round < 5; round++) {
      const again = await Promise.all(clients.map((c) => c.query("select $1::int + 1", "41")));
      expect(new Set(again.map((r) => r.rows[0]?.[0]))).toEqual(new Set(["42"]));
    }
  });

  test("a pooler without TLS is refused where TLS is wanted", async () => {
    expect(await code(connected("twg", { ...pooled(), sslMode: "require" }))).toBe("postgres.tls_refused");
  });
});
