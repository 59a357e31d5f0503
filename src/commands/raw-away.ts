/**
 * Raw of which nothing at all is to be seen, where sinks beside it have records of the pipeline: it is somewhere else, or its
 * coverage is gone. That nothing is behind, or lost, cannot be said then.
 */
import { asFailure, Failure } from "../core/failure/failure.ts";
import type { Cli } from "./cli.ts";
import type { PipelineConfig } from "./config-file.ts";
import { type CoverageSummary, summarizeCoverage } from "./coverage-summary.ts";
import { statesOfSink } from "./sink-states.ts";

export const IS_IT_MOUNTED =
  "Is its volume mounted, and is its path, or its table and state_schema, what it was? If its files are there and its coverage is not: twg inspect coverage -c FILE --rebuild";

/**
 * For where raw shows nothing. Throws recovery.raw_missing where a sink beside it has records. Sinks that cannot be read are the answer:
 * whether they have is not known.
 */
export async function demandNothingLanded(
  loaded: PipelineConfig,
  file: string,
  cli: Cli,
): Promise<ReadonlyMap<string, Failure>> {
  const away = new Map<string, Failure>();
  for (const sink of loaded.sinks.filter((s) => s.role === "secondary"))
    try {
      const states = await statesOfSink(loaded, sink, file, cli);
      if (states.some((s) => hasLanded(summarizeCoverage(s.state)))) throw rawAway(sink.name, file);
    } catch (e) {
      const failure = asFailure(e);
      if (failure.code === "recovery.raw_missing") throw failure;
      away.set(sink.name, failure);
    }
  return away;
}

export function rawAway(sink: string, at: string): Failure {
  const text = `raw shows nothing at all, and the sink ${sink} has records of this pipeline`;
  return new Failure("recovery.raw_missing", text, { at, hint: IS_IT_MOUNTED });
}

export const hasLanded = ({ streams }: Pick<CoverageSummary, "streams">): boolean =>
  streams.some((s) => s.covered.length > 0 || s.lost.length > 0);
