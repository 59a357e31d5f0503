/**
 * `twg inspect coverage --record-lost`: what a sink lacks and raw has no more, since somebody or a retention removed its
 * files, is recorded in that sink's coverage as lost. It is never forgotten, and it is no gap any more.
 */
import { randomBytes } from "node:crypto";
import { systemClock } from "../adapters/system/clock.ts";
import { overlapsRange } from "../core/coverage/ranges.ts";
import type { IndexEntry } from "../core/coverage/state.ts";
import { Failure } from "../core/failure/failure.ts";
import type { LostRange } from "../core/ports/coverage.ts";
import type { ResolvedConfig } from "./config-file.ts";
import { rawFilesOf } from "./raw-files.ts";
import { type ReadFiles, readSetFiles } from "./set-files.ts";
import { besideParts } from "./stream-parts.ts";

export interface LostOfSink {
  readonly sink: string;
  readonly ranges: readonly Omit<LostRange, "reason">[];
}

/**
 * Throws recovery.not_indexed where a file that the index does not know holds some of it, or may: somebody put raw files together,
 * or moved them, and what looks gone is there. A file of no set, or one that is not what its set says, may hold anything.
 */
export async function demandGone(
  config: ResolvedConfig,
  index: readonly IndexEntry[],
  lost: readonly LostOfSink[],
): Promise<void> {
  const { sink, pipeline, file: at } = config;
  if (sink.type !== "parquet") return;
  const known = new Map(index.flatMap((e) => e.targets.map((t) => [t.key, t.bytes] as const)));
  // One that has another size under a name of the index was written anew.
  const unknown = (await rawFilesOf(sink, systemClock.now())).filter((f) => known.get(f.key) !== f.bytes);
  const read = await readSetFiles(unknown, pipeline.name, sink.name, index);
  demandNoStrangers(read, at);
  const ranges = lost.flatMap((l) => l.ranges);
  for (const { key, spans } of read.files.filter((f) => !known.has(f.key))) {
    const held = spans.find((s) => ranges.some((r) => r.stream === s.stream && overlapsRange([r], s)));
    if (held === undefined) continue;
    const text = `${key} holds ${held.stream} [${held.from}, ${held.next}), and the index of raw does not know it`;
    throw new Failure("recovery.not_indexed", text, { at });
  }
}

const SHOWN = 3;

function demandNoStrangers({ unknown, misfits, failures }: ReadFiles, at: string): void {
  const named = [
    ...unknown.map((key) => `${key} (of no set)`),
    ...misfits.map(
      ({ key, rows, set }) => `${key} (${rows} rows, and not those of the set ${set}, which it names)`,
    ),
    ...failures.map((f) => `${f.at} (${f.code}: ${f.message})`),
  ];
  if (named.length === 0) return;
  const more = named.length > SHOWN ? ` and ${named.length - SHOWN} more` : "";
  throw new Failure(
    "recovery.not_indexed",
    `among raw's files are some that may hold what seems to be gone: ${named.slice(0, SHOWN).join(", ")}${more}; nothing is recorded as lost`,
    {
      at,
      hint: "Were raw files put together? Bring back those that twg wrote, and run twg inspect coverage -c FILE --rebuild; files that hold nothing of raw belong into another folder",
    },
  );
}

/** As the only owner of each sink: one that is being written is named and left alone. */
export async function recordLost(config: ResolvedConfig, lost: readonly LostOfSink[]): Promise<void> {
  const instance = randomBytes(8).toString("hex");
  const observer = { emit: () => {} };
  const context = { instance, shared: false, lanes: 1, laneLife: () => `${instance}.0-l0`, observer };
  const beside = besideParts(config, context);
  for (const { sink, ranges } of lost) {
    const spec = beside.find((b) => b.spec.name === sink)?.spec;
    if (spec === undefined) throw new Failure("internal.bug", `no sink ${sink}`);
    await spec.coverage.open();
    try {
      await spec.coverage.recordLost(ranges.map((r) => ({ ...r, reason: "retention" })));
    } finally {
      await spec.coverage.close();
    }
  }
}
