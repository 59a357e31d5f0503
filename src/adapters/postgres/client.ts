/** A connection to PostgreSQL: joins the session to the network and to time. One exchange at a time. */
import { createHash } from "node:crypto";
import { Failure } from "../../core/failure/failure.ts";
import type { Connection, DialOptions, Net } from "../../core/ports/net.ts";
import type { SaslCrypto } from "../../core/sasl/mechanism.ts";
import type { Chance } from "../../core/time/chance.ts";
import type { Clock, Timer } from "../../core/time/clock.ts";
import { endPointHash } from "./end-point-hash.ts";
import { Login } from "./session/login.ts";
import { type Exchange, PgSession, type Result } from "./session/session.ts";
import type { PostgresHost, PostgresSettings } from "./settings.ts";
import type { Statement } from "./wire/frontend.ts";
import * as frontend from "./wire/frontend.ts";

export interface ClientParts {
  readonly net: Net;
  readonly clock: Clock;
  readonly crypto: SaslCrypto;
  readonly chance: Chance;
}

/** A COPY FROM STDIN under way. Whatever fails here also ends the transaction it stands in. */
export interface CopyIn {
  /**
   * Hands over a piece with its head (see `copyDataHead`); resolves when the next one may follow, which is when the
   * network has taken this one.
   */
  write(message: Uint8Array): Promise<void>;
  /** Resolves with the rows that the server took. */
  end(): Promise<number>;
}

const S = "S".charCodeAt(0);
const N = "N".charCodeAt(0);

export class PgConnection {
  readonly at: string;
  readonly #settings: PostgresSettings;
  readonly #host: PostgresHost;
  readonly #p: ClientParts;
  readonly #life = new AbortController();
  #connection: Connection | null = null;
  #session: PgSession | null = null;
  #drained: (() => void) | null = null;

  private constructor(settings: PostgresSettings, host: PostgresHost, parts: ClientParts) {
    this.#settings = settings;
    this.#host = host;
    this.#p = parts;
    this.at = host.host.includes(":") ? `[${host.host}]:${host.port}` : `${host.host}:${host.port}`;
  }

  /** Connected, logged in and at a server that takes writes. Tries the hosts in turn. */
  static async open(settings: PostgresSettings, parts: ClientParts): Promise<PgConnection> {
    let failure: Failure | null = null;
    for (const host of settings.hosts) {
      const connection = new PgConnection(settings, host, parts);
      try {
        await connection.#open();
        return connection;
      } catch (e) {
        connection.close();
        if (!(e instanceof Failure)) throw e;
        // What will not pass (a wrong password) tells more than a host that is down.
        if (failure === null || failure.retry) failure = e;
      }
    }
    throw failure ?? new Failure("internal.bug", "a Postgres url without hosts");
  }

  /** Null while it can be used. */
  get failure(): Failure | null {
    return this.#session?.failure ?? null;
  }

  /** What the server said last: it is in a transaction that has not failed. */
  get inTransaction(): boolean {
    return this.failure === null && this.#session?.transaction === "T";
  }

  parameter(name: string): string | null {
    return this.#session?.parameters.get(name) ?? null;
  }

  /** One statement. */
  async query(sql: string, ...parameters: (string | null)[]): Promise<Result> {
    const [result] = await this.pipeline([{ sql, parameters }]);
    if (result === undefined) throw new Failure("internal.bug", "a statement without a result");
    return result;
  }

  /** All in one round trip; the first error skips those that follow. */
  pipeline(statements: readonly Statement[]): Promise<readonly Result[]> {
    return this.#exchange(frontend.pipeline(statements));
  }

  /**
   * The same for statements that end in COMMIT. When its answer is late nothing is cancelled: that would end the wait
   * for a synchronous standby, and the commit would stand without it.
   */
  commit(statements: readonly Statement[]): Promise<readonly Result[]> {
    return this.#exchange(frontend.pipeline(statements), false);
  }

  /** Statements without parameters, in the simple protocol. */
  script(sql: string): Promise<readonly Result[]> {
    return this.#exchange(frontend.simpleQuery(sql));
  }

  /** `sql` may hold statements before its COPY; resolves when the server waits for data. */
  copyIn(sql: string): Promise<CopyIn> {
    return new Promise((resolve, reject) => {
      let settled: { readonly failure: Failure } | { readonly results: readonly Result[] } | null = null;
      let wake: () => void = () => {};
      const settle = (s: NonNullable<typeof settled>) => {
        deadline.cancel();
        settled = s;
        wake();
        this.#drained?.();
        if ("failure" in s) reject(s.failure);
      };
      const deadline = this.#deadline();
      this.#live().begin({
        request: frontend.simpleQuery(sql),
        copying: () => {
          deadline.cancel();
          resolve({
            write: async (message) => {
              if (settled !== null && "failure" in settled) throw settled.failure;
              await this.#send(message);
              if (settled !== null && "failure" in settled) throw settled.failure;
            },
            end: async () => {
              if (settled === null) {
                this.#connection?.write(frontend.copyDone());
                const timer = this.#deadline();
                await new Promise<void>((r) => {
                  wake = r;
                });
                timer.cancel();
              }
              const s = settled as NonNullable<typeof settled> | null;
              if (s === null || "failure" in s) throw s?.failure ?? new Failure("internal.bug", "no answer");
              return copiedRows(s.results);
            },
          });
        },
        done: (results) => settle({ results }),
        failed: (failure) => settle({ failure }),
      });
    });
  }

  /**
   * A COPY TO STDOUT, and statements around it, in the simple protocol: `take` gets its bytes in pieces, which are its own; resolves
   * with the number of rows. `maxBytes`: of a piece.
   */
  async copyOut(sql: string, maxBytes: number, take: (bytes: Uint8Array) => void): Promise<number> {
    return copiedRows(await this.#exchange(frontend.simpleQuery(sql), true, { maxBytes, take }));
  }

  /** Ends it at once; what is under way fails. */
  close(): void {
    this.#life.abort();
    if (this.#session?.failure === null) this.#connection?.write(frontend.terminate());
    this.#session?.end(new Failure("internal.cancelled", "the connection was closed", { at: this.at }));
    this.#connection?.close();
  }

  async #open(): Promise<void> {
    const { connectTimeoutMs: timeoutMs } = this.#settings;
    const began = this.#p.clock.monotonic();
    await this.#dial(timeoutMs);
    const left = Math.max(1, timeoutMs - (this.#p.clock.monotonic() - began));
    await this.#start(left);
    const standby = this.parameter("in_hot_standby") === "on";
    const readOnly = this.parameter("default_transaction_read_only") === "on";
    if (!standby && !readOnly) return;
    throw new Failure("postgres.read_only", `${this.at} is ${standby ? "a standby" : "set to read only"}`, {
      at: this.at,
      hint: "Name the primary, or all hosts of the cluster, in the url",
    });
  }

  async #dial(timeoutMs: number): Promise<void> {
    this.#connection = await this.#p.net.dial(this.#dialOptions(timeoutMs, this.#life.signal), {
      data: (chunk) => this.#session?.receive(chunk),
      close: (error) => {
        this.#session?.lost(error);
        this.#drained?.();
      },
      drained: () => this.#drained?.(),
    });
  }

  #dialOptions(timeoutMs: number, signal: AbortSignal): DialOptions {
    const { sslMode, tls } = this.#settings;
    const plain = { ...this.#host, tls: null, timeoutMs, signal };
    if (sslMode === "disable") return plain;
    const verify = sslMode === "verify-full" ? "full" : sslMode === "verify-ca" ? "chain" : "none";
    const answered = (byte: number): "tls" | "plain" => {
      if (byte === S) return "tls";
      if (byte !== N) {
        throw new Failure("postgres.not_postgres", `${this.at} does not answer as PostgreSQL does`, {
          at: this.at,
          hint: "Another service listens there: check host and port of the url",
        });
      }
      if (sslMode === "prefer") return "plain";
      throw new Failure(
        "postgres.tls_refused",
        `${this.at} speaks no TLS, and sslmode = "${sslMode}" wants it`,
        {
          at: this.at,
          hint: 'Turn ssl on at the server; sslmode = "disable" sends everything, records included, readable for all between',
        },
      );
    };
    const startTls = { request: frontend.sslRequest(), answered };
    return { ...plain, tls: { ...tls, verify, section: "sink.tls" }, startTls };
  }

  #start(timeoutMs: number): Promise<void> {
    const { user, password, database, applicationName, sslMode, channelBinding } = this.#settings;
    const connection = this.#connection;
    if (connection === null) throw new Failure("internal.bug", "a start before the dial");
    const { certificate } = connection;
    const login = new Login({
      at: this.at,
      user,
      password,
      trusted: certificate !== null && (sslMode === "verify-full" || sslMode === "verify-ca"),
      endPoint: certificate === null ? null : endPointHash(certificate),
      md5: (input) => createHash("md5").update(input).digest("hex"),
      channelBinding,
      crypto: this.#p.crypto,
      chance: this.#p.chance,
    });
    const startup = { user, database, application_name: applicationName, client_encoding: "UTF8" };
    return new Promise((resolve, reject) => {
      const settings = { at: this.at, login, startup };
      const session = new PgSession(settings, connection, {
        ready: () => {
          timer.cancel();
          resolve();
        },
        ended: (failure) => {
          timer.cancel();
          reject(failure);
        },
      });
      const timer = this.#p.clock.after(timeoutMs, () => session.end(this.#late(timeoutMs, "the login")));
      this.#session = session;
      session.opened();
    });
  }

  #exchange(
    request: Uint8Array,
    cancel = true,
    out?: NonNullable<Exchange["out"]>,
  ): Promise<readonly Result[]> {
    return new Promise((resolve, reject) => {
      const timer = this.#deadline(cancel);
      this.#live().begin({
        request,
        ...(out === undefined ? {} : { out }),
        done: (results) => {
          timer.cancel();
          resolve(results);
        },
        failed: (failure) => {
          timer.cancel();
          reject(failure);
        },
      });
    });
  }

  async #send(message: Uint8Array): Promise<void> {
    const connection = this.#connection;
    if (connection === null) throw new Failure("internal.bug", "not connected");
    connection.write(message);
    if (connection.queued === 0) return;
    const timer = this.#deadline();
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
    this.#drained = null;
    timer.cancel();
  }

  /** Ends the connection when the server has not answered in time, and asks it to give the work up. */
  #deadline(cancel = true): Timer {
    const { answerTimeoutMs } = this.#settings;
    return this.#p.clock.after(answerTimeoutMs, () => {
      if (cancel) void this.#cancel();
      this.#session?.end(this.#late(answerTimeoutMs, "an answer"));
      this.#drained?.();
    });
  }

  #late(ms: number, what: string): Failure {
    return new Failure("postgres.timeout", `${what} took longer than ${Math.round(ms)} ms`, {
      at: this.at,
      hint: "Is the table locked, or the server overloaded?",
    });
  }

  /** On a connection of its own, as the protocol wants it. That it fails changes nothing. */
  async #cancel(): Promise<void> {
    const key = this.#session?.key;
    if (key === null || key === undefined) return;
    const signal = new AbortController().signal;
    try {
      const ignore = { data: () => {}, close: () => {} };
      const c = await this.#p.net.dial(this.#dialOptions(5000, signal), ignore);
      c.write(frontend.cancelRequest(key.processId, key.secret));
      c.close();
    } catch {
      // The server ends the work by itself once it notices that nobody listens.
    }
  }

  #live(): PgSession {
    if (this.#session === null) throw new Failure("internal.bug", "the connection is not open yet");
    return this.#session;
  }
}

function copiedRows(results: readonly Result[]): number {
  const tag = results.map((r) => /^COPY (\d+)$/.exec(r.tag)).findLast((m) => m !== null);
  if (tag === undefined || tag === null)
    throw new Failure("internal.bug", "a COPY without its count of rows");
  return Number(tag[1]);
}
