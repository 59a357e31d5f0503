/**
 * The only list of adapters. Configuration, the reference page and the JSON Schema all come from it; adding an
 * adapter is adding it here. Specs are imported at once since they are small; everything else waits until used.
 */
import type * as z from "zod";
import type { AdapterSpec } from "../core/config/adapter-spec.ts";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import { Failure } from "../core/failure/failure.ts";
import { filesSourceSpec } from "./files/spec.ts";
import { kafkaSinkSpec } from "./kafka/sink/spec.ts";
import { kafkaSourceSpec } from "./kafka/spec.ts";
import { MAX_PARTS, s3Spec } from "./object-store/s3-spec.ts";
import { parquetSinkSpec } from "./parquet/spec.ts";
import { postgresSinkSpec } from "./postgres/spec.ts";

/** The Parquet sink knows no store and the store knows no sink: here they meet. */
const parquetOnStores = parquetSinkSpec
  .safeExtend({
    s3: s3Spec.optional().describe("The store of a `path` that begins with s3://.").meta({
      instead: true,
      why: "Without it: AWS, with what the environment knows of region and credentials.",
    }),
  })
  .superRefine((sink, ctx) => {
    const issue = (path: string[], message: string, allowed: string) =>
      ctx.addIssue({ code: "custom", path, message, params: { code: "config.conflict", allowed } });
    if (sink.s3 === undefined) return;
    if (!isBucketUrl(sink.path))
      issue(["s3"], "`path` is a folder", "only with a `path` that begins with s3://");
    const least = Math.ceil(sink.roll_bytes / MAX_PARTS);
    if (sink.s3.part_bytes < least) {
      issue(
        ["s3", "part_bytes"],
        "a file would have too many parts",
        `at least roll_bytes / ${MAX_PARTS}, ${least}B`,
      );
    }
  });

/** The same for files in buckets. */
const filesOnStores = filesSourceSpec.extend({
  s3: s3Spec.optional().describe("The store of `paths` that begin with s3://.").meta({
    instead: true,
    why: "Without it: AWS, with what the environment knows of region and credentials.",
  }),
});

export type KafkaSource = z.output<typeof kafkaSourceSpec>;
export type FilesSource = z.output<typeof filesOnStores>;
/** A sink's options with the name of its adapter, by which they are told apart. */
export type Sink =
  | ({ readonly type: "parquet" } & z.output<typeof parquetOnStores>)
  | ({ readonly type: "postgres" } & z.output<typeof postgresSinkSpec>)
  | ({ readonly type: "kafka" } & z.output<typeof kafkaSinkSpec>);

const ADAPTERS: readonly AdapterSpec[] = [
  { kind: "source", name: "kafka", about: "topics of an Apache Kafka cluster", spec: kafkaSourceSpec },
  {
    kind: "source",
    name: "files",
    about: "a fixed set of files (CSV, JSON, Parquet), for `twg batch`",
    spec: filesOnStores,
  },
  {
    kind: "sink",
    name: "parquet",
    about: "Parquet files in a folder of this machine or in an S3-compatible store",
    spec: parquetOnStores,
  },
  {
    kind: "sink",
    name: "postgres",
    about: "a table of a PostgreSQL database",
    spec: postgresSinkSpec,
  },
  {
    kind: "sink",
    name: "kafka",
    about: "topics of an Apache Kafka cluster",
    spec: kafkaSinkSpec,
  },
];

export function catalogue(): readonly AdapterSpec[] {
  return distinct(ADAPTERS);
}

/** Two adapters of one kind and name would make `type` ambiguous: a bug, found before anything is read. */
export function distinct(adapters: readonly AdapterSpec[]): readonly AdapterSpec[] {
  const seen = new Set<string>();
  for (const { kind, name } of adapters) {
    const key = `${kind} ${name}`;
    if (seen.has(key)) throw new Failure("internal.bug", `two adapters of kind ${kind} are named ${name}`);
    seen.add(key);
  }
  return adapters;
}
