/** `twg batch`: has its place on the command line, and says plainly that this version cannot do it. */
import { Failure } from "../core/failure/failure.ts";

export async function runBatch(options: { config: string }): Promise<number> {
  throw new Failure(
    "config.not_in_this_version",
    "`twg batch` will land a fixed set of files once, each identified by its digest, and end when all are covered; " +
      "this version has no file source yet, and nothing was read or written",
    { at: options.config, hint: "For a Kafka topic use `twg stream`" },
  );
}
