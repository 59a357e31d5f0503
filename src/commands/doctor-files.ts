/** The files source's part of `twg doctor`: what each input stands for, whether it can be read, and as which columns. */
import { isFetched } from "../adapters/files/fetch.ts";
import { type LocalFile, localFiles } from "../adapters/files/locate.ts";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import { asFailure } from "../core/failure/failure.ts";
import { formatBytes, formatCount } from "../core/observe/quantities.ts";
import { type Checkup, failedBy, ok, skipped } from "../core/ports/doctor.ts";
import type { BatchConfig } from "./batch-config.ts";
import { BatchInputs, bucketAccess } from "./batch-inputs.ts";
import { planBatch } from "./batch-plan.ts";
import type { Cli } from "./cli.ts";
import { columnsText } from "./columns-text.ts";

export function filesCheckup(config: BatchConfig, environment: Cli["environment"]): Checkup {
  const { paths } = config.source;
  return {
    name: "files",
    at: paths.length === 1 ? (paths[0] ?? "") : `${paths.length} inputs`,
    async run({ report }) {
      const inputs = new BatchInputs(bucketAccess(config.source.s3, environment));
      const found: LocalFile[] = [];
      for (const input of paths) {
        if (isFetched(input)) {
          report(skipped("files.input", shown(input), "it is fetched when the job runs"));
          continue;
        }
        try {
          const files = isBucketUrl(input) ? await inputs.objects(input) : localFiles(input);
          found.push(...files);
          report(ok("files.input", input, await sizeOf(files, inputs)));
        } catch (e) {
          report(failedBy("files.input", input, asFailure(e)));
        }
      }
      if (found.length === 0) {
        report(skipped("files.schema", "columns", "there is no file to look at"));
        return;
      }
      try {
        const { schema, schemaFrom } = await planBatch(config, found, inputs.open);
        report(ok("files.schema", schemaFrom, columnsText(schema.fields)));
      } catch (e) {
        report(failedBy("files.schema", "columns", asFailure(e)));
      }
    },
  };
}

/** Listing is one right and reading another: of each input one byte is read. */
async function sizeOf(files: readonly LocalFile[], inputs: BatchInputs): Promise<string> {
  const bytes = files.reduce((n, f) => n + f.bytes, 0);
  const some = files.find((f) => f.bytes > 0);
  if (some !== undefined) {
    const file = inputs.open(some);
    await file.read(0, 1).finally(() => file.close());
  }
  return `${formatCount(files.length)} ${files.length === 1 ? "file" : "files"}, ${formatBytes(bytes)}, readable`;
}

/** An address may hold what nobody else should see. */
function shown(input: string): string {
  const url = URL.parse(input);
  return url === null ? "standard input" : `${url.protocol}//${url.host}${url.pathname}`;
}
