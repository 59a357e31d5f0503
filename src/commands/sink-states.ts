/** The coverage of the sinks of a configuration, read where each keeps it and without taking any of them. */
import { coverageFolderOf } from "../adapters/coverage/local.ts";
import { rootOf } from "../adapters/parquet/template.ts";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import type { CoverageState } from "../core/coverage/state.ts";
import { bucketCoverage, s3TableOf } from "./bucket-reader.ts";
import type { Cli } from "./cli.ts";
import { type PipelineConfig, resolveSecrets } from "./config-file.ts";
import { coverageFoldersIn, readCoverage } from "./coverage-reader.ts";
import { readKafkaCoverage } from "./kafka-coverage-reader.ts";
import { readPostgresCoverage } from "./postgres-coverage-reader.ts";

export interface StateAt {
  /** Folder, object, schema or topic of the coverage state. */
  readonly place: string;
  readonly state: CoverageState;
}

/** One, or none where nothing is known of the sink yet. */
export async function statesOfSink(
  loaded: PipelineConfig,
  sink: PipelineConfig["sink"],
  file: string,
  cli: Cli,
): Promise<readonly StateAt[]> {
  const { pipeline } = loaded;
  if (sink.type === "postgres" || sink.type === "kafka") {
    const config = await resolveSecrets(loaded, cli.environment);
    const found = await (sink.type === "postgres" ? readPostgresCoverage : readKafkaCoverage)(
      config,
      sink.name,
    );
    return found === null ? [] : [found];
  }
  if (!isBucketUrl(sink.path))
    return inFolders([coverageFolderOf(rootOf(sink.path), pipeline.name, sink.name)]);
  const options = await s3TableOf(file, cli.environment, sink.name);
  return bucketCoverage(rootOf(sink.path), options, { pipeline: pipeline.name, sink: sink.name });
}

/** Of all pipelines and sinks that write under a path. */
export async function statesUnder(path: string, cli: Cli): Promise<readonly StateAt[]> {
  if (!isBucketUrl(path)) return inFolders(await coverageFoldersIn(rootOf(path)));
  return bucketCoverage(rootOf(path), await s3TableOf(undefined, cli.environment), null);
}

async function inFolders(folders: readonly string[]): Promise<readonly StateAt[]> {
  const found: StateAt[] = [];
  for (const place of folders) {
    const state = await readCoverage(place);
    if (state !== null) found.push({ place, state });
  }
  return found;
}
