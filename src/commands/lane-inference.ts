/**
 * In a lane: columns of JSON that has no schema, learned from the records that wait for one. What was learned is kept by the
 * control thread (pinned-schemas.ts), for all lanes.
 */
import { isUtf8 } from "node:buffer";
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
import { builderOf, type ColumnBuilder } from "../core/types/column-builder.ts";
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
  const rules = { maxColumns: most, plainNames: false };
  const judge = { isUtf8, maxBytes: largest, unknown: "reject", reserved: prefix } as const;
  const sample = (take: TakeSample, wait: number) => take({ ...limits, waitMs: wait });
  const more = (now: readonly TableField[], values: readonly Uint8Array[]) =>
    learned(values, judge, (good) => appendFields(now, inferRecords(good, prefix), rules));
  return {
    schema: async (topic, ref, part, take) => {
      const known = await ask(topic, ref, null, part);
      if (known !== null) return known;
      const fields = more([], await sample(take, waitMs)) ?? [];
      if (fields.length === 0) return NOTHING_YET;
      return (await ask(topic, ref, schemaDocument({ fields }), part)) ?? NOTHING_YET;
    },
    learn: async (topic, now, take) => {
      const fields = isNothing(now) ? [] : (tableDocument(now.text)?.fields ?? []);
      // What no sample helps is not waited for.
      const first = await sample(take, 0);
      if (appendFields(fields, inferRecords(first, prefix), rules) === fields) return null;
      const some = more(fields, first);
      if (some === null || some === fields) return "refused";
      const all = more(fields, await sample(take, waitMs));
      if (all === null || all === fields) return "refused";
      return await ask(topic, { by: "default" }, schemaDocument({ fields: all }), "value");
    },
  };
}

/** Each time some values are left out, and the fields are those of the others. */
const MOST_ROUNDS = 8;

/**
 * The fields that values teach which are taken by them: one that is refused, by what others have taught or for itself,
 * teaches nothing. Null: none is taken.
 */
function learned(
  values: readonly Uint8Array[],
  judge: JsonOptions,
  fieldsOf: (good: readonly Uint8Array[]) => readonly TableField[],
): readonly TableField[] | null {
  let good = values;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const fields = fieldsOf(good);
    const taken = takenBy(fields, good, judge);
    if (taken.length === 0) return values.length === 0 ? fields : null;
    if (taken.length === good.length) return fields;
    good = taken;
  }
  return null;
}

function takenBy(
  fields: readonly TableField[],
  values: readonly Uint8Array[],
  judge: JsonOptions,
): readonly Uint8Array[] {
  const bytes = new Uint8Array(values.reduce((n, v) => n + v.length, 0));
  const [starts, ends] = [new Int32Array(values.length), new Int32Array(values.length)];
  let at = 0;
  for (const [i, v] of values.entries()) {
    bytes.set(v, at);
    starts[i] = at;
    at += v.length;
    ends[i] = at;
  }
  const refused = new Set<number>();
  const columns = fields.map((f) => builderOf(f.type));
  jsonRecords(fields, judge).decode({ bytes, starts, ends, count: values.length }, columns, (f) => {
    refused.add(f.row);
  });
  return values.filter((_, i) => !refused.has(i));
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
