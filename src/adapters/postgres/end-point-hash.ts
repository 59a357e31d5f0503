/**
 * The channel binding "tls-server-end-point" (RFC 5929 section 4.1): the server's certificate under the hash of its
 * own signature, SHA-256 in place of MD5 and SHA-1. Null where that hash is not known (Ed25519, RSASSA-PSS).
 *
 *   Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { OID, ... }, signature }
 */
import { createHash } from "node:crypto";

/** Signature algorithms by the hex of their object identifiers. */
const HASHES: Readonly<Record<string, string>> = {
  "2a864886f70d010104": "sha256", // md5WithRSA
  "2a864886f70d010105": "sha256", // sha1WithRSA
  "2a864886f70d01010b": "sha256", // sha256WithRSA
  "2a864886f70d01010c": "sha384",
  "2a864886f70d01010d": "sha512",
  "2a8648ce3d0401": "sha256", // ecdsa-with-SHA1
  "2a8648ce3d040302": "sha256", // ecdsa-with-SHA256
  "2a8648ce3d040303": "sha384",
  "2a8648ce3d040304": "sha512",
};

const SEQUENCE = 0x30;
const OBJECT_IDENTIFIER = 0x06;

export function endPointHash(certificate: Uint8Array): Uint8Array | null {
  const outer = element(certificate, 0);
  const body = outer === null ? null : element(certificate, outer.start);
  const algorithm = body === null ? null : element(certificate, body.end);
  const id = algorithm === null ? null : element(certificate, algorithm.start);
  if (algorithm?.tag !== SEQUENCE || id?.tag !== OBJECT_IDENTIFIER) return null;
  const hash = HASHES[Buffer.from(certificate.subarray(id.start, id.end)).toString("hex")];
  return hash === undefined ? null : new Uint8Array(createHash(hash).update(certificate).digest());
}

interface Element {
  readonly tag: number;
  readonly start: number;
  readonly end: number;
}

/** The DER element at `at`; null where the bytes are none or end before it does. */
function element(bytes: Uint8Array, at: number): Element | null {
  const tag = bytes[at];
  const first = bytes[at + 1];
  if (tag === undefined || first === undefined) return null;
  const more = first < 0x80 ? 0 : first & 0x7f;
  if (more > 4) return null;
  let length = first < 0x80 ? first : 0;
  for (let i = 0; i < more; i++) length = length * 256 + (bytes[at + 2 + i] ?? Number.NaN);
  const start = at + 2 + more;
  return start + length <= bytes.length ? { tag, start, end: start + length } : null;
}
