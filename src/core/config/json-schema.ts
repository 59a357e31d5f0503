/** The JSON Schema (2020-12) of a configuration file, as editors want it: what may be written, with meanings. */
import * as z from "zod";
import { type AdapterSpec, fullSpec } from "./adapter-spec.ts";
import { MAX_SINKS, optionalSections, SECTIONS } from "./check.ts";
import { open } from "./schema-walk.ts";

type Json = Record<string, unknown>;

/** Facts of ours that are no words of JSON Schema; strict validators refuse unknown ones. */
const OWN_WORDS = ["unit", "why", "allowed", "secret", "instead", "first"] as const;

export function configJsonSchema(adapters: readonly AdapterSpec[]): Json {
  const of = (kind: AdapterSpec["kind"]): Json[] =>
    adapters.filter((a) => a.kind === kind).map((a) => plain(fullSpec(a)));
  const sections = [...Object.entries(SECTIONS), ...optionalSections()].map(([name, spec]) => [
    name,
    plain(spec),
  ]);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "twg configuration",
    description: "One pipeline of twg: a source, its settings and its sinks.",
    type: "object",
    properties: {
      ...Object.fromEntries(sections),
      source: { description: "Where records come from.", oneOf: of("source") },
      sink: {
        description: "Where records land: one primary raw sink, and others that never hold it up.",
        type: "array",
        minItems: 1,
        maxItems: MAX_SINKS,
        items: { oneOf: of("sink") },
      },
    },
    required: ["pipeline", "source", "sink"],
    additionalProperties: false,
  };
}

function plain(schema: z.ZodType): Json {
  const json = z.toJSONSchema(schema, {
    io: "input",
    target: "draft-2020-12",
    override: ({ zodSchema, jsonSchema }) => {
      const own = jsonSchema as Json;
      const { meta, fallback } = open(zodSchema);
      // Left out by zod where a value is transformed, since it can't know that ours are given as they are written.
      if (meta.examples !== undefined) own.examples = meta.examples;
      if (fallback !== undefined && typeof fallback !== "object") own.default = fallback;
      if (own.format === "starts_with") delete own.format;
      const unit = own.unit;
      if (typeof unit === "string" && typeof own.description === "string")
        own.description += ` Unit: ${unit}.`;
      for (const word of OWN_WORDS) delete own[word];
      if (own.minimum === Number.MIN_SAFE_INTEGER) delete own.minimum;
      if (own.maximum === Number.MAX_SAFE_INTEGER) delete own.maximum;
    },
  }) as Json;
  delete json.$schema;
  return json;
}
