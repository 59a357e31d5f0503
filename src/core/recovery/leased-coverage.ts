/** Coverage of a sink as a run sees it that fills leased windows: the leases are its claims, all else has been done. */
import { type Ranges, subtractRanges } from "../coverage/ranges.ts";
import { Failure } from "../failure/failure.ts";
import type {
  Authority,
  Claim,
  LeasedWindow,
  Range,
  StreamCoverage,
  TopicMemory,
  WindowCoverage,
} from "../ports/coverage.ts";
import type { StreamKey } from "../records/stream.ts";
import type { Wanted } from "./replay-order.ts";

const ALL: Ranges = [{ from: 0n, next: 2n ** 63n - 1n }];

export class LeasedCoverage implements StreamCoverage {
  readonly #of: WindowCoverage;
  readonly #windows: readonly LeasedWindow[];
  readonly #wanted: Wanted;
  readonly #claimed = new Set<StreamKey>();
  /** A set was refused, and with it the identity under which it was written: only another lease gives another one. */
  #spent: Failure | null = null;

  /** `wanted`: what of the windows is to be filled. `of` is open, and stays so. */
  constructor(of: WindowCoverage, windows: readonly LeasedWindow[], wanted: Wanted) {
    this.#of = of;
    this.#windows = windows;
    this.#wanted = wanted;
  }

  get fenced(): Failure | null {
    const lost = this.#windows.find((w) => !this.#of.holds(w));
    if (this.#of.fenced !== null) return this.#of.fenced;
    if (lost === undefined) return this.#spent;
    const { stream, range } = lost;
    return new Failure("coverage.fenced", `the lease of ${stream} [${range.from}, ${range.next}) is over`, {
      hint: "Was this process stopped or cut off for longer than the lease? Others fill the window",
    });
  }

  claim(streams: readonly StreamKey[]): Promise<readonly Claim[]> {
    const again = streams.find((s) => this.#claimed.has(s) && this.#authorityOf(s)?.writer !== undefined);
    if (again !== undefined)
      this.#spent = new Failure("coverage.fenced", `a set under the lease of ${again} did not land`, {
        hint: "What is missing is filled under the next lease",
      });
    const { fenced } = this;
    if (fenced !== null) return Promise.reject(fenced);
    for (const s of streams) this.#claimed.add(s);
    return Promise.resolve(streams.map((stream) => this.#claim(stream)));
  }

  #claim(stream: StreamKey): Claim {
    const covered = subtractRanges(ALL, this.#wanted.get(stream) ?? []);
    // Nothing is written without a window, as nothing is lacking then.
    const none: Authority = { kind: "lease", window: "", lease: 0, stream };
    const authority = this.#authorityOf(stream) ?? none;
    return { stream, authority, covered, lost: [], origin: null, staleCommit: null };
  }

  #authorityOf(stream: StreamKey): Authority | undefined {
    return this.#windows.find((w) => w.stream === stream)?.authority;
  }

  covered(stream: StreamKey): Promise<readonly Range[]> {
    return this.#of.covered(stream);
  }

  topic(): Promise<TopicMemory | null> {
    return Promise.resolve(null);
  }

  rememberTopic(_: string, memory: TopicMemory): Promise<TopicMemory> {
    return Promise.resolve(memory);
  }

  lease(): Promise<Authority> {
    return Promise.reject(new Failure("internal.bug", "a run that fills windows leases nothing"));
  }

  // Whoever leased the windows beats for them.
  async open(): Promise<void> {}
  async heartbeat(): Promise<void> {}
  async recordLost(): Promise<void> {}
  async rememberOrigins(): Promise<void> {}
  async close(): Promise<void> {}
}
