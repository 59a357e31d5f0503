/**
 * Since when records are decoded for a sink by which plan, as JSON, version 1. Persisted: a change of shape is a new version
 * with its own reader and a new golden file. Plans themselves lie beside it, each under its digest.
 */
import { asFailure, Failure } from "../failure/failure.ts";
import type { StreamKey } from "../records/stream.ts";
import { corrupt, count, fields, int64, keyed, list, nullable, type Place, text } from "./json-place.ts";
import { checkVersion, limited } from "./state-json.ts";

const FORMAT = "twg.plans";
const VERSION = 1;
const MAX_BYTES = 8 * 1024 * 1024;
const DIGEST = /^[0-9a-f]{32}$/;

/** From `from` on, to the next one's, records of a stream are decoded by this plan for the sink. */
export interface PlanSince {
  readonly from: bigint;
  /** Its digest; null: there were several, and which is not remembered any more. */
  readonly plan: string | null;
}

export interface PlannedStream {
  /** Of the claim in raw by whose owner it was last changed. */
  readonly generation: number;
  /** Ascending, at least one. */
  readonly epochs: readonly PlanSince[];
}

/** By sink and stream. */
export type PlanBookState = ReadonlyMap<string, ReadonlyMap<StreamKey, PlannedStream>>;

/** `serial`: the version under which it is stored. Throws coverage.too_large. */
export function encodePlanBook(sinks: PlanBookState, serial: number): Uint8Array {
  const numbers = new Map<string, number>();
  const numberOf = (plan: string | null): number | null => {
    if (plan === null) return null;
    const number = numbers.get(plan) ?? numbers.size;
    numbers.set(plan, number);
    return number;
  };
  const plain = [...sinks].map(([sink, streams]) => ({
    sink,
    streams: [...streams].map(([stream, { generation, epochs }]) => ({
      stream,
      generation,
      epochs: epochs.map(({ from, plan }) => ({ from: String(from), plan: numberOf(plan) })),
    })),
  }));
  const body = { format: FORMAT, version: VERSION, serial, plans: [...numbers.keys()], sinks: plain };
  const bytes = new TextEncoder().encode(`${JSON.stringify(body)}\n`);
  if (bytes.length > MAX_BYTES)
    throw new Failure(
      "coverage.too_large",
      `the book of plans would have ${bytes.length} bytes, allowed are ${MAX_BYTES}`,
    );
  return bytes;
}

/** Throws recovery.plan_corrupt (naming object and place) and coverage.newer_version. */
export function parsePlanBook(bytes: Uint8Array, object: string, version: number): PlanBookState {
  try {
    const at = limited(bytes, object, MAX_BYTES);
    checkVersion(at, FORMAT, VERSION);
    const f = fields(at, "format", "version", "serial", "plans", "sinks");
    const serial = count(f.serial);
    if (serial !== version) throw corrupt(f.serial, `serial ${serial}`, `${version}, by its name`);
    const plans = list(f.plans, digest);
    return keyed(f.sinks, (sink) => {
      const own = fields(sink, "sink", "streams");
      return [text(own.sink), keyed(own.streams, (stream) => streamOf(stream, plans))];
    });
  } catch (e) {
    throw planDamage(e, object);
  }
}

/** What is said of damaged JSON, of plans. */
export function planDamage(e: unknown, object: string): Failure {
  const failure = asFailure(e);
  if (failure.code !== "coverage.corrupt") return failure;
  return new Failure("recovery.plan_corrupt", failure.message.replace("coverage state", "plans"), {
    at: failure.at ?? object,
    cause: e,
    hint: "Restore the object from a backup. `twg recover --replan` does without: it decodes by the configuration of now",
  });
}

function streamOf(at: Place, plans: readonly string[]): readonly [StreamKey, PlannedStream] {
  const f = fields(at, "stream", "generation", "epochs");
  const epochs = list(f.epochs, (e): PlanSince => {
    const own = fields(e, "from", "plan");
    const number = nullable(own.plan, count);
    const plan = number === null ? null : plans[number];
    if (plan === undefined) throw corrupt(own.plan, `plan ${number}`, `below ${plans.length}`);
    return { from: int64(own.from), plan };
  });
  const rising = epochs.every((e, i) => i === 0 || epochs[i - 1]!.from < e.from);
  if (epochs.length === 0 || !rising)
    throw corrupt(f.epochs, "no epochs, or not in order", "rising positions");
  return [text(f.stream), { generation: count(f.generation), epochs }];
}

function digest(at: Place): string {
  const value = text(at);
  if (!DIGEST.test(value)) throw corrupt(at, JSON.stringify(value).slice(0, 60), String(DIGEST));
  return value;
}
