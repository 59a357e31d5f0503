/** Chance of a fuzz case: a generator of its own from the case number, and ways to damage bytes. */
export type Draw = (below: number) => number;

/** splitmix32. */
export function draws(seed: number): Draw {
  let state = seed | 0;
  return (below) => {
    state = (state + 0x9e3779b9) | 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) % below;
  };
}

export function pick<T>(draw: Draw, list: readonly T[]): T {
  return list[draw(list.length)]!;
}

/** Values that lengths, counts and varints are most likely to break on. */
const EDGES = [0x00, 0x01, 0x02, 0x7e, 0x7f, 0x80, 0x81, 0xfe, 0xff] as const;
/** Int32 values likewise. */
const WORDS = [0, 1, -1, -2, 0x7fffffff, -0x80000000, 1 << 20, 1 << 30] as const;

function smash(bytes: Uint8Array, draw: Draw): void {
  const at = draw(bytes.length);
  switch (draw(5)) {
    case 0:
      bytes[at] = draw(256);
      break;
    case 1:
      bytes[at]! ^= 1 << draw(8);
      break;
    case 2:
      bytes[at] = pick(draw, EDGES);
      break;
    case 3:
      if (at + 4 <= bytes.length)
        new DataView(bytes.buffer, bytes.byteOffset).setInt32(at, pick(draw, WORDS));
      break;
    default:
      // A run of continuation bits: varints that do not end.
      bytes.fill(0xff, at, at + draw(12));
  }
}

/** A damaged copy: cut, stretched, pieces moved, single bytes changed. Never longer than twice the original. */
export function damage(bytes: Uint8Array, draw: Draw): Uint8Array<ArrayBuffer> {
  const kind = draw(8);
  let out: Uint8Array<ArrayBuffer>;
  if (kind === 0) out = bytes.slice(0, draw(bytes.length + 1));
  else if (kind === 1) {
    const from = draw(bytes.length + 1);
    const piece = bytes.subarray(from, from + draw(bytes.length - from + 1));
    const at = draw(bytes.length + 1);
    out = Uint8Array.from(Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at)]));
  } else out = bytes.slice();
  for (let n = draw(5); n > 0 && out.length > 0; n--) smash(out, draw);
  return out;
}
