/**
 * In a lane: columns of JSON that has no schema, learned from the records that wait for one. What was learned is kept by the
 * control thread (pinned-schemas.ts), for all lanes.
 */
import { type JsonOptions, jsonRecords } from "../core/codecs/json/compile.ts";
import { inferRecords } from "../core/codecs/json/infer.ts";
import {
  DecodeError,
  type DecodeFault,
  type Payloads,
  type RecordDecoder,
} from "../core/codecs/record-codec.ts";
import { tableDocument } from "../core/codecs/table-document.ts";
import type { DecodeSection } from "../core/config/decode-options.ts";
import type { DecodeParts } from "../core/pipeline/decode-stage.ts";
import type { SampleLimits, TakeSample } from "../core/pipeline/sampling.ts";
import { appendFields } from "../core/schema/append-fields.ts";
import type { SchemaRef, SchemaText } from "../core/schema/resolver.ts";
import type { ColumnBuilder } from "../core/types/column-builder.ts";
import { schemaDocument } from "../core/types/schema-file.ts";
import type { TableField } from "../core/types/table-schema.ts";
import type { Value } from "../core/types/value.ts";

/** `inferred`: a table's schema to be kept, or null. Resolves with null where nothing is known. */
export type AskForSchema = (
  topic: string,
  ref: SchemaRef,
  inferred: string | null,
  part: "key" | "value",
) => Promise<SchemaText | null>;

/** Before there was an object with fields. It is not kept: the first of them makes the first version. */
const NOTHING_YET: SchemaText = {
  format: "json",
  text: "",
  references: [],
  id: "inferred-0",
  subject: null,
  version: 0,
  inferred: "open",
};

const isNothing = ({ inferred, version }: SchemaText): boolean => inferred !== undefined && version === 0;

/** Where schemas are known they are asked for; where they are not, they are learned. */
export function inferredSchemas(
  { infer, max_payload_bytes: largest }: Pick<DecodeSection, "infer" | "max_payload_bytes">,
  prefix: string,
  ask: AskForSchema,
): Pick<DecodeParts, "schema" | "learn"> {
  const { max_records: records, max_bytes: bytes, max_wait_ms: waitMs, max_columns: most } = infer;
  const limits: SampleLimits = { records, bytes, waitMs, largest };
  const more = async (now: readonly TableField[], take: TakeSample, wait: number) =>
    appendFields(now, inferRecords(await take({ ...limits, waitMs: wait }), prefix), {
      maxColumns: most,
      plainNames: false,
    });
  return {
    schema: async (topic, ref, part, take) => {
      const known = await ask(topic, ref, null, part);
      if (known !== null) return known;
      const fields = await more([], take, waitMs);
      if (fields.length === 0) return NOTHING_YET;
      return (await ask(topic, ref, schemaDocument({ fields }), part)) ?? NOTHING_YET;
    },
    learn: async (topic, now, take) => {
      const fields = isNothing(now) ? [] : (tableDocument(now.text)?.fields ?? []);
      // What no sample helps is not waited for.
      if ((await more(fields, take, 0)) === fields) return null;
      const added = (await more(fields, take, waitMs)).slice(fields.length);
      return added.length === 0
        ? null
        : await ask(topic, { by: "default" }, schemaDocument({ fields: added }), "value");
    },
  };
}

/** Null: the schema is one of a document. */
export function decoderOfNothing(schema: SchemaText, options: JsonOptions): RecordDecoder | null {
  return isNothing(schema) ? new NoColumnsYet(options) : null;
}

/** Refuses every record: what is no object for what it is, objects for their first field, which is news. */
class NoColumnsYet implements RecordDecoder {
  readonly fields = [];
  readonly #records: RecordDecoder;

  constructor(options: JsonOptions) {
    this.#records = jsonRecords([], { ...options, unknown: "reject" });
  }

  decode(payloads: Payloads, columns: readonly ColumnBuilder[], fault: (f: DecodeFault) => void): number {
    const refused = new Set<number>();
    this.#records.decode(payloads, columns, (f) => {
      refused.add(f.row);
      fault(f);
    });
    for (let row = 0; row < payloads.count; row++) if (!refused.has(row)) fault({ row, ...EMPTY });
    return 0;
  }

  value(bytes: Uint8Array, from: number, to: number): Value {
    this.#records.value(bytes, from, to);
    throw new DecodeError(EMPTY.code, EMPTY.path, EMPTY.reason);
  }
}

const EMPTY = {
  code: "decode.schema",
  path: "",
  reason: "an object without fields, before one with some: there are no columns yet",
} as const;
