/**
 * Chaskey-12 (Mouha and others, "Chaskey: An Efficient MAC Algorithm for 32-bit Microcontrollers", 2014, and its 12-round
 * form of 2015): 128 bits of a message under a key of 128 bits, in 32-bit arithmetic. Whoever does not know the key can't
 * make two messages that share a tag; of n that are not made on purpose two share one with a chance below n^2 / 2^129.
 */

const ROUNDS = 12;
export const BLOCK_BYTES = 16;
const BLOCK_WORDS = 4;

export class KeyMac {
  readonly #key: Int32Array;
  readonly #whole: Int32Array;
  readonly #padded: Int32Array;
  /** Of the last message. */
  readonly tag: Int32Array = new Int32Array(BLOCK_WORDS);

  /** `key`: four words. */
  constructor(key: Int32Array) {
    this.#key = key.slice(0, BLOCK_WORDS);
    this.#whole = doubled(this.#key);
    this.#padded = doubled(this.#whole);
  }

  /** `words`: the message as little-endian words, with room for one byte more and for the end of its block, which it changes. */
  of(words: Int32Array, bytes: number): void {
    const { tag } = this;
    tag.set(this.#key);
    const isWhole = bytes > 0 && bytes % BLOCK_BYTES === 0;
    const last = isWhole ? bytes / BLOCK_BYTES - 1 : Math.floor(bytes / BLOCK_BYTES);
    for (let block = 0; block < last; block++) {
      mix(tag, words, block * BLOCK_WORDS);
      permute(tag);
    }
    if (!isWhole) pad(words, bytes);
    mix(tag, words, last * BLOCK_WORDS);
    const end = isWhole ? this.#whole : this.#padded;
    mix(tag, end, 0);
    permute(tag);
    mix(tag, end, 0);
  }
}

/** Times x in GF(2^128). */
function doubled(k: Int32Array): Int32Array {
  const out = new Int32Array(BLOCK_WORDS);
  out[0] = (k[0]! << 1) ^ (k[3]! < 0 ? 0x87 : 0);
  for (let i = 1; i < BLOCK_WORDS; i++) out[i] = (k[i]! << 1) | (k[i - 1]! >>> 31);
  return out;
}

/** A one behind the message, zeros to the end of the block. */
function pad(words: Int32Array, bytes: number): void {
  const at = bytes >> 2;
  const bit = (bytes & 3) * 8;
  const kept = bit === 0 ? 0 : words[at]! & (0xffffffff >>> (32 - bit));
  words[at] = kept | (1 << bit);
  const end = (Math.floor(bytes / BLOCK_BYTES) + 1) * BLOCK_WORDS;
  for (let i = at + 1; i < end; i++) words[i] = 0;
}

function mix(v: Int32Array, m: Int32Array, at: number): void {
  v[0]! ^= m[at]!;
  v[1]! ^= m[at + 1]!;
  v[2]! ^= m[at + 2]!;
  v[3]! ^= m[at + 3]!;
}

function permute(v: Int32Array): void {
  let a = v[0]!;
  let b = v[1]!;
  let c = v[2]!;
  let d = v[3]!;
  for (let i = 0; i < ROUNDS; i++) {
    a = (a + b) | 0;
    b = ((b << 5) | (b >>> 27)) ^ a;
    a = (a << 16) | (a >>> 16);
    c = (c + d) | 0;
    d = ((d << 8) | (d >>> 24)) ^ c;
    a = (a + d) | 0;
    d = ((d << 13) | (d >>> 19)) ^ a;
    c = (c + b) | 0;
    b = ((b << 7) | (b >>> 25)) ^ c;
    c = (c << 16) | (c >>> 16);
  }
  v[0] = a;
  v[1] = b;
  v[2] = c;
  v[3] = d;
}
