/** Documents of other encodings as UTF-8: by their byte order mark, or by what their declaration says. */
import type { Payloads } from "../record-codec.ts";

const DECLARED = /^<\?xml[ \t\r\n][^>]{0,200}?encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]{0,40})["']/;

type Encoding = "us-ascii" | "windows-1252" | "iso-8859-1" | "unknown";

/** As the registry of names has it, and as it is written all the same. */
const LATIN1: readonly string[] = ["iso-8859-1", "iso_8859-1", "iso8859-1", "latin1"];

/** What may be declared of a document that begins with the mark of an encoding. */
const OF_MARK = {
  "utf-8": ["utf-8", "utf8"],
  "utf-16le": ["utf-16", "utf-16le"],
  "utf-16be": ["utf-16", "utf-16be"],
} as const;

/** The encoding that a document's byte order mark names, or null. */
function markOf(bytes: Uint8Array): keyof typeof OF_MARK | null {
  const [a, b, c] = [bytes[0], bytes[1], bytes[2]];
  if (a === 0xff && b === 0xfe) return "utf-16le";
  if (a === 0xfe && b === 0xff) return "utf-16be";
  return a === 0xef && b === 0xbb && c === 0xbf ? "utf-8" : null;
}

/** In small letters; null: nothing is declared. `bytes`: of one byte a character, so far. */
function declaredName(bytes: Uint8Array): string | null {
  if (bytes[0] !== 60 || bytes[1] !== 63) return null;
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 300));
  return DECLARED.exec(head)?.[1]?.toLowerCase() ?? null;
}

/** Null: UTF-8. */
function encodingOf(name: string | null): Encoding | null {
  if (name === null || name === "utf-8" || name === "utf8") return null;
  if (name === "us-ascii" || name === "ascii") return "us-ascii";
  if (name === "windows-1252" || name === "cp1252") return "windows-1252";
  return LATIN1.includes(name) ? "iso-8859-1" : "unknown";
}

/** A document of one byte a character as UTF-8. Throws RangeError. */
function transcoded(bytes: Uint8Array, encoding: Encoding): Uint8Array {
  if (encoding === "unknown") throw new RangeError("an encoding that is not read");
  if (encoding === "us-ascii") {
    if (bytes.some((c) => c > 127)) throw new RangeError("bytes that are no us-ascii");
    return bytes;
  }
  const text =
    encoding === "iso-8859-1"
      ? Array.from(bytes, (c) => String.fromCharCode(c)).join("")
      : new TextDecoder(encoding).decode(bytes);
  return new TextEncoder().encode(text);
}

/** A document behind its mark as UTF-8: what it declares has to agree. Throws RangeError. */
function unmarked(bytes: Uint8Array, mark: keyof typeof OF_MARK): Uint8Array {
  const plain = mark === "utf-8" ? bytes.subarray(3) : utf16(bytes.subarray(2), mark);
  const name = declaredName(plain);
  if (name === null || (OF_MARK[mark] as readonly string[]).includes(name)) return plain;
  throw new RangeError(`its mark says ${mark}, its declaration another encoding`);
}

function utf16(bytes: Uint8Array, encoding: "utf-16le" | "utf-16be"): Uint8Array {
  try {
    return new TextEncoder().encode(new TextDecoder(encoding, { fatal: true }).decode(bytes));
  } catch {
    throw new RangeError(`bytes that are no ${encoding}`);
  }
}

/** The document as UTF-8 without a mark; null: it is that. Throws RangeError with what is wrong. */
function asUtf8(bytes: Uint8Array): Uint8Array | null {
  const mark = markOf(bytes);
  if (mark !== null) return unmarked(bytes, mark);
  const encoding = encodingOf(declaredName(bytes));
  return encoding === null ? null : transcoded(bytes, encoding);
}

/** The payloads as UTF-8 without a mark. `refuse` is told of those that cannot be; they are empty then. */
export function utf8Payloads(payloads: Payloads, refuse: (row: number, reason: string) => void): Payloads {
  const { bytes, starts, ends, count } = payloads;
  const changed = new Map<number, Uint8Array>();
  for (let i = 0; i < count; i++) {
    const [a, b] = [bytes[starts[i]!], bytes[starts[i]! + 1]];
    // Most begin with neither a mark nor a declaration: nothing is made for them.
    if (a! < 0xef && !(a === 60 && b === 63)) continue;
    try {
      const utf8 = asUtf8(bytes.subarray(starts[i], ends[i]));
      if (utf8 !== null) changed.set(i, utf8);
    } catch (e) {
      if (!(e instanceof RangeError)) throw e;
      changed.set(i, new Uint8Array(0));
      refuse(i, e.message);
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
