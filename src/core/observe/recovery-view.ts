/** What recovery of this process sees and does, folded from its events: for the status page and `/stats`. */
import type { Clock } from "../time/clock.ts";
import { DIGEST_STEP_MS, DIGEST_WINDOW_MS } from "./digest.ts";
import type { TwgEvent } from "./events.ts";
import type { LeaseSeen } from "./recovery-events.ts";

/** Snake case, as `/stats` has it. Positions as decimal strings: JSON numbers end at 2^53. */
export interface RecoveryDigest {
  /** `waiting`: for live records of this process, which have fallen behind. */
  readonly state: "looking" | "filling" | "waiting" | "resting";
  readonly behind: string;
  /** Of `behind`, not at others of its kind. */
  readonly free: string;
  readonly records: number;
  readonly bytes: number;
  readonly records_per_second: number;
  readonly bytes_per_second: number;
  readonly windows: number;
  readonly leases: readonly {
    readonly sink: string;
    readonly kind: "window" | "head";
    readonly topic: string;
    readonly partition: number;
    readonly from: string;
    readonly next: string | null;
    readonly holder: string;
    readonly silent_ms: number | null;
  }[];
}

interface Sample {
  readonly at: number;
  readonly records: number;
  readonly bytes: number;
}

export class RecoveryView {
  readonly #clock: Clock;
  #seen = false;
  #filling = false;
  #waiting = false;
  #resting = false;
  #free = 0n;
  #behind = 0n;
  #records = 0;
  #bytes = 0;
  #windows = 0;
  #leases: readonly LeaseSeen[] = [];
  #samples: Sample[];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#samples = [this.#sample()];
  }

  apply(event: TwgEvent): void {
    if (!event.e.startsWith("recovery.")) return;
    this.#seen = true;
    if (event.e === "recovery.looked") {
      this.#free = event.free;
      this.#behind = event.behind;
      this.#leases = event.leases;
      this.#resting = !this.#filling;
    } else if (event.e === "recovery.began") this.#filling = true;
    else if (event.e === "recovery.rests") {
      this.#filling = false;
      this.#resting = true;
    } else if (event.e === "recovery.filled") this.#windows += event.windows;
    else if (event.e === "recovery.replayed") {
      this.#records += event.rows;
      this.#bytes += event.bytes;
    } else if (event.e === "recovery.yields") this.#waiting = true;
    else if (event.e === "recovery.resumes") this.#waiting = false;
  }

  /** Called often; takes a sample every `DIGEST_STEP_MS`. */
  tick(): void {
    const now = this.#clock.monotonic();
    if (now - (this.#samples.at(-1)?.at ?? 0) < DIGEST_STEP_MS) return;
    this.#samples.push(this.#sample());
    while (now - (this.#samples[1]?.at ?? now) >= DIGEST_WINDOW_MS) this.#samples.shift();
  }

  /** Null: this process does not recover. */
  report(): RecoveryDigest | null {
    if (!this.#seen) return null;
    const first = this.#samples[0];
    const ms = first === undefined ? 0 : this.#clock.monotonic() - first.at;
    const per = (total: number, before = 0) => (ms > 0 ? ((total - before) * 1000) / ms : 0);
    return {
      state: this.#state(),
      behind: String(this.#behind),
      free: String(this.#free),
      records: this.#records,
      bytes: this.#bytes,
      records_per_second: per(this.#records, first?.records),
      bytes_per_second: per(this.#bytes, first?.bytes),
      windows: this.#windows,
      leases: this.#leases.map(({ sink, holder, topic, partition, from, next, silentMs }) => ({
        ...{ sink, kind: next === null ? "head" : "window", topic, partition, holder },
        ...{ from: String(from), next: next === null ? null : String(next), silent_ms: silentMs },
      })),
    };
  }

  #state(): RecoveryDigest["state"] {
    if (this.#filling) return this.#waiting ? "waiting" : "filling";
    return this.#resting ? "resting" : "looking";
  }

  #sample(): Sample {
    return { at: this.#clock.monotonic(), records: this.#records, bytes: this.#bytes };
  }
}
