/** From what a framing found to what a decoder takes, and from what it took back to rows of the batch: loops over numbers alone. */
import type { Framed } from "../codecs/framing/framed.ts";
import type { Payloads } from "../codecs/record-codec.ts";

/** Which rows of `framed` are written by a schema, and where their payloads are. */
export function payloadsOf(
  framed: Framed,
  slot: number,
): { readonly rows: Int32Array; readonly payloads: Payloads } {
  const { bytes, slots } = framed;
  const rows = new Int32Array(framed.rows);
  let count = 0;
  for (let i = 0; i < framed.rows; i++) if (slots[i] === slot) rows[count++] = i;
  if (count === framed.rows)
    return { rows, payloads: { bytes, starts: framed.starts, ends: framed.ends, count } };
  const starts = new Int32Array(count);
  const ends = new Int32Array(count);
  for (let n = 0; n < count; n++) {
    starts[n] = framed.starts[rows[n]!]!;
    ends[n] = framed.ends[rows[n]!]!;
  }
  return { rows: rows.subarray(0, count), payloads: { bytes, starts, ends, count } };
}

/** Those that were decoded, as rows of the batch. */
export function goodRows(rows: Int32Array, bad: ReadonlySet<number>, first: number): Int32Array {
  const out = new Int32Array(rows.length - bad.size);
  let n = 0;
  for (let i = 0; i < rows.length; i++) if (bad.size === 0 || !bad.has(i)) out[n++] = first + rows[i]!;
  return out;
}
