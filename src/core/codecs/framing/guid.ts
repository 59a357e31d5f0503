const HEX = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0"));

/** 16 bytes from `from` on, as the canonical text of a UUID. */
export function guidText(bytes: Uint8Array, from: number): string {
  let text = "";
  for (let i = 0; i < 16; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) text += "-";
    text += HEX[bytes[from + i]!];
  }
  return text;
}
