/** Plan epochs of a configuration's sinks, for people who look. */

import { readBytes } from "../adapters/registry/schema-files.ts";
import type { DecodeSection } from "../core/config/decode-options.ts";
import { PlanBook } from "../core/coverage/plan-book.ts";
import { type StreamKey, streamParts } from "../core/records/stream.ts";
import type { Cli } from "./cli.ts";
import { type PipelineConfig, resolveSecrets } from "./config-file.ts";
import { objectSinkStores } from "./object-stores.ts";
import { PresentPlans } from "./plan-epochs.ts";

export interface PlanEpochSeen {
  readonly stream: StreamKey;
  readonly topic: string;
  readonly incarnation: number;
  readonly partition: number;
  readonly from: bigint;
  /** Digest; null: it is not known any more. */
  readonly plan: string | null;
  /** By it this configuration decodes. */
  readonly now: boolean;
}

/** By sink. */
export async function planEpochs(
  loaded: PipelineConfig,
  cli: Cli,
): Promise<ReadonlyMap<string, readonly PlanEpochSeen[]>> {
  if (loaded.decode === null || loaded.sink.type !== "parquet") return new Map();
  const { sink, pipeline } = await resolveSecrets(loaded, cli.environment);
  if (sink.type !== "parquet") return new Map();
  const { plans: versions } = objectSinkStores(pipeline.name, sink, "inspect", null);
  const book = await new PlanBook({ versions, instance: "inspect" }).read();
  const present = new PresentPlans(loaded.decode as DecodeSection, readBytes);
  const seen = new Map<string, readonly PlanEpochSeen[]>();
  for (const [name, streams] of book) {
    const epochs: PlanEpochSeen[] = [];
    for (const [stream, { epochs: all }] of streams) {
      const { topic, incarnation, partition } = streamParts(stream);
      const now = await present.of(topic).then(
        (p) => p.digest,
        () => null,
      );
      for (const { from, plan } of all)
        epochs.push({
          stream,
          topic,
          incarnation,
          partition,
          from,
          plan,
          now: plan !== null && plan === now,
        });
    }
    seen.set(name, epochs);
  }
  return seen;
}
