/**
 * The `[decode]` section: how payloads become columns, and where their schemas come from. What `[[decode.topic]]` sets for
 * a topic goes before what the section sets for all.
 */
import * as z from "zod";
import { inferSpec } from "./infer-options.ts";
import { byteSize, KIB, MIB, wholeNumber } from "./option-types.ts";
import { registrySpec } from "./registry-options.ts";

const FORMATS = ["avro", "protobuf", "json", "xml"] as const;
const FRAMINGS = ["none", "confluent", "apicurio", "glue"] as const;
export type FramingName = (typeof FRAMINGS)[number];

const file = (meaning: string, example: string) =>
  z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe(meaning)
    .meta({ examples: [example] });

/** What payloads of one kind are; every option of it may be set anew for a topic. */
const payloadShape = {
  framing: z
    .enum(FRAMINGS)
    .optional()
    .describe("The envelope before each payload, or in its headers, that names the schema it was written by.")
    .meta({
      examples: ["confluent"],
      why: "Without it: none, the whole value is the payload. With a registry or a folder it must be said.",
    }),
  schema_file: file(
    "File with the schema of payloads that name none; of JSON and XML also a data contract (ODCS) or an Arrow schema. With a framing and neither a registry nor a folder it is the schema of all of them, whatever they name.",
    "/etc/twg/order.avsc",
  ),
  reader_schema: file(
    "File with what payloads are resolved to, whatever schema they were written by: the table has its columns and no others. An Avro schema, of Avro; a data contract (ODCS) or an Arrow schema, of Avro and Protobuf.",
    "/etc/twg/order-reader.avsc",
  ),
  subject: z
    .string()
    .min(1)
    .max(1024)
    .optional()
    .describe("Name under which the registry has the table's schema, in place of what the strategy gives.")
    .meta({ examples: ["orders-value"], instead: true }),
  message: z
    .string()
    .regex(/^\.?[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*$/)
    .max(1024)
    .optional()
    .describe(
      "Full name of the message (Protobuf) or record (Avro). The strategies of records need it, too. Where the schema file is a data contract: which of its objects.",
    )
    .meta({
      allowed: "a name such as acme.orders.Order",
      examples: ["acme.orders.Order"],
      why: "Without it: what the envelope says, else the first message of the file; the contract's object of the topic's name, or its only one.",
    }),
};

const format = z
  .enum(FORMATS)
  .describe("What payloads are.")
  .meta({ examples: ["avro"] });

const onError = z
  .enum(["reject", "fail"])
  .default("reject")
  .describe(
    "A record that cannot be decoded goes to the sinks with `receives` = rejected and costs only itself, or stops the pipeline.",
  )
  .meta({ why: "One bad record must not stop the others; its bytes are in the raw lane whatever happens." });

const KEY_FORMATS = [...FORMATS, "text"] as const;
const DEFAULT_PREFIX = "key_";

const keyPrefix = z
  .string()
  .regex(/^[a-z_][a-z0-9_]{0,31}$/)
  .describe(
    "Before the names of the key's columns. A key that is no record is one column, `value` behind the prefix.",
  )
  .meta({
    allowed: "1 to 32 of a-z, 0-9 and '_', not beginning with a digit",
    examples: ["key_"],
    why: "Keys often repeat fields of the value, such as Debezium's; both have their place.",
  });

const topicKeySpec = z.strictObject({
  format: z
    .enum([...KEY_FORMATS, "none"])
    .optional()
    .describe("What keys of this topic are. none: they are not decoded.")
    .meta({ examples: ["none"], why: "Without it: as in [decode.key]." }),
  ...payloadShape,
  prefix: keyPrefix.optional(),
});

const topicSpec = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(249)
    .describe("The topic.")
    .meta({ examples: ["orders"] }),
  format: format.optional(),
  ...payloadShape,
  on_error: onError.unwrap().optional(),
  key: topicKeySpec
    .optional()
    .describe("Keys of this topic; what is left out is as in [decode.key].")
    .meta({ examples: [{ format: "text" }], instead: true }),
});

const keySpec = z.strictObject({
  format: z
    .enum(KEY_FORMATS)
    .describe("What keys are. text: UTF-8 as it stands, in one column.")
    .meta({ examples: ["text"] }),
  ...payloadShape,
  prefix: keyPrefix.default(DEFAULT_PREFIX),
});

const decodeShape = {
  format,
  ...payloadShape,
  subject_strategy: z
    .enum(["topic", "record", "topic_record"])
    .default("topic")
    .describe(
      "How subjects of the registry are named: <topic>-value, the record's full name, or <topic>-<record's name>.",
    )
    .meta({ why: "What Confluent's serializers do unless told otherwise." }),
  on_error: onError,
  max_depth: wholeNumber({ min: 1, max: 256 })
    .default(64)
    .describe(
      "Deepest nesting of elements in XML. Other formats have bounds that do not change: docs/formats.md.",
    )
    .meta({ unit: "levels", examples: [64], why: "Deeper than people nest, far from what a stack holds." }),
  unknown_fields: z
    .enum(["reject", "ignore"])
    .default("reject")
    .describe(
      "Of JSON and XML: what becomes of a record with fields that its schema does not have. reject: it is refused, and says which. ignore: it lands without them; raw has them. Columns that are learned go by `infer.new_fields`; Avro and Protobuf by their own rules.",
    )
    .meta({ examples: ["ignore"], why: "What is left out silently is missed late." }),
  max_payload_bytes: byteSize({ min: KIB, max: 1024 * MIB })
    .default(16 * MIB)
    .describe("Largest payload, inflated where its envelope says that it is compressed.")
    .meta({ unit: "bytes", examples: ["16MiB"], why: "Above what brokers take by default (1 MiB)." }),
  schema_dir: file(
    "Folder with schema files named by id, GUID or subject, in place of a registry. See the guide.",
    "/etc/twg/schemas",
  ),
  registry: registrySpec
    .optional()
    .describe("A schema registry with Confluent's interface.")
    .meta({ instead: true }),
  infer: inferSpec
    .prefault({})
    .describe(
      "How columns are learned of JSON that has no schema: neither `schema_file` nor `schema_dir` nor `registry`.",
    )
    .meta({ instead: true }),
  key: keySpec
    .optional()
    .describe("Decodes keys, too: their fields are columns beside those of the value.")
    .meta({ instead: true }),
  topic: z
    .array(topicSpec)
    .max(1000)
    .optional()
    .describe("Topics with options of their own; what is left out is as in [decode].")
    .meta({
      allowed: "[[decode.topic]] tables",
      examples: [[{ name: "orders", subject: "orders-value" }]],
      instead: true,
    }),
};

const sectionSpec = z.strictObject(decodeShape);
export type DecodeSection = z.output<typeof sectionSpec>;
type DecodeFormat = DecodeSection["format"] | "text";
type PayloadOptions = z.output<z.ZodObject<typeof payloadShape>>;

/** One kind of payload with everything that holds for it. */
export interface PayloadPlan {
  readonly format: DecodeFormat;
  readonly framing: FramingName;
  readonly schemaFile: string | null;
  /** File with the schema that payloads are resolved to (Avro). */
  readonly readerSchema: string | null;
  readonly subject: string | null;
  readonly message: string | null;
  readonly onError: "reject" | "fail";
  /** Before the names of columns, those of keys. */
  readonly prefix: string;
}

/** How the values, or the keys, of a topic are decoded; null: keys that are not. */
export function payloadPlan(decode: DecodeSection, topic: string, part: "key" | "value"): PayloadPlan | null {
  const own = decode.topic?.find((t) => t.name === topic);
  const onErrors = own?.on_error ?? decode.on_error;
  if (part === "key") return keyPlan(decode.key, own?.key, onErrors);
  // A topic of another format has nothing from the section but its error policy.
  const base = own?.format === undefined || own.format === decode.format ? decode : {};
  return planOf(own?.format ?? decode.format, { ...base, ...defined(own ?? {}) }, onErrors);
}

type KeyOptions = z.output<typeof keySpec>;

function keyPlan(
  all: KeyOptions | undefined,
  own: z.output<typeof topicKeySpec> | undefined,
  onErrors: "reject" | "fail",
): PayloadPlan | null {
  const format = own?.format ?? all?.format;
  if (format === undefined || format === "none") return null;
  // As of values: keys of another format have nothing from those of all topics but the prefix.
  const base = own?.format === undefined || own.format === all?.format ? (all ?? {}) : {};
  const prefix = own?.prefix ?? all?.prefix ?? DEFAULT_PREFIX;
  return { ...planOf(format, { ...base, ...defined(own ?? {}) }, onErrors), prefix };
}

function planOf(format: DecodeFormat, o: Partial<PayloadOptions>, onErrors: "reject" | "fail"): PayloadPlan {
  return {
    prefix: "",
    format,
    framing: o.framing ?? "none",
    schemaFile: o.schema_file ?? null,
    readerSchema: o.reader_schema ?? null,
    subject: o.subject ?? null,
    message: o.message?.replace(/^\./, "") ?? null,
    onError: onErrors,
  };
}

function defined<T extends object>(o: T): Partial<T> {
  return Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined)) as Partial<T>;
}

interface Conflict {
  readonly path: (string | number)[];
  readonly message: string;
  readonly allowed: string;
  readonly code: "config.conflict" | "config.missing";
}

function conflicts(decode: DecodeSection): Conflict[] {
  const found: Conflict[] = [];
  if (decode.registry !== undefined && decode.schema_dir !== undefined)
    found.push(
      conflict(["schema_dir"], "schemas come from a registry already", "one of `registry` and `schema_dir`"),
    );
  const names = new Map<string, number>();
  for (const [i, { name }] of (decode.topic ?? []).entries()) {
    const before = names.get(name);
    if (before !== undefined)
      found.push(
        conflict(["topic", i, "name"], `decode.topic[${before}] is of the same topic`, "a topic of its own"),
      );
    else names.set(name, i);
  }
  for (const [i, { key }] of (decode.topic ?? []).entries())
    if (key !== undefined && key.format === undefined && decode.key === undefined)
      found.push({
        path: ["topic", i, "key", "format"],
        message: "what are the keys of this topic?",
        allowed: [...KEY_FORMATS, "none"].map((f) => `"${f}"`).join(" | "),
        code: "config.missing",
      });
  const places: { at: (string | number)[]; plan: PayloadPlan | null }[] = [
    { at: [], plan: planOf(decode.format, decode, decode.on_error) },
    { at: ["key"], plan: keyPlan(decode.key, undefined, "reject") },
    ...(decode.topic ?? []).map((t, i) => ({ at: ["topic", i], plan: payloadPlan(decode, t.name, "value") })),
    ...(decode.topic ?? []).flatMap((t, i) =>
      t.key === undefined ? [] : [{ at: ["topic", i, "key"], plan: keyPlan(decode.key, t.key, "reject") }],
    ),
  ];
  for (const { at, plan } of places) if (plan !== null) found.push(...payloadConflicts(decode, at, plan));
  return found;
}

function payloadConflicts(decode: DecodeSection, at: (string | number)[], plan: PayloadPlan): Conflict[] {
  const found: Conflict[] = [];
  const source = decode.registry !== undefined || decode.schema_dir !== undefined;
  const place = at.reduce<unknown>(
    (o, key) => (o as Record<string | number, unknown> | undefined)?.[key],
    decode,
  );
  const written = (key: keyof PayloadOptions): boolean => (place as PayloadOptions)[key] !== undefined;
  if (plan.format !== "avro" && plan.format !== "protobuf" && written("reader_schema"))
    found.push(
      conflict([...at, "reader_schema"], `${plan.format} has no schemas of readers`, "to leave it out"),
    );
  if (plan.format === "text") return [...found, ...textConflicts(at, plan, written)];
  if (plan.format === "xml") return [...found, ...xmlConflicts(at, plan, written)];
  if (
    plan.framing === "none" &&
    source &&
    plan.schemaFile === null &&
    at.length === 0 &&
    decode.framing === undefined
  )
    found.push({
      path: ["framing"],
      message: "do payloads name their schema?",
      allowed: FRAMINGS.map((f) => `"${f}"`).join(" | "),
      code: "config.missing",
    });
  if (plan.framing !== "none" && !source && plan.schemaFile === null)
    found.push(
      conflict(
        [...at, "framing"],
        "nothing knows the schemas that envelopes name",
        "`registry`, `schema_dir` or `schema_file`",
      ),
    );
  const learned = plan.format === "json" && at.at(-1) !== "key";
  if (plan.framing === "none" && !source && plan.schemaFile === null && !learned)
    found.push({
      path: [...at, "schema_file"],
      message: `${plan.format} cannot be read without its schema`,
      allowed: "`schema_file`, `registry` or `schema_dir`",
      code: "config.missing",
    });
  if (plan.format === "json" && plan.schemaFile === null && plan.message !== null && written("message"))
    found.push(conflict([...at, "message"], "JSON has no messages", "to leave it out"));
  if (decode.subject_strategy !== "topic" && decode.registry !== undefined && needsName(plan))
    found.push(
      conflict(
        [...at, "message"],
        `the strategy ${decode.subject_strategy} needs the record's name`,
        "`message` or `subject`",
      ),
    );
  return found;
}

/** Nothing describes text. */
function textConflicts(
  at: (string | number)[],
  plan: PayloadPlan,
  written: (key: keyof PayloadOptions) => boolean,
): Conflict[] {
  const keys = (["schema_file", "message", "subject"] as const).filter((key) => written(key));
  const found = keys.map((key) => conflict([...at, key], "text has no schema", "to leave it out"));
  if (plan.framing !== "none")
    found.push(conflict([...at, "framing"], "envelopes name schemas, and text has none", '"none"'));
  return found;
}

/** Its schema is a table's, which no registry keeps and no envelope names. */
function xmlConflicts(
  at: (string | number)[],
  plan: PayloadPlan,
  written: (key: keyof PayloadOptions) => boolean,
): Conflict[] {
  const found: Conflict[] = [];
  if (plan.schemaFile === null)
    found.push({
      path: [...at, "schema_file"],
      message: "xml cannot be read without its schema",
      allowed: "`schema_file`, a table's schema",
      code: "config.missing",
    });
  if (plan.framing !== "none")
    found.push(
      conflict([...at, "framing"], "no registry has schemas of XML that envelopes could name", '"none"'),
    );
  if (written("subject")) found.push(conflict([...at, "subject"], "XML has no subjects", "to leave it out"));
  return found;
}

/** Where the table's schema is the latest of a subject, and the subject is named by a record that nobody names. */
function needsName(plan: PayloadPlan): boolean {
  const named = plan.readerSchema !== null && plan.framing !== "none";
  return !named && plan.schemaFile === null && plan.subject === null && plan.message === null;
}

function conflict(path: (string | number)[], message: string, allowed: string): Conflict {
  return { path, message, allowed, code: "config.conflict" };
}

/** Of one topic, as it is kept with what it decoded: without what is had from elsewhere. Not checked for conflicts. */
export const topicDecodeSpec = sectionSpec.omit({ topic: true, registry: true, schema_dir: true });

export const decodeSpec = sectionSpec
  .superRefine((o, ctx) => {
    for (const { path, message, allowed, code } of conflicts(o))
      ctx.addIssue({ code: "custom", path, message, params: { code, allowed } });
  })
  .describe("How payloads become columns, and where their schemas come from.");
