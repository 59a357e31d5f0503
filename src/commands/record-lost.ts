/**
 * `twg inspect coverage --record-lost`: what a sink lacks and raw has no more, since somebody or a retention removed its
 * files, is recorded in that sink's coverage as lost. It is never forgotten, and it is no gap any more.
 */
import { randomBytes } from "node:crypto";
import { Failure } from "../core/failure/failure.ts";
import type { LostRange } from "../core/ports/coverage.ts";
import type { ResolvedConfig } from "./config-file.ts";
import { besideParts } from "./stream-parts.ts";

export interface LostOfSink {
  readonly sink: string;
  readonly ranges: readonly Omit<LostRange, "reason">[];
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
