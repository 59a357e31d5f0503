/** Documents of other encodings as UTF-8: by their byte order mark, or by what their declaration says. */
import type { Payloads } from "../record-codec.ts";

const DECLARED = /^<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]{0,40})["']/;

type Encoding = "utf-16le" | "utf-16be" | "windows-1252" | "iso-8859-1" | "unknown";

/** As the registry of names has it, and as it is written all the same. */
const LATIN1: readonly string[] = ["iso-8859-1", "iso_8859-1", "iso8859-1", "latin1"];

/** Null: UTF-8, its mark excepted. */
function encodingOf(bytes: Uint8Array, from: number, end: number): Encoding | null {
  const [a, b] = [bytes[from], bytes[from + 1]];
  if (end - from >= 2 && a === 0xff && b === 0xfe) return "utf-16le";
  if (end - from >= 2 && a === 0xfe && b === 0xff) return "utf-16be";
  if (a !== 60 || b !== 63) return null;
  const head = new TextDecoder("latin1").decode(bytes.subarray(from, Math.min(end, from + 300)));
  const name = DECLARED.exec(head)?.[1]?.toLowerCase();
  if (name === undefined || name === "utf-8" || name === "us-ascii" || name === "ascii") return null;
  if (name === "windows-1252" || name === "cp1252") return "windows-1252";
  return LATIN1.includes(name) ? "iso-8859-1" : "unknown";
}

function transcoded(bytes: Uint8Array, encoding: Exclude<Encoding, "unknown">): Uint8Array {
  const text =
    encoding === "iso-8859-1"
      ? Array.from(bytes, (c) => String.fromCharCode(c)).join("")
      : new TextDecoder(encoding, { fatal: true }).decode(bytes);
  return new TextEncoder().encode(text);
}

/** The payloads as UTF-8 without a mark. `refuse` is told of those that cannot be; they are empty then. */
export function utf8Payloads(payloads: Payloads, refuse: (row: number, reason: string) => void): Payloads {
  const { bytes, starts, ends, count } = payloads;
  const changed = new Map<number, Uint8Array>();
  for (let i = 0; i < count; i++) {
    const [from, end] = [starts[i]!, ends[i]!];
    const marked =
      bytes[from] === 0xef && bytes[from + 1] === 0xbb && bytes[from + 2] === 0xbf && end - from >= 3;
    if (marked) changed.set(i, bytes.slice(from + 3, end));
    const encoding = encodingOf(bytes, from, end);
    if (encoding === null) continue;
    const part = bytes.subarray(from, end);
    try {
      if (encoding === "unknown") throw new RangeError("an encoding that is not read");
      changed.set(i, transcoded(part, encoding));
    } catch (e) {
      changed.set(i, new Uint8Array(0));
      refuse(i, e instanceof RangeError ? "an encoding that is not read" : `bytes that are no ${encoding}`);
    }
  }
  return changed.size === 0 ? payloads : rebuilt(payloads, changed);
}

function rebuilt(
  { bytes, starts, ends, count }: Payloads,
  changed: ReadonlyMap<number, Uint8Array>,
): Payloads {
  const parts = Array.from({ length: count }, (_, i) => changed.get(i) ?? bytes.subarray(starts[i], ends[i]));
  const joined = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  const [from, to] = [new Int32Array(count), new Int32Array(count)];
  let at = 0;
  for (const [i, p] of parts.entries()) {
    joined.set(p, at);
    from[i] = at;
    at += p.length;
    to[i] = at;
  }
  return { bytes: joined, starts: from, ends: to, count };
}
