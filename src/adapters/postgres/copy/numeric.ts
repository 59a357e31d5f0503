/**
 * Decimals in PostgreSQL's binary form: int16 digits | int16 weight | uint16 sign | int16 scale | digit ..., where each
 * digit is an int16 of base 10,000 and the first one stands for 10,000^weight.
 */
const BASE = 10_000;
const NEGATIVE = 0x4000;

/** Digits of a non-negative whole number scaled by 10^-scale, aligned to the decimal point. Most significant first. */
function digitsOf(unscaled: bigint, scale: number): { digits: number[]; weight: number } {
  // The fraction is filled up to a whole number of digits.
  const fraction = Math.ceil(scale / 4);
  let rest = unscaled * 10n ** BigInt(fraction * 4 - scale);
  const digits: number[] = [];
  // Chunks that a double holds exactly, so that the loop is not one over BigInt.
  while (rest > 0n) {
    let chunk = Number(rest % 1_000_000_000_000n);
    rest /= 1_000_000_000_000n;
    for (let i = 0; i < 3; i++) {
      digits.push(chunk % BASE);
      chunk = Math.floor(chunk / BASE);
    }
  }
  while (digits.length > 0 && digits[digits.length - 1] === 0) digits.pop();
  const weight = digits.length - 1 - fraction;
  digits.reverse();
  while (digits.length > 0 && digits[digits.length - 1] === 0) digits.pop();
  return { digits, weight: digits.length === 0 ? 0 : weight };
}

/** One value as its field content. */
export function numericBytes(unscaled: bigint, scale: number): Uint8Array {
  const negative = unscaled < 0n;
  const { digits, weight } = digitsOf(negative ? -unscaled : unscaled, scale);
  const out = new Uint8Array(8 + 2 * digits.length);
  const view = new DataView(out.buffer);
  view.setInt16(0, digits.length);
  view.setInt16(2, weight);
  view.setUint16(4, negative ? NEGATIVE : 0);
  view.setInt16(6, scale);
  digits.forEach((d, i) => {
    view.setInt16(8 + 2 * i, d);
  });
  return out;
}
