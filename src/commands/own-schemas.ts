/** Where the learned columns of topics are: beside the coverage of files, else on this machine. */
import { join } from "node:path";
import { LocalVersionedStore, schemaFolderOf } from "../adapters/coverage/local.ts";
import { rootOf } from "../adapters/parquet/template.ts";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import { readPinned } from "../core/pipeline/pinned-schemas.ts";
import type { PipelineConfig } from "./config-file.ts";

type Pipeline = Pick<PipelineConfig["pipeline"], "name" | "state_dir">;

export function ownSchemas({ name, state_dir: folder }: Pipeline): LocalVersionedStore {
  return new LocalVersionedStore(join(folder, "schemas", name));
}

/** By topic, as far as this machine knows; null: they lie where a server would have to be asked. */
export async function learnedHere({
  pipeline,
  sink,
}: Pick<PipelineConfig, "pipeline" | "sink">): Promise<ReadonlyMap<string, string> | null> {
  if (sink.type !== "parquet") return await readPinned(ownSchemas(pipeline));
  const root = rootOf(sink.path);
  if (isBucketUrl(root)) return null;
  return await readPinned(new LocalVersionedStore(schemaFolderOf(root, pipeline.name, sink.name)));
}
