/**
 * Configurations of whole processes, as data by the names of the file's own keys. Sinks roll and commit often, so that tests need not
 * wait; what a caller gives stands over that, and a key without a value is left out.
 */
import { join } from "node:path";
import { server } from "../real/postgres/server.ts";
import { SECRETS } from "./twg.ts";

type Value = string | number | boolean | undefined | readonly (string | Section)[] | Section;

/** Keys of a section of the file. */
export interface Section {
  readonly [key: string]: Value;
}

export interface Sections {
  readonly pipeline?: Section;
  readonly source: Section;
  readonly decode?: Section;
  readonly dedup?: Section;
  readonly recovery?: Section;
  readonly secrets?: Section | undefined;
  readonly sink: readonly Section[];
  readonly observability?: Section;
}

/** A pipeline, from Kafka unless the source says otherwise, that keeps its state in the folder and listens nowhere. */
export function pipelineToml(folder: string, { pipeline, source, observability, ...more }: Sections): string {
  return Bun.TOML.stringify({
    pipeline: { name: "e2e", state_dir: join(folder, "state"), ...pipeline },
    source: { type: "kafka", ...source },
    ...more,
    observability: { listen: "off", ...observability },
  });
}

/** To be appended to a file, for a sink that is added later. */
export function sinkToml(sink: Section): string {
  return `\n${Bun.TOML.stringify({ sink: [sink] })}`;
}

/** Parquet in a folder of the sink's name, below the one that is given. */
export function filesSink(folder: string, name: string, more: Section = {}): Section {
  return { name, type: "parquet", path: join(folder, name), roll_interval_ms: "300ms", ...more };
}

/** A table of the sink's name, which is made if it is missing. */
export function tableSink(database: string, name: string, more: Section = {}): Section {
  return {
    ...{ name, type: "postgres", url: postgresUrl(database), sslmode: "disable" },
    ...{ table: `public.${name}`, create: true, commit_interval_ms: "300ms" },
    ...more,
  };
}

export function topicSink(
  bootstrap: readonly string[],
  name: string,
  topic: string,
  more: Section = {},
): Section {
  return { name, type: "kafka", bootstrap, topic, commit_interval_ms: "300ms", ...more };
}

/** Of a database of the real server; its password must not be printed from now on. */
export function postgresUrl(database: string, port: number = server().port): string {
  const { host, user, password } = server();
  const encoded = encodeURIComponent(password);
  SECRETS.add(password).add(encoded);
  return `postgres://${user}:${encoded}@${host}:${port}/${database}`;
}
