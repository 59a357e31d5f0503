/** Where lanes get their schemas from, and where those of decoded rows are registered: one client of each registry. */
import { RegistryClient } from "../adapters/registry/client.ts";
import { type ReadSchemaFile, readBytes } from "../adapters/registry/schema-files.ts";
import { SchemaSources } from "../adapters/registry/schema-sources.ts";
import { registrySettings } from "../adapters/registry/settings.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { Failure } from "../core/failure/failure.ts";
import { PinnedSchemas } from "../core/pipeline/pinned-schemas.ts";
import { parseSchemaDocument } from "../core/types/schema-file.ts";
import type { ResolvedConfig, SinkOf } from "./config-file.ts";
import { wantsPlainNames } from "./kafka-encode.ts";
import type { SchemaService } from "./lane-schemas.ts";
import { ownSchemas } from "./own-schemas.ts";
import { rowSchema } from "./row-schemas.ts";
import type { SinkContext, SinkParts } from "./sink-parts.ts";

const PARTS = { clock: systemClock, chance: systemChance };

export interface RenewedSchemas extends SchemaService {
  /** Takes over secrets that were read again. True: some of them are of registries, and others than before. */
  renew(config: ResolvedConfig): boolean;
}

/** By what records are decoded, where it is not by the configuration, and where the files are that it names. */
export interface DecodeOrigin {
  readonly decode?: ResolvedConfig["decode"];
  readonly read?: ReadSchemaFile;
}

/** Null: nothing is decoded. */
export function schemaService(
  config: ResolvedConfig,
  { schemas }: Pick<SinkParts, "schemas">,
  { instance, observer }: Pick<SinkContext, "instance" | "observer">,
  { decode = config.decode, read = readBytes }: DecodeOrigin = {},
): RenewedSchemas | null {
  const { pipeline } = config;
  let now = config;
  if (decode === null) return null;
  const sources = new SchemaSources(decode, PARTS, read);
  const pinned = new PinnedSchemas({
    store: schemas ?? ownSchemas(pipeline),
    instance,
    maxColumns: decode.infer.max_columns,
    plainNames: config.sinks.some((s) => s.type === "kafka" && wantsPlainNames(s)),
    grows: decode.infer.new_fields === "add",
    learned: (topic, version, added, place) =>
      observer.emit({ e: "schema.learned", topic, version, added, place }),
  });
  const clients = new Map<string, RegistryClient>();
  return {
    find: async (topic, ref, inferred, part) => {
      const schema = await sources.writer(ref, topic, part);
      if (schema !== null) return schema;
      // Columns of values alone are learned.
      if (part === "key")
        throw new Failure("registry.unknown_schema", `nothing names the schema of the keys of ${topic}`);
      if (inferred === null) return await pinned.find(topic);
      return await pinned.learn(topic, parseSchemaDocument(inferred, topic).fields);
    },
    register: async (schema) => {
      const sink = now.sinks.find((s) => s.name === schema.sink);
      const registry = sink?.type === "kafka" ? registryOfSink(now, sink) : null;
      if (sink?.type !== "kafka" || registry === null)
        throw new Failure("internal.bug", `no registry for the sink ${schema.sink}`);
      const client = clients.get(sink.name) ?? new RegistryClient(registry, PARTS);
      clients.set(sink.name, client);
      return await rowSchema(client, schema.encode, schema.fields, sink.encode?.register ?? true);
    },
    renew: (renewed) => {
      const before = JSON.stringify(registriesOf(now));
      now = renewed;
      if (renewed.decode !== null) sources.renew(renewed.decode);
      for (const sink of renewed.sinks) {
        const registry = sink.type === "kafka" ? registryOfSink(renewed, sink) : null;
        if (registry !== null) clients.get(sink.name)?.renew(registry);
      }
      return JSON.stringify(registriesOf(now)) !== before;
    },
  };
}

/** All that are asked, as they are asked. */
function registriesOf(config: ResolvedConfig): unknown[] {
  const { registry } = config.decode ?? {};
  const ofSinks = config.sinks.map((s) => (s.type === "kafka" ? registryOfSink(config, s) : null));
  return [registry === undefined ? null : registrySettings(registry, "decode.registry"), ...ofSinks];
}

/** Of its own, or that of `[decode]`; null: there is none. */
export function registryOfSink(
  { decode, sinks }: Pick<ResolvedConfig, "decode" | "sinks">,
  sink: SinkOf<"kafka">,
) {
  const own = sink.encode?.registry;
  if (own !== undefined) return registrySettings(own, `sink[${sinks.indexOf(sink)}].encode.registry`);
  return decode?.registry === undefined ? null : registrySettings(decode.registry, "decode.registry");
}
