/** From what a framing found to what a decoder takes, and from what it took back to rows of the batch: loops over numbers alone. */
import type { Framed } from "../codecs/framing/framed.ts";
import type { Payloads } from "../codecs/record-codec.ts";

/** Rows of `framed` by the schema that they are written by: in one go, since there may be as many schemas as rows. */
export function rowsBySlot(framed: Framed): Int32Array[] {
  const { slots, rows, schemas } = framed;
  const counts = new Int32Array(schemas.length);
  for (let i = 0; i < rows; i++) if (slots[i]! >= 0) counts[slots[i]!]!++;
  const groups = Array.from(counts, (n) => new Int32Array(n));
  counts.fill(0);
  for (let i = 0; i < rows; i++) {
    const slot = slots[i]!;
    if (slot >= 0) groups[slot]![counts[slot]!++] = i;
  }
  return groups;
}

/** Where the payloads of these rows are. */
export function payloadsOf({ bytes, starts, ends, rows: all }: Framed, rows: Int32Array): Payloads {
  const count = rows.length;
  if (count === all) return { bytes, starts, ends, count };
  const [from, to] = [new Int32Array(count), new Int32Array(count)];
  for (let n = 0; n < count; n++) {
    from[n] = starts[rows[n]!]!;
    to[n] = ends[rows[n]!]!;
  }
  return { bytes, starts: from, ends: to, count };
}

/** Those that were decoded, as rows of the batch. */
export function goodRows(rows: Int32Array, bad: ReadonlySet<number>, first: number): Int32Array {
  const out = new Int32Array(rows.length - bad.size);
  let n = 0;
  for (let i = 0; i < rows.length; i++) if (bad.size === 0 || !bad.has(i)) out[n++] = first + rows[i]!;
  return out;
}
