/** Where the schemas of a `[decode]` section come from: a registry, a folder, files; for each topic the one that holds. */
import { type DecodeSection, type PayloadPlan, payloadPlan } from "../../core/config/decode-options.ts";
import type { Resolved } from "../../core/config/secret.ts";
import { Failure } from "../../core/failure/failure.ts";
import type { SchemaRef, SchemaResolver, SchemaText } from "../../core/schema/resolver.ts";
import { subjectOf } from "../../core/schema/subjects.ts";
import { RegistryClient } from "./client.ts";
import { SchemaFolder, schemaOfFile } from "./folder.ts";
import type { RegistryParts } from "./requests.ts";
import { type ReadSchemaFile, readBytes } from "./schema-files.ts";
import { registrySettings } from "./settings.ts";

export class SchemaSources {
  readonly #decode: Resolved<DecodeSection>;
  readonly #resolver: SchemaResolver | null;
  readonly #client: RegistryClient | null;
  readonly #files = new Map<string, Promise<SchemaText>>();
  readonly #read: ReadSchemaFile;

  /** `read`: where the files are that the section names, but for those of its folder. */
  constructor(decode: Resolved<DecodeSection>, parts: RegistryParts, read: ReadSchemaFile = readBytes) {
    this.#read = read;
    this.#decode = decode;
    const { registry, schema_dir: folder } = decode;
    this.#client =
      registry === undefined
        ? null
        : new RegistryClient(registrySettings(registry, "decode.registry"), parts);
    this.#resolver = this.#client ?? (folder === undefined ? null : new SchemaFolder(folder));
  }

  /**
   * The schema whose columns the table of a topic has. Null: nothing names one, the format is JSON and its columns are
   * inferred. Rejects as `SchemaResolver` does.
   */
  async table(topic: string, part: "key" | "value"): Promise<SchemaText | null> {
    const plan = this.#plan(topic, part);
    if (plan.readerSchema !== null) return await this.#target(plan.readerSchema, plan, topic);
    return await this.#own(topic, part, plan);
  }

  /**
   * The schema that a payload was written by, with the one that it is resolved to. Without a source that knows ids, or
   * without an envelope, it is the topic's own.
   */
  async writer(ref: SchemaRef, topic: string, part: "key" | "value"): Promise<SchemaText | null> {
    const plan = this.#plan(topic, part);
    const schema = await this.#written(ref, topic, part, plan);
    if (schema === null || plan.readerSchema === null) return schema;
    const { text, references, table } = await this.#target(plan.readerSchema, plan, topic);
    return { ...schema, reader: { text, references, ...(table === undefined ? {} : { table }) } };
  }

  async #written(
    ref: SchemaRef,
    topic: string,
    part: "key" | "value",
    plan: PayloadPlan,
  ): Promise<SchemaText | null> {
    if (ref.by === "default" || this.#resolver === null) return await this.#own(topic, part, plan);
    const schema = await this.#resolver.schema(ref);
    if (schema.format === plan.format) return schema;
    throw new Failure(
      "registry.schema_invalid",
      `schema ${schema.id} is of the format ${schema.format}, the topic ${topic} is configured as ${plan.format}`,
    );
  }

  async #own(topic: string, part: "key" | "value", plan: PayloadPlan): Promise<SchemaText | null> {
    if (plan.format === "text") return TEXT;
    if (plan.schemaFile !== null) {
      const schema = await this.#file(plan.schemaFile, plan, topic);
      refuseMismatch(schema, plan);
      return schema;
    }
    if (this.#resolver === null) return null;
    return await this.#resolver.latest(subjectOfPlan(this.#decode.subject_strategy, plan, topic, part));
  }

  /** Takes over logins and certificates that were read again. */
  renew({ registry }: Pick<Resolved<DecodeSection>, "registry">): void {
    if (registry !== undefined) this.#client?.renew(registrySettings(registry, "decode.registry"));
  }

  close(): void {
    this.#client?.close();
  }

  #plan(topic: string, part: "key" | "value"): PayloadPlan {
    const plan = payloadPlan(this.#decode as DecodeSection, topic, part);
    if (plan === null)
      throw new Failure("internal.bug", "keys are not decoded, and a schema of theirs is asked for");
    return plan;
  }

  /** What payloads are resolved to. The message that is named is the writer's. */
  async #target(path: string, plan: PayloadPlan, topic: string): Promise<SchemaText> {
    const schema = await this.#file(path, { ...plan, message: null }, topic);
    if (plan.format === "avro" || schema.table !== undefined) return schema;
    throw new Failure(
      "files.schema",
      `${plan.format} is resolved to a data contract or an Arrow schema, and the file is neither`,
      { at: path },
    );
  }

  /** Read once: a table's schema does not change while the process runs. */
  async #file(path: string, { format, message }: PayloadPlan, topic: string): Promise<SchemaText> {
    const key = JSON.stringify([format, path, message, topic]);
    const reading =
      this.#files.get(key) ?? schemaOfFile(path, format, { name: message, topic, how: HOW }, this.#read);
    this.#files.set(key, reading);
    try {
      return await reading;
    } catch (e) {
      this.#files.delete(key);
      throw e;
    }
  }
}

const HOW = ", the topic: say by `message` which one is meant";

/** Throws files.schema where a file is of another kind than its place, or than what else is said of it. */
function refuseMismatch({ table, id }: SchemaText, { format, message }: PayloadPlan): void {
  const textual = format === "json" || format === "xml";
  if (table?.kind !== "contract" && textual && message !== null)
    throw new Failure(
      "files.schema",
      `\`message\` names ${JSON.stringify(message)}, an object of a data contract, and the file is none`,
      { at: id },
    );
  if (table !== undefined && !textual)
    throw new Failure("files.schema", `no ${format} is written by ${table.origin}`, {
      at: id,
      hint: `Payloads of ${format} can be resolved to it: \`reader_schema\``,
    });
}

const TEXT: SchemaText = {
  ...{ format: "text", text: "", references: [], id: "" },
  ...{ subject: null, version: null },
};

/** The name under which the schema of a topic's table is kept. */
export function subjectOfPlan(
  strategy: DecodeSection["subject_strategy"],
  plan: PayloadPlan,
  topic: string,
  part: "key" | "value",
): string {
  const subject = plan.subject ?? subjectOf(strategy, { topic, part, record: plan.message });
  if (subject === null)
    throw new Failure("internal.bug", "a subject without the record's name passed the check");
  return subject;
}
