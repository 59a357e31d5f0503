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
import { readSetFiles } from "./set-files.ts";
import { besideParts } from "./stream-parts.ts";

export interface LostOfSink {
  readonly sink: string;
  readonly ranges: readonly Omit<LostRange, "reason">[];
}

/**
 * Throws recovery.not_indexed where a file that the index does not know holds some of it: somebody put raw files together, or moved
 * them, and what looks gone is there.
 */
export async function demandGone(
  config: ResolvedConfig,
  index: readonly IndexEntry[],
  lost: readonly LostOfSink[],
): Promise<void> {
  const { sink, pipeline, file: at } = config;
  if (sink.type !== "parquet") return;
  const known = new Set(index.flatMap((e) => e.targets.map((t) => t.key)));
  const unknown = (await rawFilesOf(sink, systemClock.now())).filter((f) => !known.has(f.key));
  const { files } = await readSetFiles(unknown, pipeline.name, sink.name);
  const ranges = lost.flatMap((l) => l.ranges);
  for (const { key, spans } of files) {
    const held = spans.find((s) => ranges.some((r) => r.stream === s.stream && overlapsRange([r], s)));
    if (held === undefined) continue;
    const text = `${key} holds ${held.stream} [${held.from}, ${held.next}), and the index of raw does not know it`;
    throw new Failure("recovery.not_indexed", text, { at });
  }
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
