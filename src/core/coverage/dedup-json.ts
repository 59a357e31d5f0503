/**
 * What a pipeline remembers of how its duplicates were found, as JSON, version 1. Persisted: a change of shape is a new
 * version with its own reader and a new golden file.
 */
import { asFailure, Failure } from "../failure/failure.ts";
import type { StreamKey } from "../records/stream.ts";
import { corrupt, count, fields, int64, keyed, list, type Place, text } from "./json-place.ts";
import { checkVersion, limited } from "./state-json.ts";

const FORMAT = "twg.dedup";
const VERSION = 1;
const MAX_BYTES = 8 * 1024 * 1024;
const SECRET = /^[0-9a-f]{32}$/;
const PLAN = /^[0-9a-f]{32}$/;

/** From `from` on, to the next one's, records of a stream are judged by this plan. */
export interface PlanEpoch {
  readonly from: bigint;
  /** Records before it count for none of these. */
  readonly reach: bigint;
  /** Digest of all that the judgement depends on but the records. */
  readonly plan: string;
}

export interface DedupBookState {
  /** Of the keys: 16 bytes in hexadecimal. Whoever knows it can make two keys that are taken for one. */
  readonly secret: string;
  /** Ascending, none empty. */
  readonly streams: ReadonlyMap<StreamKey, readonly PlanEpoch[]>;
}

/** `serial`: the version under which it is stored. */
export function encodeDedupBook({ secret, streams }: DedupBookState, serial: number): Uint8Array {
  const body = {
    ...{ format: FORMAT, version: VERSION, serial, secret },
    streams: [...streams].map(([stream, epochs]) => ({
      stream,
      epochs: epochs.map(({ from, reach, plan }) => ({ from: String(from), reach: String(reach), plan })),
    })),
  };
  return new TextEncoder().encode(`${JSON.stringify(body)}\n`);
}

/** Throws dedup.corrupt (naming object and place) and coverage.newer_version. */
export function parseDedupBook(bytes: Uint8Array, object: string, version: number): DedupBookState {
  try {
    const at = limited(bytes, object, MAX_BYTES);
    checkVersion(at, FORMAT, VERSION);
    const f = fields(at, "format", "version", "serial", "secret", "streams");
    const serial = count(f.serial);
    if (serial !== version) throw corrupt(f.serial, `serial ${serial}`, `${version}, by its name`);
    return { secret: matching(f.secret, SECRET), streams: keyed(f.streams, streamOf) };
  } catch (e) {
    const failure = asFailure(e);
    if (failure.code !== "coverage.corrupt") throw failure;
    throw new Failure("dedup.corrupt", failure.message.replace("coverage state", "the book of duplicates"), {
      at: failure.at ?? object,
      cause: e,
      hint: "Restore the object from a backup. Without it records before and after it are judged apart from each other",
    });
  }
}

function streamOf(at: Place): readonly [StreamKey, readonly PlanEpoch[]] {
  const f = fields(at, "stream", "epochs");
  const epochs = list(f.epochs, (e): PlanEpoch => {
    const own = fields(e, "from", "reach", "plan");
    const [from, reach] = [int64(own.from), int64(own.reach)];
    if (reach > from) throw corrupt(own.reach, `reach ${reach}`, `at most ${from}`);
    return { from, reach, plan: matching(own.plan, PLAN) };
  });
  const rising = epochs.every((e, i) => i === 0 || epochs[i - 1]!.from < e.from);
  if (epochs.length === 0 || !rising)
    throw corrupt(f.epochs, "no epochs, or not in order", "rising positions");
  return [text(f.stream), epochs];
}

function matching(at: Place, pattern: RegExp): string {
  const value = text(at);
  if (!pattern.test(value)) throw corrupt(at, JSON.stringify(value).slice(0, 60), String(pattern));
  return value;
}
