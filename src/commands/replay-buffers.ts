/** The buffers of a run over raw files: the source is told when a lane has read one. */
import { BufferPool } from "../core/pipeline/buffer-pool.ts";
import type { ReplaySource } from "../core/recovery/replay-source.ts";

export class ReplayBuffers extends BufferPool {
  readonly #source: Pick<ReplaySource, "consumed">;

  constructor(maxFreeBytes: number, source: Pick<ReplaySource, "consumed">) {
    super(maxFreeBytes);
    this.#source = source;
  }

  override give(buffer: ArrayBuffer): void {
    this.#source.consumed(buffer);
    super.give(buffer);
  }
}
