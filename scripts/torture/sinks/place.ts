/** What a run with several sinks knows of one of them: how it is configured, where lives end in it, what troubles it, and how it is judged. */
import { LOCAL_WRITE_POINTS } from "../../../src/adapters/coverage/local.ts";
import { CRASH_POINTS, TRANSACTION_POINTS } from "../../../src/core/delivery/crash-points.ts";

/** Begins; the result ends it. */
export type Trouble = () => Promise<() => Promise<void>>;

export interface Place {
  readonly name: string;
  /** Lines of TOML. */
  readonly section: string;
  /** Values of TWG_CRASH_AT. */
  readonly points: readonly string[];
  /** What can go wrong with its server, by name; one at a time. */
  readonly troubles: Readonly<Record<string, Trouble>>;
  /** For compare_sinks.py, under the sink's name. */
  readonly judged: Readonly<Record<string, unknown>>;
  /** What a clean end would not leave. */
  orphans(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

/** Sets of a sink beside the primary one are sealed and acknowledged with that. */
const OF_SETS = CRASH_POINTS.filter((p) => /intend|publish|cover/.test(p));

/** Lives end there for the first and the second time. */
export const twice = (points: readonly string[]): string[] => points.flatMap((p) => [`${p}:1`, `${p}:2`]);

export const PRIMARY_POINTS: readonly string[] = twice([...CRASH_POINTS, ...LOCAL_WRITE_POINTS]);

export const setPoints = (sink: string): string[] =>
  twice([...OF_SETS, ...LOCAL_WRITE_POINTS].map((p) => `${sink}/${p}`));

export const transactionPoints = (sink: string): string[] =>
  twice(TRANSACTION_POINTS.map((p) => `${sink}/${p}`));

/** Nothing troubles it any more once the result is called. */
export const calls =
  (begin: () => void, end: () => void): Trouble =>
  () => {
    begin();
    return Promise.resolve(() => Promise.resolve(end()));
  };
