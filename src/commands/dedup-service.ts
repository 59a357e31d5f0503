/** What lanes ask of the control thread to find duplicates: since when records are judged as now, and records of raw. */
import { createHash, randomBytes } from "node:crypto";
import { type DecodeSection, payloadPlan } from "../core/config/decode-options.ts";
import { DedupBook } from "../core/coverage/dedup-book.ts";
import { KeptSegments } from "../core/coverage/kept-segments.ts";
import { intersectRanges, normalRanges, type Ranges, subtractRanges } from "../core/coverage/ranges.ts";
import { type CoverageState, EMPTY_STATE, type IndexEntry, NEW_STREAM } from "../core/coverage/state.ts";
import { parseState } from "../core/coverage/state-json.ts";
import { Failure } from "../core/failure/failure.ts";
import type { Range } from "../core/ports/coverage.ts";
import { type StreamKey, streamParts } from "../core/records/stream.ts";
import type { SchemaText } from "../core/schema/resolver.ts";
import type { ResolvedConfig } from "./config-file.ts";
import { answered } from "./lane-asks.ts";
import type { AnswerDedup, AnsweredEpoch, AskDedup } from "./lane-dedup-asks.ts";
import type { SchemaService } from "./lane-schemas.ts";
import { objectSinkStores } from "./object-stores.ts";
import { type RawGroup, rawGroups } from "./recover-sets.ts";

export interface BegunStream {
  readonly stream: StreamKey;
  readonly from: bigint;
}

export interface DedupService {
  /** Their records from there on are judged by the plan of now: durably, once this resolves. */
  readonly begin: (streams: readonly BegunStream[]) => Promise<void>;
  readonly epoch: (stream: StreamKey, from: bigint) => Promise<AnsweredEpoch>;
  /** Where records of a stream begin to be judged in another way, or with another reach: no batch lies on both sides. */
  readonly cuts: () => Promise<ReadonlyMap<StreamKey, readonly bigint[]>>;
  /** Row groups of raw that hold records of the range, and others. */
  readonly groups: (stream: StreamKey, range: Range) => AsyncGenerator<RawGroup>;
}

export interface DedupContext {
  readonly instance: string;
  /** Records come from their source: from the first one on they are judged as the configuration says now. */
  readonly live: boolean;
  readonly schemas: Pick<SchemaService, "find">;
}

export function dropsDuplicates(sinks: readonly { readonly duplicates: "keep" | "drop" }[]): boolean {
  return sinks.some((s) => s.duplicates === "drop");
}

/** Null: no sink leaves duplicates out. */
export function dedupService(
  config: ResolvedConfig,
  schemas: SchemaService | null,
  { instance, live }: Pick<DedupContext, "instance" | "live">,
): DedupService | null {
  const { sink } = config;
  if (schemas === null || sink.type !== "parquet" || !dropsDuplicates(config.sinks)) return null;
  const {
    dedup: versions,
    versions: coverage,
    age,
  } = objectSinkStores(config.pipeline.name, sink, instance, null);
  const windowRecords = BigInt(config.dedup.window_records);
  // Each partition that begins asks for the whole index.
  const segments = new KeptSegments(coverage, instance);
  const rawNow = async () => {
    const newest = await coverage.read();
    const state = newest === null ? EMPTY_STATE : parseState(newest.bytes, newest.name, newest.version);
    return { state, index: await segments.all(state) };
  };
  /** The end of what raw has no more of the window before a position; null: it has all of it. */
  const goneBefore = async (stream: StreamKey, next: bigint): Promise<bigint | null> => {
    const { state, index } = await rawNow();
    const held = heldOf(state, index, stream, {
      from: next > windowRecords ? next - windowRecords : 0n,
      next,
    });
    let gone = held.gone.at(-1)?.next ?? null;
    for (const { targets, end } of held.sets)
      for (const { key } of targets)
        if ((gone === null || end > gone) && (await age(key)) === null) gone = end;
    return gone;
  };
  const secret = (bytes: number) => randomBytes(bytes).toString("hex");
  const book = new DedupBook({ versions, instance, secret });
  const plans = new Map<string, Promise<string>>();
  const planOf = (topic: string) => {
    const known = plans.get(topic) ?? planDigest(config, topic, schemas);
    plans.set(topic, known);
    known.catch(() => plans.delete(topic));
    return known;
  };
  return {
    begin: async (streams) => {
      const planned = streams.map(async (s) => ({ ...s, plan: await planOf(streamParts(s.stream).topic) }));
      await book.begin(await Promise.all(planned));
    },
    epoch: async (stream, from) => {
      const plan = await planOf(streamParts(stream).topic);
      if (!live) return await book.look(stream, from, plan);
      return await book.enter(stream, from, plan, await goneBefore(stream, from));
    },
    cuts: () => book.cuts(),
    async *groups(stream, range) {
      const { state, index } = await rawNow();
      for (const set of setsOf(state, index, stream, range))
        yield* rawGroups(sink, set, { stream, ...range });
    },
  };
}

interface Held {
  /** Sets of files that have some of it, oldest first, with the end of that. */
  readonly sets: readonly (IndexEntry & { readonly end: bigint })[];
  /** What was covered and stands in no set. */
  readonly gone: Ranges;
  /** What is not covered yet. */
  readonly open: Ranges;
}

/** What raw has of a range of a stream. Before the stream began there was nothing, and nothing is in what was lost. */
function heldOf(
  state: CoverageState,
  index: readonly IndexEntry[],
  stream: StreamKey,
  { from, next }: Range,
): Held {
  const { origin, covered, lost } = state.streams.get(stream) ?? NEW_STREAM;
  const begin = origin !== null && origin > from ? origin : from;
  const wanted = subtractRanges(begin < next ? [{ from: begin, next }] : [], normalRanges(lost));
  const sets = index.flatMap((set) => {
    const own = set.spans.filter((s) => s.stream === stream).map((s) => ({ from: s.from, next: s.next }));
    const has = intersectRanges(normalRanges(own), wanted);
    return has.length === 0 ? [] : [{ ...set, has, end: has.at(-1)!.next }];
  });
  const known = normalRanges(sets.flatMap((s) => s.has));
  return {
    sets,
    gone: subtractRanges(intersectRanges(wanted, covered), known),
    open: subtractRanges(wanted, covered),
  };
}

/** Throws dedup.loading where raw has not all of the range yet, recovery.raw_missing where it is not known any more. */
export function setsOf(
  state: CoverageState,
  index: readonly IndexEntry[],
  stream: StreamKey,
  range: Range,
): readonly IndexEntry[] {
  const { sets, gone, open } = heldOf(state, index, stream, range);
  const [late, lost] = [open[0], gone[0]];
  if (late !== undefined)
    throw new Failure("dedup.loading", `raw has [${late.from}, ${late.next}) not yet`, {
      at: stream,
      retry: true,
    });
  if (lost !== undefined)
    throw new Failure("recovery.raw_missing", `no raw file is known for [${lost.from}, ${lost.next})`, {
      at: stream,
      hint: "Whether records behind it are duplicates depends on what it held; `twg inspect coverage --rebuild` looks for it",
    });
  return sets;
}

interface PlanSchemas {
  readonly find: (
    topic: string,
    ref: { readonly by: "default" },
    inferred: null,
    part: "key" | "value",
  ) => Promise<SchemaText | null>;
}

/** Of everything that the judgement of a topic's records depends on, the records apart. */
export async function planDigest(
  { decode, dedup }: Pick<ResolvedConfig, "decode" | "dedup">,
  topic: string,
  schemas: PlanSchemas,
): Promise<string> {
  const section = decode as DecodeSection;
  const part = async (name: "key" | "value") => {
    const plan = payloadPlan(section, topic, name);
    if (plan === null) return null;
    const { format, framing, message, prefix } = plan;
    const schema = await schemas.find(topic, { by: "default" }, null, name);
    const { reader } = schema ?? {};
    return {
      format,
      framing,
      message,
      prefix,
      text: schema?.text,
      table: schema?.table?.fields,
      key: schema?.table?.naturalKey,
      // What is absent stands in no digest: plans of before these were known stay the same.
      references: schema?.references.length === 0 ? undefined : schema?.references,
      reader:
        reader === undefined
          ? undefined
          : { ...reader, table: reader.table?.fields, key: reader.table?.naturalKey },
    };
  };
  const { window_records, window_ms } = dedup;
  const { max_payload_bytes, max_depth, unknown_fields } = section;
  const plan = {
    ...{ version: 1, window_records, window_ms, max_payload_bytes, max_depth, unknown_fields },
    ...{ value: await part("value"), key: await part("key") },
  };
  return createHash("sha256").update(JSON.stringify(plan)).digest("hex").slice(0, 32);
}

/** Answers one lane's thread: its readings of raw end with it. */
export class DedupAnswers {
  readonly #service: DedupService;
  readonly #readings = new Map<number, AsyncGenerator<RawGroup>>();

  constructor(service: DedupService) {
    this.#service = service;
  }

  async answer(ask: AskDedup): Promise<AnswerDedup> {
    return { t: "dedup", ...(await answered(ask.n, () => this.#answer(ask))) };
  }

  async #answer(ask: AskDedup): Promise<AnsweredEpoch | RawGroup | null> {
    switch (ask.ask) {
      case "epoch":
        return await this.#service.epoch(ask.stream, ask.from);
      case "group": {
        const { reading, stream, from, next } = ask;
        const groups = this.#readings.get(reading) ?? this.#service.groups(stream, { from, next });
        this.#readings.set(reading, groups);
        const one = await groups.next();
        return one.done === true ? null : one.value;
      }
      case "close":
        await this.#close(ask.reading);
        return null;
    }
  }

  async close(): Promise<void> {
    for (const reading of [...this.#readings.keys()]) await this.#close(reading);
  }

  async #close(reading: number): Promise<void> {
    const groups = this.#readings.get(reading);
    this.#readings.delete(reading);
    await groups?.return(undefined);
  }
}
