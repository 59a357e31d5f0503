/**
 * Where compressed pages wait until they are written: fixed blocks that go round, so that memory does not follow
 * the rhythm of the garbage collector. One pool serves all files of a lane.
 */
export const SLAB_BYTES = 128 * 1024;
/** Bytes of a slab that are rather copied than kept in a slab of their own: most columns have a few dozen. */
const COPY_BELOW = SLAB_BYTES / 4;
/** Bytes that are kept although nobody needs them: more than one row group of one file. */
const MOST_FREE_BYTES = 16 * 1024 * 1024;

export class SlabPool {
  readonly #free: Uint8Array[] = [];
  readonly #mostFree: number;

  /** `mostFreeBytes`: kept at most. */
  constructor(mostFreeBytes: number = MOST_FREE_BYTES) {
    this.#mostFree = Math.ceil(Math.min(mostFreeBytes, MOST_FREE_BYTES) / SLAB_BYTES);
  }

  take(): Uint8Array {
    return this.#free.pop() ?? new Uint8Array(SLAB_BYTES);
  }

  give(slab: Uint8Array): void {
    if (this.#free.length < this.#mostFree) this.#free.push(slab);
  }

  get freeBytes(): number {
    return this.#free.length * SLAB_BYTES;
  }
}

/** Bytes in order, spread over slabs; every slab but the last is full. */
export class SlabBytes {
  readonly #pool: SlabPool;
  readonly #slabs: Uint8Array[] = [];
  #inLast = SLAB_BYTES;
  #length = 0;

  constructor(pool: SlabPool) {
    this.#pool = pool;
  }

  get length(): number {
    return this.#length;
  }

  get held(): number {
    return this.#slabs.length * SLAB_BYTES;
  }

  append(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#inLast === SLAB_BYTES) {
        this.#slabs.push(this.#pool.take());
        this.#inLast = 0;
      }
      const slab = this.#slabs[this.#slabs.length - 1]!;
      const n = Math.min(bytes.length - at, SLAB_BYTES - this.#inLast);
      slab.set(bytes.subarray(at, at + n), this.#inLast);
      this.#inLast += n;
      at += n;
    }
    this.#length += bytes.length;
  }

  /** Hands over all slabs in order with the bytes used of each; this is empty afterwards. */
  drain(take: (slab: Uint8Array, used: number) => void): void {
    this.#slabs.forEach((slab, i) => {
      take(slab, i === this.#slabs.length - 1 ? this.#inLast : SLAB_BYTES);
    });
    this.#empty();
  }

  /** Gives the slabs back without writing them. */
  drop(): void {
    for (const slab of this.#slabs) this.#pool.give(slab);
    this.#empty();
  }

  #empty(): void {
    this.#slabs.length = 0;
    this.#inLast = SLAB_BYTES;
    this.#length = 0;
  }
}

interface Waiting {
  readonly slab: Uint8Array;
  used: number;
  /** Seen by `first`: it may be on its way to disk, so nothing is added to it any more. */
  given: boolean;
}

/** Bytes of a file that are final and wait for `append`; knows the file's position. */
export class OutQueue {
  readonly #pool: SlabPool;
  readonly #waiting: Waiting[] = [];
  #position = 0;
  #bytes = 0;

  constructor(pool: SlabPool) {
    this.#pool = pool;
  }

  /** Bytes put in since the beginning: the offset in the file of what comes next. */
  get position(): number {
    return this.#position;
  }

  /** Bytes not yet taken out. */
  get waiting(): number {
    return this.#bytes;
  }

  get held(): number {
    return this.#waiting.length * SLAB_BYTES;
  }

  append(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      let last = this.#waiting[this.#waiting.length - 1];
      if (last === undefined || last.given || last.used === SLAB_BYTES) {
        last = { slab: this.#pool.take(), used: 0, given: false };
        this.#waiting.push(last);
      }
      const n = Math.min(bytes.length - at, SLAB_BYTES - last.used);
      last.slab.set(bytes.subarray(at, at + n), last.used);
      last.used += n;
      at += n;
    }
    this.#count(bytes.length);
  }

  /** Takes the bytes over: full slabs as they are, a little filled one by copying, so that it is free again. */
  adopt(bytes: SlabBytes): void {
    bytes.drain((slab, used) => {
      if (used < COPY_BELOW) {
        this.append(slab.subarray(0, used));
        this.#pool.give(slab);
        return;
      }
      this.#waiting.push({ slab, used, given: false });
      this.#count(used);
    });
  }

  /** The next bytes to write, null if none wait. They stay until `dropFirst`, so that a failed write can be repeated. */
  first(): Uint8Array | null {
    const w = this.#waiting[0];
    if (w === undefined) return null;
    w.given = true;
    return w.slab.subarray(0, w.used);
  }

  dropFirst(): void {
    const w = this.#waiting.shift();
    if (w === undefined) return;
    this.#bytes -= w.used;
    this.#pool.give(w.slab);
  }

  drop(): void {
    while (this.#waiting.length > 0) this.dropFirst();
  }

  #count(n: number): void {
    this.#position += n;
    this.#bytes += n;
  }
}
