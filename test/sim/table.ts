/**
 * A simulated table whose rows and coverage become durable in one transaction, as in a database; all processes share it.
 * What a change does is what it does to the state of any other sink: the same functions.
 */
import {
  asOwner,
  type Change,
  claim,
  cover,
  enter,
  intend,
  requireOwner,
} from "../../src/core/coverage/changes.ts";
import { Silence } from "../../src/core/coverage/silence.ts";
import { type CoverageState, EMPTY_STATE } from "../../src/core/coverage/state.ts";
import { giveBack, grant, keepHeads } from "../../src/core/coverage/window-changes.ts";
import { heldByOthers, isRecovery } from "../../src/core/coverage/windows.ts";
import { bisect } from "../../src/core/delivery/bisect.ts";
import { Failure, toWire } from "../../src/core/failure/failure.ts";
import { withoutSpans } from "../../src/core/pipeline/span-set.ts";
import type { BranchWriter } from "../../src/core/ports/branch-parts.ts";
import type { Authority, Claim, WindowCoverage } from "../../src/core/ports/coverage.ts";
import type { HostIdentity } from "../../src/core/ports/host-identity.ts";
import type { SetFiles, SetRefusal } from "../../src/core/ports/lane-parts.ts";
import type { RawBatch } from "../../src/core/records/raw-batch.ts";
import type { Span, StreamKey } from "../../src/core/records/stream.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import type { SeededChance } from "./chance.ts";
import type { SimProcess, SimTime } from "./clock.ts";

export interface TableNode {
  readonly process: SimProcess;
  readonly instance: string;
  readonly clock: Clock;
  readonly host: HostIdentity;
}

export interface TableFaults {
  /** Probability that a call fails without effect, and that it takes effect and fails. */
  fail: number;
  failAfter: number;
  /** Longest time of a call, ms. */
  slowMs: number;
  /** Refused rows can be kept nowhere. */
  rejectsDown: boolean;
}

/** A row in so many is one that the table can never have. */
const POISON_EVERY = 11n;

interface SetRow {
  readonly stream: StreamKey;
  readonly offset: bigint;
  readonly text: string;
}

const ROW_BYTES = 64;
const LEASE_MS = 4_000;

export class SimTable {
  /** "partition@offset value", one entry a row that was ever committed. */
  readonly rows: string[] = [];
  /** The same of rows that it refused. */
  readonly rejects: string[] = [];
  state: CoverageState = EMPTY_STATE;
  readonly faults: TableFaults = { fail: 0, failAfter: 0, slowMs: 4, rejectsDown: false };
  /** Told of the spans of every commit, at its very moment. */
  onCommit: (spans: readonly Span[], authorities: readonly Authority[]) => void = () => {};
  /** Rows that came under a lease. */
  recovered = 0;
  /** lost_lease: whoever lost a lease may go on. */
  canary: "lost_lease" | null = null;
  /** Told of a commit under a lease before it has any effect. */
  onLeasedCommit: (owner: SimProcess) => void = () => {};
  readonly #receipts = new Map<string, SetFiles>();
  /** Covers what it refused and could keep nowhere: a planted bug. */
  readonly #forgets: boolean;
  readonly #time: SimTime;
  readonly #chance: SeededChance;

  constructor(time: SimTime, chance: SeededChance, forgets: boolean) {
    this.#forgets = forgets;
    this.#time = time;
    this.#chance = chance;
  }

  coverage({ process, instance, clock, host }: TableNode): WindowCoverage {
    const silence = new Silence({ clock, host, leaseMs: LEASE_MS });
    const life: { fenced: Failure | null; gone: ReadonlyMap<string, number>; leases: number } = {
      fenced: null,
      gone: new Map(),
      leases: 0,
    };
    const call = <T>(effect: () => T) => this.#call(process, effect);
    const nothing = () => call(() => {});
    const owned = <T>(change: Change<T>) =>
      call(() => {
        try {
          return this.#change(asOwner(instance, change), instance);
        } catch (e) {
          if (e instanceof Failure && e.code === "coverage.fenced") life.fenced = e;
          throw e;
        }
      });
    const look = () => {
      life.gone = silence.gone(this.state.owners, instance);
    };
    return {
      open: () =>
        call(() => {
          const owner = { instance, host: host.self, since: 0, beat: 0 };
          this.#change(enter(owner, new Map(), false), instance);
          look();
        }),
      claim: async (streams, epoch) => {
        const authorities = await owned(claim(streams, epoch, instance));
        return streams.map((stream): Claim => {
          const authority = authorities.find((a) => a.stream === stream)!;
          const covered = this.#covered(stream);
          return { stream, authority, covered, lost: [], origin: null, staleCommit: null };
        });
      },
      covered: (stream) => call(() => this.#covered(stream)),
      recordLost: nothing,
      rememberOrigins: nothing,
      topic: () => call(() => null),
      rememberTopic: (_, memory) => call(() => memory),
      lease: (window) => call(() => ({ kind: "lease", window, lease: 1 }) as const),
      leaseWindows: async (wanted) => {
        const granted = await owned(grant(wanted, instance, ++life.leases, life.gone));
        return granted.map((g) => ({ ...g, covered: this.#covered(g.stream) }));
      },
      othersHold: () => call(() => heldByOthers(this.state, instance, life.gone)),
      releaseWindows: () => owned(giveBack(instance)),
      holds: ({ authority: a }) =>
        life.fenced === null && a.kind === "lease" && this.state.leases.get(a.window)?.lease === a.lease,
      heartbeat: async (heads) => {
        await owned((state) => ({
          state: isRecovery(instance)
            ? { ...state }
            : { ...keepHeads(instance, heads ?? new Map())(state).state },
          answer: undefined,
        }));
        look();
      },
      get fenced() {
        return life.fenced;
      },
      close: () => Promise.resolve(),
    };
  }

  writer(owner: SimProcess): BranchWriter<RawBatch> {
    let id = "";
    let rows: SetRow[] = [];
    const call = <T>(effect: () => T) => this.#call(owner, effect);
    return {
      open: (set) => {
        id = set;
      },
      write: (batch, _authority, from = 0) => {
        const text = new TextDecoder();
        const { offsets, data } = batch.value;
        for (let i = from; i < batch.rows; i++) {
          const offset = (BigInt(batch.offsets[2 * i + 1]!) << 32n) | BigInt(batch.offsets[2 * i]! >>> 0);
          const value = text.decode(data.subarray(offsets[i]!, offsets[i + 1]!));
          const line = `${batch.stream.partition}@${offset} ${value}`;
          rows.push({ stream: batch.span.stream, offset, text: line });
        }
        return batch.rows;
      },
      flush: () => call(() => {}),
      get held() {
        return rows.length * ROW_BYTES;
      },
      get largest() {
        return rows.length * ROW_BYTES;
      },
      seal: async (spans, authorities) => {
        // What was sent is sent, whatever is dropped meanwhile.
        const sent = rows;
        const found = await bisect(sent.length, sent.length, async (from, next) =>
          sent.slice(from, next).some(isPoison) ? "poison" : null,
        );
        const bad = new Set("sink" in found ? [] : found.refused.map((r) => r.row));
        if (authorities.some((a) => a.kind === "lease")) this.onLeasedCommit(owner);
        const answer = await call(() => this.#commit(id, sent, bad, spans, authorities));
        if (rows === sent) rows = [];
        return answer;
      },
      abort: async () => {
        rows = [];
      },
    };
  }

  #commit(
    id: string,
    sent: readonly SetRow[],
    bad: ReadonlySet<number>,
    all: readonly Span[],
    authorities: readonly Authority[],
  ): SetFiles | SetRefusal {
    // The receipt of a commit whose answer was lost.
    const receipt = this.#receipts.get(id);
    if (receipt !== undefined) return receipt;
    const refused = sent.filter((_, i) => bad.has(i));
    const rows = sent.filter((_, i) => !bad.has(i));
    const down = this.faults.rejectsDown;
    const holes = refused.map(({ stream, offset }) => ({ stream, from: offset, next: offset + 1n }));
    const uncovered = down && !this.#forgets ? holes : [];
    const spans = withoutSpans(all, uncovered);
    const failure = down ? toWire(new Failure("store.unavailable", "no rejects", { retry: true })) : null;
    const told =
      refused.length === 0
        ? {}
        : { leftOut: { codes: [["poison", refused.length]] as const, uncovered, failure } };
    const done: SetFiles = {
      targets: [],
      covered: true,
      rows: rows.length,
      bytes: rows.length * ROW_BYTES,
      ...told,
    };
    const intent = { id, targets: [], spans, authorities, rows: 0, bytes: 0 };
    const { state, answer } = intend([intent])(this.state);
    const [denied] = answer;
    const leased = authorities.some((a) => a.kind === "lease");
    const lets = leased && this.canary === "lost_lease";
    if (denied?.ok === false && denied.reason !== "gone" && !lets)
      return { refused: denied.reason, detail: denied.detail };
    this.onCommit(spans, authorities);
    this.#receipts.set(id, done);
    this.rows.push(...rows.map((r) => r.text));
    if (leased) this.recovered += rows.length;
    if (!down) this.rejects.push(...refused.map((r) => r.text));
    const intents = new Map(state.intents).set(id, intent);
    this.state = { ...cover([id])({ ...state, intents }).state, index: [] };
    return done;
  }

  #covered(stream: StreamKey) {
    return this.state.streams.get(stream)?.covered ?? [];
  }

  /** Every change is a sign of life. */
  #change<T>(change: Change<T>, instance: string): T {
    const { state, answer } = change(this.state);
    requireOwner(state, instance);
    const owners = state.owners.map((o) => (o.instance === instance ? { ...o, beat: o.beat + 1 } : o));
    this.state = { ...state, owners };
    return answer;
  }

  /** Calls of a dead process never return. */
  #call<T>(owner: SimProcess, effect: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const clock = this.#time.clock(owner);
      clock.after(this.#chance.next() * this.faults.slowMs, () => {
        if (this.#chance.next() < this.faults.fail) return reject(down());
        let value: T;
        try {
          value = effect();
        } catch (e) {
          return reject(e);
        }
        const lost = this.#chance.next() < this.faults.failAfter;
        clock.after(this.#chance.next() * this.faults.slowMs, () => (lost ? reject(down()) : resolve(value)));
      });
    });
  }
}

const isPoison = ({ offset }: SetRow): boolean => offset % POISON_EVERY === 5n;

function down(): Failure {
  return new Failure("store.unavailable", "the simulated table did not answer", { retry: true });
}
