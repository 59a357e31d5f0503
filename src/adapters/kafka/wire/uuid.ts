/** Topic ids: 16 bytes, shown and compared as URL-safe base64 without padding, as Kafka's tools print them. */
import { Failure } from "../../../core/failure/failure.ts";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const TEXT_LENGTH = 22;

/** "No id": sent by brokers that keep none, never the id of a topic. */
export const ZERO_UUID = "A".repeat(TEXT_LENGTH);

export function decodeUuid(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < 15; i += 3) {
    const group = (bytes[i]! << 16) | (bytes[i + 1]! << 8) | bytes[i + 2]!;
    text +=
      ALPHABET[group >> 18]! +
      ALPHABET[(group >> 12) & 63]! +
      ALPHABET[(group >> 6) & 63]! +
      ALPHABET[group & 63]!;
  }
  return text + ALPHABET[bytes[15]! >> 2]! + ALPHABET[(bytes[15]! & 3) << 4]!;
}

export function encodeUuid(text: string): Uint8Array {
  const bytes = new Uint8Array(16);
  let at = 0;
  let group = 0;
  let bits = 0;
  for (const letter of text) {
    const value = ALPHABET.indexOf(letter);
    if (value < 0 || text.length !== TEXT_LENGTH)
      throw new Failure("bytes.invalid", `'${text}' is not an id of 16 bytes in base64`);
    group = ((group << 6) | value) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = group >> bits;
    }
  }
  if (at !== 16) throw new Failure("bytes.invalid", `'${text}' is not an id of 16 bytes in base64`);
  return bytes;
}
