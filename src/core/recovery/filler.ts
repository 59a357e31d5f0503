/**
 * Fills gaps of sinks window by window, beside live ingest and others that do the same (decision 0033). Sinks take turns
 * in saying where the next window begins; those that lack some of the same join. A sink that fails is left out.
 */
import { LEAVE_MS, leaveStore } from "../coverage/outage.ts";
import {
  intersectRanges,
  normalRanges,
  type Ranges,
  subtractRanges,
  unionRanges,
} from "../coverage/ranges.ts";
import type { IndexEntry } from "../coverage/state.ts";
import { asFailure, Failure } from "../failure/failure.ts";
import type { LeasedWindow, StreamCoverage, WindowCoverage } from "../ports/coverage.ts";
import type { Observer } from "../ports/observer.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import { type Clock, settledWithin, sleep } from "../time/clock.ts";
import { LeasedCoverage } from "./leased-coverage.ts";
import { type PlanPieces, planPhases } from "./plan-phases.ts";
import type { Wanted } from "./replay-order.ts";
import { positions, type Share, tellFilled, tellLeased } from "./tell-windows.ts";
import { hulls, unionOf, within } from "./wanted.ts";
import { planAround } from "./window-plan.ts";

export interface FillSink {
  readonly name: string;
  /** Numbers of the sinks that must have what this one shows; each stands before it. */
  readonly after: readonly number[];
  readonly coverage: WindowCoverage;
}

export interface Backlog {
  /** What each sink lacks of what raw has, by its name. */
  readonly lacks: ReadonlyMap<string, Wanted>;
  /** Of raw, oldest first. */
  readonly index: readonly IndexEntry[];
  /** Sinks of which it is not known what they lack, with the reason. */
  readonly away: ReadonlyMap<string, Failure>;
  /** By which plans records are decoded; absent: all by the one of now. */
  readonly pieces?: PlanPieces;
  /** Plans by which nothing can be decoded, with the reason. */
  readonly unusable?: ReadonlyMap<string, Failure>;
}

export interface FillJob {
  /** Of any of the sinks. */
  readonly wanted: Wanted;
  readonly index: readonly IndexEntry[];
  /** By which all of its records are decoded; null: the one of now. */
  readonly plan: string | null;
  /** Numbers of the sinks that take part, ascending, each with its coverage for this run. */
  readonly sinks: readonly { readonly sink: number; readonly coverage: StreamCoverage }[];
}

interface Passed {
  readonly plan: string | null;
  readonly wanted: Wanted;
}

interface NextJob {
  readonly job: FillJob;
  readonly shares: Map<number, Share>;
}

export interface FillOptions {
  /** Most bytes of raw files of a window. */
  readonly windowBytes: number;
  readonly heartbeatMs: number;
  /** Most between two looks while what is missing is somebody's; the first come sooner. */
  readonly retryMs: number;
  /** Longest wait for others without any progress. */
  readonly patienceMs: number;
}

export interface FillParts {
  readonly clock: Clock;
  /** `without`: sinks that were left out; of them nothing need be said, and one that hangs would hold the others up. */
  readonly look: (without: ReadonlySet<string>) => Promise<Backlog>;
  /** One run over raw. Rejects where raw cannot be read. */
  readonly run: (job: FillJob) => Promise<void>;
  /** Told of windows. */
  readonly observer?: Observer;
}

export interface Filled {
  /** Positions that were missing at the start, by sink; of those in `failed` it may not be known. */
  readonly lacked: ReadonlyMap<string, bigint>;
  /** What of them is still missing. */
  readonly left: ReadonlyMap<string, bigint>;
  /** Positions of the windows of this run that are there, in all sinks together: what others fill is not among them. */
  readonly filled: bigint;
  /** Why sinks were left out. */
  readonly failed: ReadonlyMap<string, Failure | null>;
  /** What ended it before its end: raw that cannot be read. */
  readonly failure: Failure | null;
}

/** Windows that are asked for in one look: each costs a transaction in some stores. */
const MOST_TRIES = 64;
/** The first wait for others is so many times halved: what they hold is mostly about to end. */
const SOON = 3;
/** Jobs in a row in which a sink took nothing before what it was given is passed by. */
const MOST_IDLE = 2;
/**
 * Windows of one plan that are passed by before the rest of that plan is, or, of the plan of now, before the sink is left out: what it
 * never takes must not hide what is newer.
 */
const MOST_PASSED = 4;

export class Filler {
  readonly #sinks: readonly FillSink[];
  readonly #o: FillOptions;
  readonly #p: FillParts;
  readonly #failed = new Map<string, Failure | null>();
  readonly #idle = new Map<string, number>();
  /** Of each sink what it did not take, window by window. */
  readonly #passed = new Map<string, readonly Passed[]>();
  readonly #open = new Set<FillSink>();
  readonly #life = new AbortController();
  #turn = 0;
  #filled = 0n;
  #stopped = false;

  constructor(sinks: readonly FillSink[], options: FillOptions, parts: FillParts) {
    this.#sinks = sinks;
    this.#o = options;
    this.#p = parts;
  }

  /** Begins nothing more. What is under way is ended by whoever runs it. */
  stop(): void {
    this.#stopped = true;
  }

  /** Until what is missing now is there, left to others for too long, or of sinks that fail. */
  async run(): Promise<Filled> {
    const beating = this.#beat();
    try {
      const { lacks: target } = await this.#p.look(new Set());
      const failure = await this.#fill(target).catch(asFailure);
      const { lacks, away } = await this.#p.look(new Set());
      // What nobody can see is not there.
      const leftOf = (name: string, of: Wanted) => (away.has(name) ? of : within(lacks.get(name), of));
      const left = new Map([...target].map(([name, of]) => [name, positions(leftOf(name, of))] as const));
      const lacked = new Map([...target].map(([name, of]) => [name, positions(of)] as const));
      return { lacked, left, filled: this.#filled, failed: this.#failed, failure };
    } finally {
      this.#life.abort(new Failure("internal.cancelled", "recovery ended"));
      const { clock } = this.#p;
      await settledWithin(clock, LEAVE_MS, beating);
      // Those that could not be opened, too: what they connected to on the way would be left, run after run.
      await Promise.all(this.#sinks.map((s) => leaveStore(clock, s.coverage)));
    }
  }

  async #fill(target: ReadonlyMap<string, Wanted>): Promise<Failure | null> {
    const { clock, look } = this.#p;
    let least: bigint | null = null;
    let since = clock.monotonic();
    let halvings = SOON;
    while (!this.#stopped) {
      const backlog = await look(new Set(this.#failed.keys()));
      for (const [name, why] of backlog.away) if (!this.#failed.has(name)) this.#failed.set(name, why);
      const lacks = new Map(
        [...target].flatMap(([name, of]) => {
          const left = without(within(backlog.lacks.get(name), of), this.#passed.get(name) ?? []);
          return left.size === 0 || this.#failed.has(name) ? [] : [[name, left] as const];
        }),
      );
      if (lacks.size === 0) break;
      await this.#enter(lacks);
      const total = [...lacks.values()].reduce((n, w) => n + positions(w), 0n);
      const now = { ...backlog, lacks };
      const job = await this.#nextOfPlans(now);
      if (job instanceof Failure) return job;
      if (least === null || total < least) {
        since = clock.monotonic();
        least = total;
      }
      // Also where jobs are done and nothing comes of them, whatever they say of themselves.
      if (clock.monotonic() - since >= this.#o.patienceMs) return null;
      if (job === null) {
        await sleep(clock, this.#o.retryMs / 2 ** halvings);
        halvings = Math.max(0, halvings - 1);
        continue;
      }
      halvings = SOON;
      await this.#do(job.job, job.shares, now);
    }
    for (const name of this.#passed.keys()) if (!this.#failed.has(name)) this.#failed.set(name, null);
    return null;
  }

  async #do(job: FillJob, shares: ReadonlyMap<number, Share>, backlog: Backlog): Promise<void> {
    const { clock, observer, run } = this.#p;
    const begun = clock.monotonic();
    const each = [...shares].map(([n, share]) => ({ sink: this.#sinks[n]!, share }));
    for (const { sink, share } of each) tellLeased(observer, sink.name, share);
    const filled = new Map<FillSink, bigint>();
    try {
      const failure = await run(job).then(() => null, asFailure);
      for (const { sink, share } of each) {
        const { filled: taken, idle } = await this.#judge(sink, share);
        filled.set(sink, taken);
        this.#filled += taken;
        // Raw that cannot be read is no fault of the sink.
        if (idle && failure === null) this.#passBy(sink, { plan: job.plan, wanted: share.wanted }, backlog);
      }
      if (failure !== null) throw failure;
    } finally {
      await this.#release(shares.keys());
      const ms = clock.monotonic() - begun;
      for (const { sink, share } of each) tellFilled(observer, sink.name, share, filled.get(sink) ?? 0n, ms);
    }
  }

  // ---- the sinks' coverage

  async #enter(lacks: ReadonlyMap<string, Wanted>): Promise<void> {
    const needed = new Set<FillSink>();
    for (const s of this.#sinks) {
      if (!lacks.has(s.name)) continue;
      needed.add(s);
      for (const n of s.after) needed.add(this.#sinks[n]!);
    }
    for (const s of needed) {
      if (this.#open.has(s) || this.#failed.has(s.name)) continue;
      await this.#orLeftOut(s, async () => {
        await s.coverage.open();
        this.#open.add(s);
      });
    }
  }

  async #orLeftOut<T>(s: FillSink, work: (s: FillSink) => Promise<T>): Promise<T | null> {
    try {
      return await work(s);
    } catch (e) {
      this.#failed.set(s.name, asFailure(e));
      return null;
    }
  }

  async #beat(): Promise<void> {
    const { clock } = this.#p;
    const { signal } = this.#life;
    /** Of sinks whose last beat has not been answered: one that hangs keeps no other from living. */
    const beating = new Map<FillSink, Promise<unknown>>();
    while (!signal.aborted) {
      await sleep(clock, this.#o.heartbeatMs, signal).catch(() => {});
      if (signal.aborted) break;
      for (const s of this.#open) {
        if (beating.has(s)) continue;
        // A beat that fails is told by what is written next.
        const beat = s.coverage.heartbeat().catch(() => {});
        beating.set(
          s,
          beat.then(() => beating.delete(s)),
        );
      }
    }
    await Promise.all(beating.values());
  }

  // ---- windows

  /** Null: all that is missing is somebody's now. A failure: none of it can be decoded. */
  async #nextOfPlans(backlog: Backlog): Promise<NextJob | Failure | null> {
    const phases = planPhases(backlog.lacks, backlog.pieces ?? new Map());
    const failures = phases.map((p) => backlog.unusable?.get(p.plan ?? "") ?? null);
    const usable = phases.filter((_, i) => failures[i] === null);
    if (usable.length === 0) return failures[0] ?? null;
    for (const { plan, lacks } of usable) {
      const next = await this.#next({ ...backlog, lacks }, plan);
      if (next !== null) return next;
    }
    return null;
  }

  /** Of one plan. */
  async #next(backlog: Backlog, plan: string | null): Promise<NextJob | null> {
    let asked = 0;
    for (let turns = 0; turns < this.#sinks.length; turns++) {
      const lead = this.#turn++ % this.#sinks.length;
      const lacks = backlog.lacks.get(this.#sinks[lead]!.name);
      if (lacks === undefined || !this.#works(lead)) continue;
      const held = (await this.#orLeftOut(this.#sinks[lead]!, (s) => s.coverage.othersHold())) ?? [];
      if (!this.#works(lead)) continue;
      for (const spans of planAround(backlog.index, lacks, held, this.#o.windowBytes)) {
        const shares = await this.#lease(lead, spans, backlog);
        const wanted = unionOf([...shares.values()].map((s) => s.wanted));
        if ((shares.get(lead)?.wanted.size ?? 0) > 0)
          return { job: { ...this.#job(shares, wanted, backlog), plan }, shares };
        await this.#release(shares.keys());
        if (!this.#works(lead) || ++asked >= MOST_TRIES) break;
      }
    }
    return null;
  }

  #works(sink: number): boolean {
    const s = this.#sinks[sink]!;
    return this.#open.has(s) && !this.#failed.has(s.name) && s.after.every((n) => this.#works(n));
  }

  #job(shares: ReadonlyMap<number, Share>, wanted: Wanted, { index }: Backlog): Omit<FillJob, "plan"> {
    const sinks = [...shares.keys()]
      .toSorted((a, b) => a - b)
      .map((sink) => {
        const { windows, wanted: of } = shares.get(sink)!;
        return { sink, coverage: new LeasedCoverage(this.#sinks[sink]!.coverage, windows, of) };
      });
    return { wanted, index, sinks };
  }

  /** Of the lead, and of all that lack some of the same; those that a sink comes after stand in it in any case. */
  async #lease(lead: number, spans: readonly Span[], { lacks }: Backlog): Promise<Map<number, Share>> {
    const windows = new Map<number, readonly LeasedWindow[]>();
    const first = await this.#windowsOf(lead, spans);
    if (first.length === 0) return new Map();
    windows.set(lead, first);
    const shares = new Map<number, Share>();
    for (const [n, s] of this.#sinks.entries()) {
      if (!this.#works(n)) continue;
      const also = within(lacks.get(s.name), new Map(first.map((w) => [w.stream, [w.range]])));
      if (n !== lead && also.size > 0) windows.set(n, await this.#windowsOf(n, hulls(also)));
      // The lead's own come in its place, so that what it comes after is known by then.
      const mine = windows.get(n) ?? [];
      const share = await this.#orLeftOut(s, () => this.#share(s, mine, shares, first));
      if (share !== null) shares.set(n, share);
    }
    const taking = new Map(
      [...shares].filter(
        ([n, { wanted }]) =>
          wanted.size > 0 || this.#sinks.some((s, m) => shares.has(m) && s.after.includes(n)),
      ),
    );
    await this.#release([...windows.keys()].filter((n) => !taking.has(n)));
    return taking;
  }

  async #windowsOf(sink: number, spans: readonly Span[]): Promise<readonly LeasedWindow[]> {
    const s = this.#sinks[sink]!;
    return (await this.#orLeftOut(s, () => s.coverage.leaseWindows(spans))) ?? [];
  }

  /** A position is filled where those before it have it, or get it in the same run. */
  async #share(
    { after }: FillSink,
    windows: readonly LeasedWindow[],
    shares: ReadonlyMap<number, Share>,
    within_: readonly LeasedWindow[],
  ): Promise<Share> {
    const wanted = new Map<StreamKey, Ranges>();
    for (const { stream, range, covered } of windows) {
      const bounds = within_.find((w) => w.stream === stream)?.range;
      const mine = bounds === undefined ? [] : intersectRanges([range], [bounds]);
      let lacks = subtractRanges(mine, normalRanges(covered));
      for (const n of after) {
        const has = normalRanges(await this.#sinks[n]!.coverage.covered(stream));
        const gets = shares.get(n)?.wanted.get(stream) ?? [];
        lacks = intersectRanges(lacks, unionRanges(has, gets));
      }
      if (lacks.length > 0) wanted.set(stream, lacks);
    }
    return { windows, wanted };
  }

  /**
   * How many positions of the share are there. A sink that took nothing of what it was given, and did not lose it to others,
   * has something the matter.
   */
  async #judge(s: FillSink, { wanted }: Share): Promise<{ readonly filled: bigint; readonly idle: boolean }> {
    if (wanted.size === 0) return { filled: 0n, idle: false };
    let filled = 0n;
    await this.#orLeftOut(s, async () => {
      for (const [stream, ranges] of wanted) {
        const has = normalRanges(await s.coverage.covered(stream));
        filled += positions(new Map([[stream, intersectRanges(ranges, has)]]));
      }
    });
    const idle = filled > 0n ? 0 : (this.#idle.get(s.name) ?? 0) + 1;
    this.#idle.set(s.name, idle % MOST_IDLE);
    return { filled, idle: idle >= MOST_IDLE && !this.#failed.has(s.name) };
  }

  #passBy(s: FillSink, window: Passed, { lacks, pieces }: Backlog): void {
    const { plan } = window;
    const passed = [...(this.#passed.get(s.name) ?? []), window];
    const { fenced } = s.coverage;
    const isMany = passed.filter((p) => p.plan === plan).length >= MOST_PASSED;
    if (fenced !== null || (isMany && plan === null)) this.#failed.set(s.name, fenced);
    // A table that has become another takes nothing of an earlier plan, and all of a later one.
    if (isMany && plan !== null) {
      const same = planPhases(lacks, pieces ?? new Map()).filter((p) => p.plan === plan);
      passed.push({ plan, wanted: unionOf(same.flatMap((p) => p.lacks.get(s.name) ?? [])) });
    }
    this.#passed.set(s.name, passed);
  }

  async #release(sinks: Iterable<number>): Promise<void> {
    // Where it fails they end with our stay there, or when a later one is granted.
    for (const n of sinks) await this.#sinks[n]!.coverage.releaseWindows().catch(() => {});
  }
}

function without(lacks: Wanted, passed: readonly Passed[]): Wanted {
  const left = [...lacks].map(
    ([stream, ranges]) =>
      [
        stream,
        passed.reduce((r, { wanted }) => subtractRanges(r, wanted.get(stream) ?? []), ranges),
      ] as const,
  );
  return new Map(left.filter(([, ranges]) => ranges.length > 0));
}

/** Of parts that name others before them by number: those of a job, with the numbers that they have in it. */
export function taking<T extends { readonly after: readonly number[] }>(
  all: readonly T[],
  { sinks }: FillJob,
): readonly (T & { readonly coverage: StreamCoverage })[] {
  const place = new Map(sinks.map(({ sink }, i) => [sink, i]));
  return sinks.map(({ sink, coverage }) => {
    const part = all[sink]!;
    // What is below zero is no number of these.
    return { ...part, coverage, after: part.after.map((n) => (n < 0 ? n : place.get(n)!)) };
  });
}
