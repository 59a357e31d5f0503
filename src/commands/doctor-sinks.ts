/** The checkup of a sink: one adapter's own, or of the machine's disk. */
import { coverageKeyOf, ObjectVersionedStore } from "../adapters/coverage/object-store.ts";
import { kafkaSinkCheckup } from "../adapters/kafka/sink/doctor.ts";
import { s3Checkup } from "../adapters/object-store/s3-doctor.ts";
import { S3Objects } from "../adapters/object-store/s3-objects.ts";
import { S3Requests } from "../adapters/object-store/s3-requests.ts";
import { ownFolder } from "../adapters/object-store/s3-store.ts";
import { rootOf } from "../adapters/parquet/template.ts";
import { postgresCheckup } from "../adapters/postgres/doctor.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import type { Checkup } from "../core/ports/doctor.ts";
import { isBatch } from "./batch-source.ts";
import type { ResolvedConfig, SinkOf } from "./config-file.ts";
import { kafkaParts } from "./kafka-parts.ts";
import { checkupOf } from "./kafka-sink-parts.ts";
import { s3Of } from "./object-stores.ts";
import { postgresClientParts, preparedOf } from "./postgres-parts.ts";

/** Null for a folder of this machine, which the host's checkup looks at. `instance`: unique for ever. */
export function sinkCheckup(
  config: ResolvedConfig,
  sink: ResolvedConfig["sink"],
  instance: string,
): Checkup | null {
  switch (sink.type) {
    case "parquet":
      return isBucketUrl(rootOf(sink.path)) ? bucketCheckup(config, sink, instance) : null;
    case "postgres":
      return postgresCheckup(
        {
          ...preparedOf(config, sink),
          prefix: sink.metadata_prefix,
          upsert: sink.mode === "upsert",
          raw: !isBatch(config) && sink.receives === "raw",
        },
        postgresClientParts,
      );
    case "kafka":
      return kafkaSinkCheckup(checkupOf(config, sink), kafkaParts());
  }
}

function bucketCheckup({ pipeline }: ResolvedConfig, sink: SinkOf<"parquet">, instance: string): Checkup {
  const requests = new S3Requests(s3Of(rootOf(sink.path), sink.s3), {
    clock: systemClock,
    chance: systemChance,
  });
  const versions = new ObjectVersionedStore(new S3Objects(requests), {
    folder: coverageKeyOf(pipeline.name, sink.name),
    instance,
  });
  return s3Checkup({ requests, own: ownFolder(pipeline.name, sink.name), instance, versions });
}
