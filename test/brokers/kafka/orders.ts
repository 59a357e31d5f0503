/**
 * Real-looking order events. Record i is a pure function of the seed and i, so a reader can say what it must have read.
 * Values are JSON of about 250 bytes; the key is the customer.
 */
import { buildBatch, type RecordSpec } from "./batch-builder.ts";
import type { BatchCodec } from "./compress.ts";

/** 2026-01-01T00:00:00Z */
const BASE_MS = 1767225600000;
const MS_PER_RECORD = 7;
const CUSTOMERS = 200_000;
const DAY_MS = 86_400_000;
const COUNTRIES = ["DE", "FR", "US", "BR", "IN", "JP", "GB", "NL", "PL", "ZA"] as const;
const ADJECTIVES = ["red", "blue", "small", "large", "heavy", "light", "round", "flat"] as const;
const NOUNS = ["lamp", "chair", "cable", "mug", "shelf", "pen", "bag", "clock"] as const;

/** A generator of 32-bit numbers by counter and mixing; all of its state is one integer. */
export class Draw {
  #state = 0;

  begin(seed: number, i: number): void {
    this.#state = (Math.imul(seed ^ 0x5bd1e995, 0x27d4eb2f) ^ Math.imul(i + 1, 0x9e3779b1)) | 0;
    this.below(1);
  }

  below(n: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) % n;
  }
}

export interface Order {
  readonly key: string;
  readonly value: string;
  readonly timestampMs: number;
}

const draw = new Draw();
let dayStart = -1;
let dayText = "";

const two = (n: number): string => (n < 10 ? `0${n}` : `${n}`);
const three = (n: number): string => (n < 10 ? `00${n}` : n < 100 ? `0${n}` : `${n}`);

function isoOf(ms: number): string {
  const start = ms - (ms % DAY_MS);
  if (start !== dayStart) {
    dayStart = start;
    dayText = new Date(start).toISOString().slice(0, 11);
  }
  const t = ms - start;
  const time = `${two(Math.floor(t / 3600000))}:${two(Math.floor(t / 60000) % 60)}:${two(Math.floor(t / 1000) % 60)}`;
  return `${dayText}${time}.${three(t % 1000)}Z`;
}

const money = (cents: number): string => `${Math.floor(cents / 100)}.${two(cents % 100)}`;

export function order(seed: number, i: number): Order {
  draw.begin(seed, i);
  const timestampMs = BASE_MS + i * MS_PER_RECORD + draw.below(MS_PER_RECORD);
  const key = `c-${String(draw.below(CUSTOMERS)).padStart(6, "0")}`;
  const country = COUNTRIES[draw.below(COUNTRIES.length)]!;
  const count = 1 + draw.below(3);
  let items = "";
  let total = 0;
  for (let k = 0; k < count; k++) {
    const sku = `${ADJECTIVES[draw.below(8)]!}-${NOUNS[draw.below(8)]!}-${three(draw.below(1000))}`;
    const qty = 1 + draw.below(5);
    const cents = 99 + draw.below(20000);
    total += cents * qty;
    items += `${k > 0 ? "," : ""}{"sku":"${sku}","qty":${qty},"price":"${money(cents)}"}`;
  }
  const gift = draw.below(10) === 0;
  const express = draw.below(4) === 0;
  const value = `{"id":${i},"customer":"${key}","ts":"${isoOf(timestampMs)}","amount":"${money(total)}","country":"${country}","items":[${items}],"flags":{"gift":${gift},"express":${express}}}`;
  return { key, value, timestampMs };
}

/** One batch of the records first, first + step, ... (`count` of them). */
export function ordersBatch(
  seed: number,
  first: number,
  step: number,
  count: number,
  codec: BatchCodec,
): Uint8Array {
  const records: RecordSpec[] = [];
  for (let k = 0; k < count; k++) {
    const { key, value, timestampMs } = order(seed, first + k * step);
    records.push({ key, value, timestamp: BigInt(timestampMs) });
  }
  return buildBatch({ records, codec });
}
