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

  /** `wanted`: what of the windows is to be filled. `of` is open, and stays so. */
  constructor(of: WindowCoverage, windows: readonly LeasedWindow[], wanted: Wanted) {
    this.#of = of;
    this.#windows = windows;
    this.#wanted = wanted;
  }

  get fenced(): Failure | null {
    const lost = this.#windows.find((w) => !this.#of.holds(w));
    if (this.#of.fenced !== null || lost === undefined) return this.#of.fenced;
    const { stream, range } = lost;
    return new Failure("coverage.fenced", `the lease of ${stream} [${range.from}, ${range.next}) is over`, {
      hint: "Was this process stopped or cut off for longer than the lease? Others fill the window",
    });
  }

  claim(streams: readonly StreamKey[]): Promise<readonly Claim[]> {
    const { fenced } = this;
    if (fenced !== null) return Promise.reject(fenced);
    return Promise.resolve(streams.map((stream) => this.#claim(stream)));
  }

  #claim(stream: StreamKey): Claim {
    const covered = subtractRanges(ALL, this.#wanted.get(stream) ?? []);
    // Nothing is written without a window, as nothing is lacking then.
    const none: Authority = { kind: "lease", window: "", lease: 0, stream };
    const authority = this.#windows.find((w) => w.stream === stream)?.authority ?? none;
    return { stream, authority, covered, lost: [], origin: null, staleCommit: null };
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
