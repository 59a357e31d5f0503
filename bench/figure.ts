/** What a benchmark prints, and how subject and peer are run: in turn, so that both meet the same machine. */

export interface Figure {
  readonly bench: string;
  readonly subject: string;
  /** Null: there is none here, and then neither is a ratio. */
  readonly peer: string | null;
  readonly unit: string;
  readonly value: number;
  readonly peer_value: number | null;
  /** value / peer_value. */
  readonly ratio: number | null;
  /** Of the result: equal for subject and peer, or the run fails. Null where there is nothing to compare. */
  readonly hash: string | null;
  /** Records, or runs where nothing is read. */
  readonly n: number;
  /** User + system seconds of the whole process, start-up included. */
  readonly cpu_per_million: number | null;
  readonly peer_cpu_per_million: number | null;
  /** More of the same run, by bench: docs/benchmarks.md. */
  readonly [more: string]: unknown;
}

export interface BenchOptions {
  readonly small: boolean;
  readonly bootstrap: string | null;
  /** Of the franz-go peer; null: none can be built. */
  readonly peer: string | null;
  /** How twg is started. */
  readonly twg: readonly string[];
  readonly rounds: number;
  /** For people: to standard error. */
  readonly say: (text: string) => void;
}

export type Bench = (options: BenchOptions) => AsyncGenerator<Figure>;

/** Subject, peer, subject, peer, ...: as many rounds as asked for. */
export async function inTurn<S, P>(
  rounds: number,
  subject: () => Promise<S>,
  peer: (() => Promise<P>) | null,
): Promise<{ readonly subject: S[]; readonly peer: P[] }> {
  const out = { subject: [] as S[], peer: [] as P[] };
  for (let i = 0; i < rounds; i++) {
    out.subject.push(await subject());
    if (peer !== null) out.peer.push(await peer());
  }
  return out;
}

/** Each in turn, as many rounds as asked for: all of them meet the same machine. The answers by place in `all`. */
export async function inRotation<T>(rounds: number, all: readonly (() => Promise<T>)[]): Promise<T[][]> {
  const out: T[][] = all.map(() => []);
  for (let i = 0; i < rounds; i++) for (const [k, one] of all.entries()) out[k]!.push(await one());
  return out;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

/** The same of what was seen at all. */
export function medianSeen(values: readonly (number | null)[]): number | null {
  const seen = values.filter((v) => v !== null);
  return seen.length === 0 ? null : median(seen);
}

export const round = (n: number): number => Number(n.toPrecision(4));

export const ratioOf = (value: number, peer: number | null): number | null =>
  peer === null ? null : round(value / peer);

/** All hashes are one, or the run measured different work. */
export function sameHash(what: string, hashes: readonly string[]): string {
  const [first] = hashes;
  if (first === undefined || hashes.some((h) => h !== first)) {
    throw new Error(`${what}: results differ: ${[...new Set(hashes)].join(", ")}`);
  }
  return first;
}

/** CPU seconds of this process so far. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
