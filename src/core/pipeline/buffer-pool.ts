/**
 * Receive buffers go round: source -> lane -> back. Without a pool every fetch would leave megabytes to the
 * garbage collector, which frees them late, and memory would follow the rate instead of the configuration.
 */

/** Sizes are rounded up to this, so that responses of nearly the same size share buffers. */
const GRAIN = 256 * 1024;

export class BufferPool {
  readonly #free: ArrayBuffer[] = [];
  readonly #maxFree: number;
  #freeBytes = 0;

  /** `maxFreeBytes`: idle bytes kept at most. */
  constructor(maxFreeBytes: number) {
    this.#maxFree = maxFreeBytes;
  }

  get freeBytes(): number {
    return this.#freeBytes;
  }

  /** The smallest free buffer that fits and is not wastefully large (4x), else a new one. */
  take(bytes: number): ArrayBuffer {
    let best = -1;
    for (let i = 0; i < this.#free.length; i++) {
      const size = this.#free[i]!.byteLength;
      if (size < bytes || size > Math.max(bytes * 4, GRAIN)) continue;
      if (best < 0 || size <= this.#free[best]!.byteLength) best = i;
    }
    if (best < 0) return new ArrayBuffer(Math.ceil(Math.max(bytes, 1) / GRAIN) * GRAIN);
    const [buffer] = this.#free.splice(best, 1);
    this.#freeBytes -= buffer!.byteLength;
    return buffer!;
  }

  /** Buffers that were transferred away (length 0) are not worth keeping. */
  give(buffer: ArrayBuffer): void {
    if (buffer.byteLength === 0) return;
    this.#free.push(buffer);
    this.#freeBytes += buffer.byteLength;
    while (this.#freeBytes > this.#maxFree) {
      const oldest = this.#free.shift();
      if (oldest === undefined) return;
      this.#freeBytes -= oldest.byteLength;
    }
  }
}
