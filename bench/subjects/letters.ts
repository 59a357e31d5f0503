/** What the produce benchmark sends again and again: the same letters as the peers', by the same generator. */
import type { BytesColumn } from "../../src/core/records/raw-batch.ts";

const DISTINCT = 1000;

/** 1,000 values of `size` letters. */
export function lettersOf(size: number): { readonly rows: number; readonly value: BytesColumn } {
  const data = new Uint8Array(DISTINCT * size);
  let state = 1;
  for (let i = 0; i < data.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    data[i] = 97 + ((state >>> 24) % 26);
  }
  const offsets = Int32Array.from({ length: DISTINCT + 1 }, (_, i) => i * size);
  return { rows: DISTINCT, value: { offsets, data, validity: new Uint8Array(0), nullCount: 0 } };
}
