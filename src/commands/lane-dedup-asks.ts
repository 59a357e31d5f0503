/** What lanes ask to find duplicates: since when records are judged as now, and the records before a stream's next one. */
import type { StreamKey } from "../core/records/stream.ts";
import { type Answered, LaneAsks } from "./lane-asks.ts";
import type { RawGroup } from "./recover-sets.ts";

/** From a lane's thread. `reading`: which of its readings goes on. */
export type AskDedup =
  | {
      readonly t: "ask_dedup";
      readonly n: number;
      readonly ask: "epoch";
      readonly stream: StreamKey;
      readonly from: bigint;
    }
  | {
      readonly t: "ask_dedup";
      readonly n: number;
      readonly ask: "group";
      readonly reading: number;
      readonly stream: StreamKey;
      readonly from: bigint;
      readonly next: bigint;
    }
  | { readonly t: "ask_dedup"; readonly n: number; readonly ask: "close"; readonly reading: number };

export interface AnsweredEpoch {
  readonly since: bigint;
  readonly until: bigint | null;
  /** In hexadecimal. */
  readonly secret: string;
}

/** To it. Null: there is no further group. */
export type AnswerDedup = Answered<AnsweredEpoch | RawGroup | null> & { readonly t: "dedup" };

export class AskedDedup extends LaneAsks<AskDedup> {
  #readings = 0;

  epoch(stream: StreamKey, from: bigint): Promise<AnsweredEpoch> {
    return this.ask((n) => ({ t: "ask_dedup", n, ask: "epoch", stream, from }));
  }

  async *groups(stream: StreamKey, from: bigint, next: bigint): AsyncGenerator<RawGroup> {
    const reading = this.#readings++;
    try {
      for (;;) {
        const group = await this.ask<RawGroup | null>((n) => {
          return { t: "ask_dedup", n, ask: "group", reading, stream, from, next };
        });
        if (group === null) return;
        yield group;
      }
    } finally {
      void this.ask<null>((n) => ({ t: "ask_dedup", n, ask: "close", reading })).catch(() => {});
    }
  }
}
