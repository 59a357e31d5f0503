/**
 * The coverage of a Postgres sink: tables in the sink's own database, so that rows and positions become durable in one
 * commit. The lanes write ranges (state/commit.ts); this is the control thread's end: who owns the sink, which
 * generation a stream has, where it began and what of it is lost.
 *
 * Every change is a transaction that is safe to repeat, so an answer that was lost costs nothing.
 */
import { displacedOwners, judgeOwners } from "../../core/coverage/judge.ts";
import { waitedOut } from "../../core/coverage/outage.ts";
import { Silence } from "../../core/coverage/silence.ts";
import { heldByOthers, isRecovery } from "../../core/coverage/windows.ts";
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type {
  Authority,
  Claim,
  LeasedWindow,
  LostRange,
  Origin,
  Range,
  TopicMemory,
  WindowCoverage,
} from "../../core/ports/coverage.ts";
import type { HostIdentity } from "../../core/ports/host-identity.ts";
import type { Span, StreamKey } from "../../core/records/stream.ts";
import { sleep } from "../../core/time/clock.ts";
import { type ClientParts, PgConnection } from "./client.ts";
import type { PostgresSettings } from "./settings.ts";
import { beginStatements } from "./state/commit.ts";
import { closeGate } from "./state/gate.ts";
import { lockSink, readOwners, requireOwner } from "./state/owners.ts";
import { receiptsEnd } from "./state/receipts.ts";
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
import {
  dropWindows,
  grantWindows,
  heldWindows,
  mayGrant,
  readLeases,
  windowsEnd,
  writeHeads,
} from "./state/windows.ts";

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

export class PostgresCoverage implements WindowCoverage {
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
  readonly #silence: Silence;
  /** Who had fallen silent at the last heartbeat. */
  #gone: ReadonlyMap<string, number> = new Map();
  #leases = 0;
  /** Names of the windows that were ours at the last look. */
  #held: ReadonlySet<string> = new Set();
  /** As they were last written. */
  #heads: ReadonlyMap<StreamKey, bigint> = new Map();

  constructor(options: PostgresCoverageOptions, parts: PostgresCoverageParts) {
    this.#o = options;
    this.#p = parts;
    this.#settings = options.settings;
    this.#names = stateNames(options.stateSchema);
    this.#key = { pipeline: options.pipeline, sink: options.sink };
    this.#silence = new Silence({ clock: parts.clock, host: parts.host, leaseMs: options.leaseMs });
  }

  get #recovers(): boolean {
    return isRecovery(this.#o.instance);
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
    // Recovery has other sinks to see to.
    const passing = (f: Failure) => f.retry && !this.#recovers;
    const lasting = <T>(work: () => Promise<T>) => this.#waitedOut(work, passing);
    await lasting(() => this.#alone((c) => makeState(c, this.#names)));
    for (;;) {
      const owners = () => lasting(() => this.#alone((c) => readOwners(c, this.#names, this.#key)));
      const { host, clock, waiting } = this.#p;
      const { signal } = this.#life;
      const place = `${this.#o.settings.hosts.map((h) => h.host).join(",")} schema ${this.#o.stateSchema}`;
      const judge = { instance, host, clock, leaseMs, place, signal, owners, waiting };
      const there = await owners();
      const me = { instance, host, shared: this.#o.shared === true };
      const gone = await displacedOwners(me, there, (ingest) => judgeOwners(judge, ingest));
      if (await lasting(() => this.#transaction((c) => this.#enter(c, gone, since)))) break;
    }
    this.#entered = true;
    if (this.#recovers) await lasting(() => this.#look());
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

  async leaseWindows(wanted: readonly Span[]): Promise<readonly LeasedWindow[]> {
    const { instance } = this.#o;
    const wish = { holder: instance, serial: ++this.#leases, wanted, gone: this.#gone };
    if (this.#fenced !== null) throw this.#fenced;
    if (!(await this.#alone((c) => mayGrant(c, this.#names, this.#key, wish)))) return [];
    const granted = await this.#owned(
      (c) => grantWindows(c, this.#names, this.#key, wish),
      (c) => lockSink(c, this.#key),
    );
    this.#held = new Set(granted.map(nameOf));
    return granted;
  }

  othersHold(): Promise<readonly Span[]> {
    return this.#alone(async (c) => {
      const leases = await readLeases(c, this.#names, this.#key);
      const owners = await readOwners(c, this.#names, this.#key);
      return heldByOthers({ leases, owners }, this.#o.instance, this.#gone);
    });
  }

  async releaseWindows(): Promise<void> {
    this.#held = new Set();
    await this.#owned((c) => dropWindows(c, this.#names, this.#key, this.#o.instance));
  }

  holds(window: LeasedWindow): boolean {
    return this.#fenced === null && this.#held.has(nameOf(window));
  }

  async heartbeat(heads: ReadonlyMap<StreamKey, bigint> = new Map()): Promise<void> {
    if (this.#recovers) {
      await this.#owned(() => Promise.resolve());
      return this.#look();
    }
    const moved = new Map([...heads].filter(([stream, head]) => this.#heads.get(stream) !== head));
    await this.#owned(async (c) => {
      if (moved.size > 0) await writeHeads(c, this.#names, this.#key, this.#o.instance, moved);
    });
    this.#heads = new Map([...this.#heads, ...moved]);
  }

  /** Who has fallen silent, and which windows are ours. */
  async #look(): Promise<void> {
    const { instance } = this.#o;
    const owners = await this.#alone((c) => readOwners(c, this.#names, this.#key));
    this.#gone = this.#silence.gone(owners, instance);
    const before = this.#held;
    const held = await this.#alone((c) => heldWindows(c, this.#names, this.#key, instance));
    // What was granted meanwhile is not in the answer.
    if (this.#held === before) this.#held = new Set([...before].filter((name) => held.has(name)));
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
    const beside = this.#o.shared === true || this.#recovers;
    const inTheWay = others.some((o) => !isRecovery(o.instance) && !left.includes(o.instance));
    if (inTheWay && !beside) return false;
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
      ...(left.length === 0 ? [] : [closeGate(this.#key)]),
      {
        sql: windowsEnd(this.#names),
        parameters: listed,
      },
      {
        // Their writers are fenced by the claims to come; what they committed is covered.
        sql: receiptsEnd(this.#names),
        parameters: listed,
      },
    ]);
    return true;
  }

  async #leave(c: PgConnection): Promise<void> {
    const of = [this.#key.pipeline, this.#key.sink, this.#o.instance];
    await c.pipeline([
      {
        sql: `DELETE FROM ${this.#names.table("owner")} WHERE pipeline = $1 AND sink = $2 AND instance = $3`,
        parameters: of,
      },
      {
        sql: `UPDATE ${this.#names.table("stream")} SET owner = NULL WHERE pipeline = $1 AND sink = $2 AND owner = $3`,
        parameters: of,
      },
    ]);
    await dropWindows(c, this.#names, this.#key, this.#o.instance);
    const own = JSON.stringify([this.#o.instance]);
    await c.query(receiptsEnd(this.#names), this.#key.pipeline, this.#key.sink, own);
  }

  // ---- transactions

  /** `locked`: what is locked before the owner's row, in the one order that all of us keep (state/owners.ts). */
  async #owned<T>(
    work: (c: PgConnection) => Promise<T>,
    locked: (c: PgConnection) => Promise<void> = async () => {},
  ): Promise<T> {
    if (this.#fenced !== null) throw this.#fenced;
    try {
      return await this.#transaction(async (c) => {
        await locked(c);
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

const nameOf = ({ authority }: LeasedWindow): string => (authority.kind === "lease" ? authority.window : "");
