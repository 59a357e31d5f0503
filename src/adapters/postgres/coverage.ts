/**
 * The coverage of a Postgres sink: tables in the sink's own database, so that rows and positions become durable in one
 * commit. The lanes write ranges (state/commit.ts); this is the control thread's end: who owns the sink, which
 * generation a stream has, where it began and what of it is lost.
 *
 * Every change is a transaction that is safe to repeat, so an answer that was lost costs nothing.
 */
import { judgeOwners } from "../../core/coverage/judge.ts";
import { waitedOut } from "../../core/coverage/outage.ts";
import type { Owner } from "../../core/coverage/state.ts";
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type {
  Authority,
  Claim,
  LostRange,
  Origin,
  Range,
  StreamCoverage,
  TopicMemory,
} from "../../core/ports/coverage.ts";
import type { HostIdentity } from "../../core/ports/host-identity.ts";
import type { StreamKey } from "../../core/records/stream.ts";
import { sleep } from "../../core/time/clock.ts";
import { type ClientParts, PgConnection } from "./client.ts";
import type { PostgresSettings } from "./settings.ts";
import { beginStatements } from "./state/commit.ts";
import { lockSink, readOwners, requireOwner } from "./state/owners.ts";
import {
  addLost,
  addOrigins,
  claimStreams,
  coveredOf,
  raiseLease,
  readTopic,
  writeTopic,
} from "./state/streams.ts";
import { makeState, type SinkKey, type StateNames, stateNames } from "./state/tables.ts";

export interface PostgresCoverageOptions {
  readonly settings: PostgresSettings;
  readonly stateSchema: string;
  readonly pipeline: string;
  readonly sink: string;
  /** Unique to this process. */
  readonly instance: string;
  readonly leaseMs: number;
  readonly lockTimeoutMs: number;
  /**
   * Without a group (the default) one process at a time has the sink. With one, members enter beside each other and the
   * generations of the streams alone decide who writes what.
   */
  readonly shared?: boolean;
}

export interface PostgresCoverageParts extends ClientParts {
  readonly host: HostIdentity;
  readonly waiting?: (owner: string, ms: number) => void;
  /** Told of an outage that a call is waiting out; null: it is over. */
  readonly trouble?: (failure: Failure | null) => void;
}

export class PostgresCoverage implements StreamCoverage {
  readonly #o: PostgresCoverageOptions;
  readonly #p: PostgresCoverageParts;
  readonly #names: StateNames;
  readonly #key: SinkKey;
  readonly #life = new AbortController();
  #settings: PostgresSettings;
  #connection: PgConnection | null = null;
  /** The end of the line of calls: one transaction at a time. */
  #line: Promise<unknown> = Promise.resolve();
  #entered = false;
  #fenced: Failure | null = null;

  constructor(options: PostgresCoverageOptions, parts: PostgresCoverageParts) {
    this.#o = options;
    this.#p = parts;
    this.#settings = options.settings;
    this.#names = stateNames(options.stateSchema);
    this.#key = { pipeline: options.pipeline, sink: options.sink };
  }

  /** Connections that are opened from now on use these. */
  renew(settings: PostgresSettings): void {
    this.#settings = settings;
  }

  get fenced(): Failure | null {
    return this.#fenced;
  }

  async open(): Promise<void> {
    const { instance, leaseMs } = this.#o;
    const since = this.#p.clock.now();
    // Rights and tables were proven before: what passes is a server that restarts just now.
    const lasting = <T>(work: () => Promise<T>) => this.#waitedOut(work, (f) => f.retry);
    await lasting(() => this.#alone((c) => makeState(c, this.#names)));
    for (;;) {
      const owners = () => lasting(() => this.#alone((c) => readOwners(c, this.#names, this.#key)));
      const { host, clock, waiting } = this.#p;
      const { signal } = this.#life;
      const place = `${this.#o.settings.hosts.map((h) => h.host).join(",")} schema ${this.#o.stateSchema}`;
      const judge = { instance, host, clock, leaseMs, place, signal, owners, waiting };
      const there = await owners();
      const gone = this.#o.shared ? surelyDead(there, host) : await judgeOwners(judge, there);
      if (await lasting(() => this.#transaction((c) => this.#enter(c, gone, since)))) break;
    }
    this.#entered = true;
  }

  claim(streams: readonly StreamKey[], groupEpoch: number | null): Promise<readonly Claim[]> {
    const { instance } = this.#o;
    return this.#waitedOut(() =>
      this.#owned((c) => claimStreams(c, this.#names, this.#key, instance, streams, groupEpoch)),
    );
  }

  covered(stream: StreamKey): Promise<readonly Range[]> {
    return this.#alone((c) => coveredOf(c, this.#names, this.#key, stream));
  }

  recordLost(ranges: readonly LostRange[]): Promise<void> {
    return this.#waitedOut(() => this.#owned((c) => addLost(c, this.#names, this.#key, ranges)));
  }

  rememberOrigins(origins: readonly Origin[]): Promise<void> {
    return this.#waitedOut(() => this.#owned((c) => addOrigins(c, this.#names, this.#key, origins)));
  }

  topic(name: string): Promise<TopicMemory | null> {
    return this.#waitedOut(() => this.#alone((c) => readTopic(c, this.#names, this.#key, name)));
  }

  rememberTopic(name: string, memory: TopicMemory): Promise<TopicMemory> {
    return this.#waitedOut(() => this.#owned((c) => writeTopic(c, this.#names, this.#key, name, memory)));
  }

  lease(window: string): Promise<Authority> {
    return this.#waitedOut(() =>
      this.#owned((c) => raiseLease(c, this.#names, this.#key, window, this.#o.instance)),
    );
  }

  heartbeat(): Promise<void> {
    return this.#owned(() => Promise.resolve());
  }

  /** Leaves, so that a successor need not wait for the lease. That it fails changes nothing but that. */
  async close(): Promise<void> {
    this.#life.abort(new Failure("internal.cancelled", "the coverage store was closed"));
    if (this.#fenced === null && this.#entered) {
      this.#entered = false;
      await this.#transaction((c) => this.#leave(c)).catch(() => {});
    }
    this.#connection?.close();
  }

  /** False: somebody has entered or written since `gone` was found. */
  async #enter(c: PgConnection, gone: ReadonlyMap<string, number>, since: number): Promise<boolean> {
    const { instance } = this.#o;
    const { pipeline, sink } = this.#key;
    await lockSink(c, this.#key);
    const others = (await readOwners(c, this.#names, this.#key)).filter((o) => o.instance !== instance);
    const left = others.filter((o) => gone.get(o.instance) === o.beat).map((o) => o.instance);
    if (left.length < others.length && !this.#o.shared) return false;
    const of = [pipeline, sink, instance];
    const listed = [pipeline, sink, JSON.stringify(left)];
    await c.pipeline([
      {
        sql: `DELETE FROM ${this.#names.table("owner")}
               WHERE pipeline = $1 AND sink = $2 AND instance IN (SELECT jsonb_array_elements_text($3::jsonb))`,
        parameters: listed,
      },
      {
        sql: `INSERT INTO ${this.#names.table("owner")} (pipeline, sink, instance, host, since, beat)
              VALUES ($1, $2, $3, $4::jsonb, $5::bigint, 0) ON CONFLICT DO NOTHING`,
        parameters: [...of, JSON.stringify(this.#p.host.self), String(since)],
      },
      {
        // Their writers are fenced by the claims to come; what they committed is covered.
        sql: `DELETE FROM ${this.#names.table("receipt")} r USING jsonb_array_elements_text($3::jsonb) i
               WHERE pipeline = $1 AND sink = $2 AND starts_with(r.writer, i)`,
        parameters: listed,
      },
    ]);
    return true;
  }

  async #leave(c: PgConnection): Promise<void> {
    const of = [this.#key.pipeline, this.#key.sink, this.#o.instance];
    await c.pipeline([
      {
        sql: `UPDATE ${this.#names.table("stream")} SET owner = NULL WHERE pipeline = $1 AND sink = $2 AND owner = $3`,
        parameters: of,
      },
      {
        sql: `DELETE FROM ${this.#names.table("owner")} WHERE pipeline = $1 AND sink = $2 AND instance = $3`,
        parameters: of,
      },
    ]);
  }

  // ---- transactions

  async #owned<T>(work: (c: PgConnection) => Promise<T>): Promise<T> {
    if (this.#fenced !== null) throw this.#fenced;
    try {
      return await this.#transaction(async (c) => {
        await requireOwner(c, this.#names, this.#key, this.#o.instance);
        return work(c);
      });
    } catch (e) {
      const failure = asFailure(e);
      if (failure.code === "coverage.fenced") this.#fenced = failure;
      throw failure;
    }
  }

  #transaction<T>(work: (c: PgConnection) => Promise<T>): Promise<T> {
    return this.#alone(async (c) => {
      await c.script(beginStatements(this.#o.lockTimeoutMs, this.#settings.answerTimeoutMs));
      const value = await work(c);
      const tag = (await c.script("COMMIT")).at(-1)?.tag;
      if (tag !== "COMMIT") {
        throw new Failure("postgres.conflict", `the server answered COMMIT with ${tag}`, { at: c.at });
      }
      return value;
    });
  }

  /** With a connection to itself. After a failure it is closed, which rolls back whatever was begun. */
  #alone<T>(work: (c: PgConnection) => Promise<T>): Promise<T> {
    const turn = this.#line.then(async () => {
      try {
        if (this.#connection === null || this.#connection.failure !== null) {
          this.#connection = await PgConnection.open(this.#settings, this.#p);
        }
        return await work(this.#connection);
      } catch (e) {
        this.#connection?.close();
        this.#connection = null;
        throw asFailure(e);
      }
    });
    this.#line = turn.catch(() => {});
    return turn;
  }

  #waitedOut<T>(fn: () => Promise<T>, passing?: (f: Failure) => boolean): Promise<T> {
    const pause = (ms: number) => sleep(this.#p.clock, ms, this.#life.signal);
    const trouble = (f: Failure | null) => this.#p.trouble?.(f);
    return waitedOut({ pause, trouble }, fn, passing);
  }
}

function surelyDead(owners: readonly Owner[], host: HostIdentity): ReadonlyMap<string, number> {
  const dead = owners.filter((o) => host.isAlive(o.host) === "dead");
  return new Map(dead.map((o) => [o.instance, o.beat]));
}
