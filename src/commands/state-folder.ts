/** Unpacked libraries go there unless the supervisor (systemd) has given us a cache folder; lanes inherit it. */
import { join } from "node:path";
import type { PipelineConfig } from "./config-file.ts";

export function useStateFolder(config: PipelineConfig): void {
  process.env.CACHE_DIRECTORY ??= join(config.pipeline.state_dir, "cache");
}
