/** How an open upload stands in an intent: all that whoever finds it needs to complete it or to give it up. */
import { Failure } from "../../core/failure/failure.ts";

export interface UploadedPart {
  /** As the store named it, quotes included. */
  readonly tag: string;
  /** CRC-32 of the part, base64; "" if none was sent. */
  readonly crc: string;
}

export interface Staging {
  readonly upload: string;
  /** Unique to the upload, in the metadata of the object that it becomes. */
  readonly token: string;
  readonly parts: readonly UploadedPart[];
}

export function encodeStaging(s: Staging): string {
  return JSON.stringify({ upload: s.upload, token: s.token, parts: s.parts.map((p) => [p.tag, p.crc]) });
}

/** Throws coverage.corrupt: it comes from the stored state. */
export function parseStaging(text: string, at: string): Staging {
  const { upload, token, parts } = objectOf(text);
  if (isText(upload) && isText(token) && Array.isArray(parts) && parts.length > 0) {
    const known = parts.flatMap((p: unknown) => partOf(p) ?? []);
    if (known.length === parts.length) return { upload, token, parts: known };
  }
  throw new Failure("coverage.corrupt", "a staged upload is not described as twg does it", { at });
}

function partOf(value: unknown): UploadedPart | null {
  if (!Array.isArray(value) || value.length !== 2) return null;
  const [tag, crc] = value as readonly unknown[];
  return isText(tag) && typeof crc === "string" ? { tag, crc } : null;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
