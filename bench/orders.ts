/**
 * JSON orders for benchmarks: line i is a pure function of a fixed seed and i. The same bytes as the project's
 * Java generator of bench data, so that figures can be compared with those of the end-to-end runs.
 */
import type { Payloads } from "../src/core/codecs/record-codec.ts";

const SEED = 0x7477672d62656e63n;
const BASE_MS = 1_767_225_600_000;
const MASK = (1n << 64n) - 1n;
const COUNTRIES = ["DE", "FR", "US", "BR", "IN", "JP", "GB", "NL", "PL", "ZA"];
const ADJECTIVES = ["red", "blue", "small", "large", "heavy", "light", "round", "flat"];
const NOUNS = ["lamp", "chair", "cable", "mug", "shelf", "pen", "bag", "clock"];

/** splitmix64 */
function chance(seed: bigint): (n: number) => number {
  let state = seed & MASK;
  return (n) => {
    state = (state + 0x9e3779b97f4a7c15n) & MASK;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
    z ^= z >> 31n;
    return Number((z >> 33n) % BigInt(n));
  };
}

const money = (cents: number) => `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, "0")}`;

export function orderJson(i: number): string {
  const below = chance(SEED ^ ((BigInt(i) * 0xd1342543de82ef95n) & MASK));
  const ts = BASE_MS + i * 7 + below(7);
  const customer = `c-${String(below(200_000)).padStart(6, "0")}`;
  const country = COUNTRIES[below(COUNTRIES.length)];
  let total = 0;
  const items = Array.from({ length: 1 + below(3) }, () => {
    const sku = `${ADJECTIVES[below(8)]}-${NOUNS[below(8)]}-${String(below(1000)).padStart(3, "0")}`;
    const qty = 1 + below(5);
    const cents = 99 + below(20_000);
    total += cents * qty;
    return { sku, qty, price: money(cents) };
  });
  const flags = { gift: below(10) === 0, express: below(4) === 0 };
  return JSON.stringify({
    id: i,
    customer,
    ts: new Date(ts).toISOString(),
    amount: money(total),
    country,
    items,
    flags,
  });
}

/** The orders [first, first + count). */
export function orderPayloads(first: number, count: number): Payloads {
  const parts = Array.from({ length: count }, (_, i) => new TextEncoder().encode(orderJson(first + i)));
  const ends = new Int32Array(count);
  for (let i = 0; i < count; i++) ends[i] = (ends[i - 1] ?? 0) + parts[i]!.length;
  const starts = ends.map((end, i) => end - parts[i]!.length);
  return { bytes: new Uint8Array(Buffer.concat(parts)), starts, ends, count };
}

/** Their columns; in the Avro schema money is text, so both have the same. */
export const ORDER_COLUMNS: Readonly<Record<string, string>> = {
  id: "int64",
  customer: "string",
  ts: "timestamptz[ms]",
  amount: "string",
  country: "string",
  items: "list<struct<sku string, qty int32, price string>>",
  flags: "struct<gift boolean, express boolean>",
};

const string = { type: "string" };
/** The same orders in Avro. */
export const ORDER_AVRO: string = JSON.stringify({
  type: "record",
  name: "Order",
  namespace: "bench",
  fields: [
    { name: "id", type: "long" },
    { name: "customer", ...string },
    { name: "ts", type: { type: "long", logicalType: "timestamp-millis" } },
    { name: "amount", ...string },
    { name: "country", ...string },
    {
      name: "items",
      type: {
        type: "array",
        items: {
          type: "record",
          name: "Item",
          fields: [
            { name: "sku", ...string },
            { name: "qty", type: "int" },
            { name: "price", ...string },
          ],
        },
      },
    },
    {
      name: "flags",
      type: {
        type: "record",
        name: "Flags",
        fields: [
          { name: "gift", type: "boolean" },
          { name: "express", type: "boolean" },
        ],
      },
    },
  ],
});
