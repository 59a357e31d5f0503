/**
 * Walks all runs of a case, depth first. A run cannot be copied, so each way out of a state begins anew and repeats the way
 * there; a state that was met before is not walked again. Two runs are in one state when the durable world is the same and each owner
 * has seen the same: nothing else decides what they do next.
 */
import type { Canary } from "./places.ts";
import { type Case, World } from "./world.ts";

export interface Explored {
  readonly states: number;
  readonly runs: number;
  /** Runs that came to an end. */
  readonly ends: number;
  readonly deepest: number;
  /** The first complaint, and the steps that lead there; null: there is none. */
  readonly found: { readonly complaint: string; readonly steps: readonly string[] } | null;
  /** False: it was stopped before all was seen. */
  readonly whole: boolean;
}

interface Step {
  readonly action: string;
  readonly before: Step | null;
  readonly depth: number;
}

export interface ExploreOptions {
  readonly canary?: Canary | null;
  readonly mostStates?: number;
  readonly progress?: (states: number) => void;
}

export async function explore(which: Case, options: ExploreOptions = {}): Promise<Explored> {
  const { canary = null, mostStates = Number.POSITIVE_INFINITY, progress } = options;
  const met = new Set<bigint>();
  const open: (Step | null)[] = [null];
  const count = { runs: 0, ends: 0, deepest: 0 };
  const answer = (found: Explored["found"], whole: boolean): Explored => ({
    ...count,
    states: met.size,
    found,
    whole,
  });
  while (open.length > 0) {
    if (met.size > mostStates) return answer(null, false);
    count.runs++;
    let step = open.pop()!;
    const world = await World.begin(which, canary);
    for (const action of pathOf(step)) await world.act(action);
    while (world.complaints.length === 0 && !met.has(world.key)) {
      met.add(world.key);
      if (met.size % 10_000 === 0) progress?.(met.size);
      const [first, ...others] = world.actions;
      if (first === undefined) {
        count.ends++;
        await world.finish();
        break;
      }
      const depth = (step?.depth ?? 0) + 1;
      count.deepest = Math.max(count.deepest, depth);
      for (const action of others.reverse()) open.push({ action, before: step, depth });
      step = { action: first, before: step, depth };
      await world.act(first);
    }
    const [complaint] = world.complaints;
    if (complaint !== undefined) return answer({ complaint, steps: pathOf(step) }, false);
  }
  return answer(null, true);
}

function pathOf(step: Step | null): string[] {
  const path: string[] = [];
  for (let s = step; s !== null; s = s.before) path.push(s.action);
  return path.reverse();
}
