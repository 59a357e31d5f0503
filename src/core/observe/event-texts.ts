/** Phrases of log lines that more than one event has, or that take more than a line. */
import type { FailureWire } from "../failure/failure.ts";
import { formatBytes, formatCount, formatDuration } from "./quantities.ts";

export function failureText(f: FailureWire): string {
  const place = f.at === null ? "" : ` (at ${f.at})`;
  return `${f.code}: ${f.message}${place}${f.hint === null ? "" : `. ${f.hint}`}`;
}

const SHOWN_NAMES = 20;

export function named(names: readonly string[]): string {
  const more = names.length - SHOWN_NAMES;
  return `${names.slice(0, SHOWN_NAMES).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

export function stallText(e: {
  readonly ms: number;
  readonly lag: number;
  readonly bytesInFlight: number;
}): string {
  const waiting = `a lag of ${formatCount(e.lag)} and ${formatBytes(e.bytesInFlight)} in flight`;
  return `no progress for ${formatDuration(e.ms)} with ${waiting}`;
}

/** `path` empty: the value as a whole. */
export function undecodableText(e: {
  readonly code: string;
  readonly records: number;
  readonly topic: string;
  readonly first: string;
  readonly path: string;
}): string {
  const place = `${e.first}${e.path === "" ? "" : `, at ${e.path}`}`;
  const records = `${e.records} ${e.records === 1 ? "record" : "records"} of ${e.topic}`;
  return `${records} cannot be decoded: ${e.code}, such as ${place}`;
}

export function refusedText(e: {
  readonly sink: string;
  readonly code: string;
  readonly records: number;
  readonly kept: boolean;
}): string {
  const rows = `${e.records} ${e.records === 1 ? "row" : "rows"}`;
  return `${e.sink}: ${rows} refused (${e.code}), ${e.kept ? "kept among its rejects" : "nowhere kept: missing in it"}`;
}

export function thereText(e: {
  readonly sink: string;
  readonly id: string;
  readonly records: number;
}): string {
  return `${e.sink}: ${e.records} ${e.records === 1 ? "row" : "rows"} of set ${e.id} ${e.records === 1 ? "was" : "were"} in the table already`;
}
