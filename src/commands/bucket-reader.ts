/** Reading in a bucket for `inspect`: what `[sink.s3]` of a file says, else what the environment knows. */
import { COVERAGE_OBJECT, coverageKeyOf, ObjectVersionedStore } from "../adapters/coverage/object-store.ts";
import { S3Objects } from "../adapters/object-store/s3-objects.ts";
import { S3Requests } from "../adapters/object-store/s3-requests.ts";
import { s3Defaults } from "../adapters/object-store/s3-spec.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import type { CoverageState } from "../core/coverage/state.ts";
import { parseState } from "../core/coverage/state-json.ts";
import { Failure } from "../core/failure/failure.ts";
import type { Cli } from "./cli.ts";
import { loadConfig, resolveSecrets, type SinkOf } from "./config-file.ts";
import { s3Of } from "./object-stores.ts";

type S3Table = SinkOf<"parquet">["s3"];

/** Options of a Parquet sink of a configuration file, by default the primary one, secrets read. */
export async function s3TableOf(
  file: string | undefined,
  environment: Cli["environment"],
  name: string | null = null,
): Promise<S3Table> {
  if (file === undefined) {
    // Whoever names an endpoint in the environment speaks to a store of their own.
    return environment.AWS_ENDPOINT_URL === undefined && environment.AWS_ENDPOINT_URL_S3 === undefined
      ? undefined
      : { ...s3Defaults(), style: "path" };
  }
  const { sink: primary, sinks } = await resolveSecrets(await loadConfig(file), environment);
  const sink = sinks.find((s) => s.name === name) ?? primary;
  if (sink.type !== "parquet") throw new Failure("cli.usage", "its sink is no bucket", { at: file });
  return sink.s3;
}

/** Objects at and below `s3://bucket/prefix`. */
export function openBucket(url: string, options: S3Table): S3Objects {
  const requests = new S3Requests(s3Of(url, options), { clock: systemClock, chance: systemChance });
  return new S3Objects(requests);
}

export interface BucketCoverage {
  readonly place: string;
  readonly state: CoverageState;
}

/** The coverage of one sink, or of all pipelines and sinks that write under the root. */
export async function bucketCoverage(
  root: string,
  options: S3Table,
  of: { readonly pipeline: string; readonly sink: string } | null,
): Promise<readonly BucketCoverage[]> {
  const objects = openBucket(root, options);
  const found: BucketCoverage[] = [];
  for (const folder of of === null ? await coverageFolders(objects) : [coverageKeyOf(of.pipeline, of.sink)]) {
    const store = new ObjectVersionedStore(objects, { folder, instance: "inspect" });
    const newest = await store.read();
    if (newest === null) continue;
    found.push({ place: store.place, state: parseState(newest.bytes, newest.name, newest.version) });
  }
  return found;
}

async function coverageFolders(objects: S3Objects): Promise<readonly string[]> {
  const names = await objects.list("_twg/");
  const own = new RegExp(`^(_twg/[^/]+/[^/]+/coverage)/${RegExp.escape(COVERAGE_OBJECT)}$`);
  return names.flatMap(({ key }) => own.exec(key)?.[1] ?? []);
}
