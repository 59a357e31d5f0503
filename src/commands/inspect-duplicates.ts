/** `twg inspect duplicates`: since when the records of each partition are judged as duplicates, and by which plan. Reads only. */
import { type DedupBookState, parseDedupBook } from "../core/coverage/dedup-json.ts";
import { Failure } from "../core/failure/failure.ts";
import { streamParts } from "../core/records/stream.ts";
import { type Cli, outJson } from "./cli.ts";
import { loadConfig, type ResolvedConfig, resolveSecrets } from "./config-file.ts";
import { dropsDuplicates, planDigest } from "./dedup-service.ts";
import { objectSinkStores } from "./object-stores.ts";
import { offlineSchemas } from "./offline-schemas.ts";
import { renderTable } from "./table.ts";

export interface InspectDuplicatesOptions {
  readonly config: string;
  readonly json: boolean;
}

interface ShownEpoch {
  readonly topic: string;
  readonly incarnation: number;
  readonly partition: number;
  /** Records from here on, up to the next one's. */
  readonly from: string;
  /** Records before it count for none of them. */
  readonly reach: string;
  readonly plan: string;
  /** It is the plan of the configuration as it is now. */
  readonly current: boolean;
}

export async function runInspectDuplicates(options: InspectDuplicatesOptions, cli: Cli): Promise<number> {
  const config = await resolveSecrets(await loadConfig(options.config), cli.environment);
  const { sink } = config;
  if (sink.type !== "parquet" || !dropsDuplicates(config.sinks))
    throw new Failure("cli.usage", 'no sink of the file has duplicates = "drop"', { at: options.config });
  const stored = await objectSinkStores(config.pipeline.name, sink, "inspect", null).dedup.read();
  const book = stored === null ? null : parseDedupBook(stored.bytes, stored.name, stored.version);
  const epochs = book === null ? [] : await epochsOf(config, book);
  if (options.json) outJson(cli, { epochs });
  else cli.out(epochs.length === 0 ? "no record was judged yet\n" : textOf(epochs, cli.outColour));
  return 0;
}

async function epochsOf(config: ResolvedConfig, { streams }: DedupBookState): Promise<ShownEpoch[]> {
  const { decode } = config;
  if (decode === null) throw new Failure("internal.bug", "duplicates of what is not decoded");
  const sources = offlineSchemas(decode as never);
  const schemas = {
    find: (topic: string, ref: Parameters<typeof sources.writer>[0], _: null, part: "key" | "value") =>
      sources.writer(ref, topic, part),
  };
  const topics = [...new Set([...streams.keys()].map((s) => streamParts(s).topic))];
  const plans = new Map(
    await Promise.all(topics.map(async (t) => [t, await planDigest(config, t, schemas)] as const)),
  );
  return [...streams].flatMap(([stream, epochs]) => {
    const { topic, incarnation, partition } = streamParts(stream);
    return epochs.map(({ from, reach, plan }) => ({
      ...{ topic, incarnation, partition, from: String(from), reach: String(reach), plan },
      current: plan === plans.get(topic),
    }));
  });
}

function textOf(epochs: readonly ShownEpoch[], colour: boolean): string {
  const columns = [
    { head: "TOPIC" },
    { head: "PARTITION", align: "right" },
    { head: "FROM", align: "right" },
    { head: "REACHES BACK TO", align: "right" },
    { head: "PLAN" },
  ] as const;
  const rows = epochs.map((e) => [
    e.incarnation === 0 ? e.topic : `${e.topic} (incarnation ${e.incarnation})`,
    String(e.partition),
    e.from,
    e.reach,
    `${e.plan.slice(0, 8)}${e.current ? ", of now" : ""}`,
  ]);
  return renderTable(columns, rows, colour);
}
