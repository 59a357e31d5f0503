/**
 * Keys of a window of positions, each with the last record that had it: an open table over typed arrays. What left the
 * window is forgotten when room is needed, so its size follows the window and nothing else.
 */

const FIRST_SLOTS = 1024;
const KEY_WORDS = 4;
/** A key, a position, a timestamp. */
const SLOT_BYTES = 32;
const MOST_USED = 0.7;
/** With more of it alive it grows. */
const MOST_ALIVE = 0.4;

export class SeenKeys {
  #slots = FIRST_SLOTS;
  #keys = new Int32Array(KEY_WORDS * FIRST_SLOTS);
  /** NaN: the slot is free. */
  #positions = new Float64Array(FIRST_SLOTS).fill(Number.NaN);
  #times = new Float64Array(FIRST_SLOTS);
  #used = 0;
  /** Positions below it have left the window. */
  floor = Number.NEGATIVE_INFINITY;

  get bytes(): number {
    return this.#slots * SLOT_BYTES;
  }

  /** The slot of the key's last record within the window; -1: none. */
  find(key: Int32Array): number {
    const slot = this.#slot(key);
    return this.#positions[slot]! >= this.floor ? slot : -1;
  }

  positionAt(slot: number): number {
    return this.#positions[slot]!;
  }

  timeAt(slot: number): number {
    return this.#times[slot]!;
  }

  /** A record with this key; an earlier one than is known changes nothing. */
  note(key: Int32Array, position: number, time: number): void {
    if (position < this.floor) return;
    let slot = this.#slot(key);
    const known = this.#positions[slot]!;
    if (known > position) return;
    if (Number.isNaN(known)) {
      if (this.#used >= MOST_USED * this.#slots) {
        this.#renew();
        slot = this.#slot(key);
      }
      this.#used++;
      for (let i = 0; i < KEY_WORDS; i++) this.#keys[KEY_WORDS * slot + i] = key[i]!;
    }
    this.#positions[slot] = position;
    this.#times[slot] = time;
  }

  clear(): void {
    this.#take(FIRST_SLOTS);
    this.floor = Number.NEGATIVE_INFINITY;
  }

  /** Those within the window, in no order. `key`: valid during the call. */
  each(visit: (key: Int32Array, position: number, time: number) => void): void {
    for (let slot = 0; slot < this.#slots; slot++)
      if (this.#positions[slot]! >= this.floor)
        visit(
          this.#keys.subarray(KEY_WORDS * slot, KEY_WORDS * (slot + 1)),
          this.#positions[slot]!,
          this.#times[slot]!,
        );
  }

  /** That of the key, or a free one. Keys are tags of a MAC: their words are as good as chance. */
  #slot(key: Int32Array): number {
    const mask = this.#slots - 1;
    let slot = key[0]! & mask;
    while (!Number.isNaN(this.#positions[slot]!)) {
      const at = KEY_WORDS * slot;
      const keys = this.#keys;
      if (
        keys[at] === key[0] &&
        keys[at + 1] === key[1] &&
        keys[at + 2] === key[2] &&
        keys[at + 3] === key[3]
      )
        break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #renew(): void {
    let alive = 0;
    for (let slot = 0; slot < this.#slots; slot++) if (this.#positions[slot]! >= this.floor) alive++;
    const [keys, positions, times, slots] = [this.#keys, this.#positions, this.#times, this.#slots];
    this.#take(alive > MOST_ALIVE * slots ? 2 * slots : slots);
    const mask = this.#slots - 1;
    for (let from = 0; from < slots; from++) {
      if (!(positions[from]! >= this.floor)) continue;
      let slot = keys[KEY_WORDS * from]! & mask;
      while (!Number.isNaN(this.#positions[slot]!)) slot = (slot + 1) & mask;
      for (let i = 0; i < KEY_WORDS; i++) this.#keys[KEY_WORDS * slot + i] = keys[KEY_WORDS * from + i]!;
      this.#positions[slot] = positions[from]!;
      this.#times[slot] = times[from]!;
    }
    this.#used = alive;
  }

  #take(slots: number): void {
    this.#slots = slots;
    this.#keys = new Int32Array(KEY_WORDS * slots);
    this.#positions = new Float64Array(slots).fill(Number.NaN);
    this.#times = new Float64Array(slots);
    this.#used = 0;
  }
}
