/**
 * The health tree. Three states: ok; degraded (it works, worse than it should, nobody need be woken); failed (it
 * does not work now). Every part carries the reason as a stable code and since when.
 *
 * Three questions are asked of it. Live: would a restart help? Ready: do source and primary raw sink work? Nothing
 * else gates it, since a troubled secondary must not take the pipeline out of service. Health: the whole tree.
 */
import type { Clock } from "../time/clock.ts";

export type HealthState = "ok" | "degraded" | "failed";

/** `lanes`, `sinks` and `recovery` have children, named by lane number and sink name. */
const PARTS = [
  "source",
  "primary_raw",
  "lanes",
  "coverage",
  "committer",
  "sinks",
  "recovery",
  "progress",
  "pipeline",
] as const;
export type Part = (typeof PARTS)[number];

/** What a process does; the parts of another role are none of its. */
export type Role = "ingest" | "recovery" | "both";

const PARTS_OF: Readonly<Record<Role, readonly Part[]>> = {
  ingest: PARTS.filter((p) => p !== "recovery"),
  recovery: ["recovery", "pipeline"],
  both: PARTS,
};

/** What must work for a process to be ready. Beside live ingest recovery is no such thing. */
const GATES: Readonly<Record<Role, readonly Part[]>> = {
  ingest: ["source", "primary_raw"],
  recovery: ["recovery"],
  both: ["source", "primary_raw"],
};

export interface HealthNode {
  readonly state: HealthState;
  /** Why it is not ok: `starting`, `draining` or a failure code. Null when ok. */
  readonly reason: string | null;
  readonly detail: string | null;
  /** When the state or the reason last changed, ISO 8601. */
  readonly since: string;
  readonly children?: Readonly<Record<string, HealthNode>>;
}

export interface HealthReport {
  readonly state: HealthState;
  readonly live: boolean;
  readonly ready: boolean;
  readonly parts: Readonly<Partial<Record<Part, HealthNode>>>;
}

export interface Verdict {
  readonly ok: boolean;
  readonly reason: string;
}

interface Cell {
  state: HealthState;
  reason: string | null;
  detail: string | null;
  since: number;
}

const RANK: Readonly<Record<HealthState, number>> = { ok: 0, degraded: 1, failed: 2 };
/** A failure in one of these fails the whole; elsewhere it only degrades it. So does one of recovery where it is all. */
const VITAL: ReadonlySet<Part> = new Set<Part>(["source", "primary_raw", "coverage", "progress", "pipeline"]);

export function stateRank(state: HealthState): number {
  return RANK[state];
}

const worse = (a: HealthState, b: HealthState): HealthState => (RANK[a] >= RANK[b] ? a : b);

export class HealthTree {
  /** Those of the role. */
  readonly parts: readonly Part[];
  readonly #clock: Clock;
  readonly #gates: readonly Part[];
  readonly #vital: ReadonlySet<Part>;
  readonly #parts = new Map<Part, Cell>();
  readonly #children = new Map<Part, Map<string, Cell>>();

  /**
   * Source, primary raw sink, coverage and the pipeline count as failed (`starting`) until they have proved to work;
   * so does recovery where it is the role.
   */
  constructor(clock: Clock, role: Role = "ingest") {
    this.#clock = clock;
    this.parts = PARTS_OF[role];
    this.#gates = GATES[role];
    this.#vital = new Set([...VITAL, ...this.#gates]);
    const starting: ReadonlySet<Part> = new Set<Part>([...this.#gates, "coverage", "pipeline"]);
    for (const part of PARTS) {
      const first = starting.has(part);
      this.#parts.set(part, {
        state: first ? "failed" : "ok",
        reason: first ? "starting" : null,
        detail: null,
        since: clock.now(),
      });
    }
  }

  ok(part: Part, child: string | null = null): void {
    this.#set(this.#cell(part, child), "ok", null, null);
  }

  degraded(part: Part, reason: string, detail: string | null, child: string | null = null): void {
    this.#set(this.#cell(part, child), "degraded", reason, detail);
  }

  failed(part: Part, reason: string, detail: string | null, child: string | null = null): void {
    this.#set(this.#cell(part, child), "failed", reason, detail);
  }

  /** Nothing is known of the children any more, and nothing is wrong with them. */
  forgetChildren(part: Part): void {
    this.#children.delete(part);
  }

  /** True while a part has not yet proved to work for the first time. */
  get starting(): boolean {
    return this.parts.some((p) => this.#parts.get(p)?.reason === "starting");
  }

  /** Its own state or the worst of its children. A child's failure degrades the part while another child is ok. */
  state(part: Part): HealthState {
    return this.#summary(part).state;
  }

  /** False only when there is work, nothing excuses the standstill and it has lasted beyond the longer limit. */
  live(): Verdict {
    const progress = this.#summary("progress");
    if (progress.state === "failed") return { ok: false, reason: progress.reason ?? "failed" };
    return { ok: true, reason: "ok" };
  }

  /** A pipeline that drains is not ready either: it takes nothing new. */
  ready(): Verdict {
    const pipeline = this.#summary("pipeline");
    if (pipeline.state !== "ok") return { ok: false, reason: `pipeline: ${pipeline.reason ?? "failed"}` };
    for (const part of this.#gates) {
      const s = this.#summary(part);
      if (s.state === "failed") return { ok: false, reason: `${part}: ${s.reason ?? "failed"}` };
    }
    return { ok: true, reason: "ok" };
  }

  /** The part that makes it less than ok, the worst one first, as `part: reason`; null if all are ok. */
  trouble(): string | null {
    const all = this.parts
      .map((part) => ({ part, cell: this.#summary(part) }))
      .filter((p) => p.cell.state !== "ok");
    const [first] = all.sort((a, b) => RANK[b.cell.state] - RANK[a.cell.state]);
    return first === undefined ? null : `${first.part}: ${first.cell.reason ?? first.cell.state}`;
  }

  /** Failed if a vital part is, degraded if any part is not ok. */
  overall(): HealthState {
    let all: HealthState = "ok";
    for (const part of this.parts) {
      const { state } = this.#summary(part);
      all = worse(all, state === "failed" && !this.#vital.has(part) ? "degraded" : state);
    }
    return all;
  }

  report(): HealthReport {
    const parts = Object.fromEntries(this.parts.map((p) => [p, this.#node(p)]));
    return { state: this.overall(), live: this.live().ok, ready: this.ready().ok, parts };
  }

  #cell(part: Part, child: string | null): Cell {
    if (child === null) return this.#parts.get(part) as Cell;
    let children = this.#children.get(part);
    if (children === undefined) {
      children = new Map();
      this.#children.set(part, children);
    }
    let cell = children.get(child);
    if (cell === undefined) {
      cell = { state: "ok", reason: null, detail: null, since: this.#clock.now() };
      children.set(child, cell);
    }
    return cell;
  }

  #set(cell: Cell, state: HealthState, reason: string | null, detail: string | null): void {
    if (cell.state !== state || cell.reason !== reason) cell.since = this.#clock.now();
    cell.state = state;
    cell.reason = reason;
    cell.detail = detail;
  }

  #summary(part: Part): Cell {
    const own = this.#parts.get(part) as Cell;
    const children = [...(this.#children.get(part)?.values() ?? [])];
    if (children.length === 0) return own;
    const worst = children.reduce((a, b) => (RANK[b.state] > RANK[a.state] ? b : a));
    if (RANK[worst.state] <= RANK[own.state]) return own;
    const some = worst.state === "failed" && children.some((c) => c.state === "ok");
    return some ? { ...worst, state: worse(own.state, "degraded") } : worst;
  }

  #node(part: Part): HealthNode {
    const children = this.#children.get(part);
    const own = node(this.#summary(part));
    if (children === undefined) return own;
    return { ...own, children: Object.fromEntries([...children].map(([name, c]) => [name, node(c)])) };
  }
}

function node(c: Cell): HealthNode {
  return { state: c.state, reason: c.reason, detail: c.detail, since: new Date(c.since).toISOString() };
}
