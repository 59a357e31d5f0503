/** Schemas are had by the control thread, which has the registries and their secrets; lanes ask it. */
import type { SchemaRef, SchemaText } from "../core/schema/resolver.ts";
import type { ColumnField } from "../core/types/table-batch.ts";
import { type Answered, answered, LaneAsks } from "./lane-asks.ts";
import type { RowEncode, RowSchema } from "./row-schemas.ts";

/** From a lane's thread. */
export type AskSchema =
  | {
      readonly t: "ask_schema";
      readonly n: number;
      readonly topic: string;
      readonly ref: SchemaRef;
      readonly part: "key" | "value";
      /** The table's schema as its records tell it, where no other is known; null: what is known is asked for. */
      readonly inferred: string | null;
    }
  | ({ readonly t: "register_schema"; readonly n: number } & NewSchema);

/** What a sink of decoded rows writes by. */
export interface NewSchema {
  readonly sink: string;
  readonly encode: RowEncode;
  readonly fields: readonly ColumnField[];
}

/** To it. `answer` null: nothing is known of the schema, it is to be inferred. */
export type AnswerSchema = Answered<SchemaText | RowSchema | null> & { readonly t: "schema" };

/** In the control thread. */
export interface SchemaService {
  readonly find: (
    topic: string,
    ref: SchemaRef,
    inferred: string | null,
    part: "key" | "value",
  ) => Promise<SchemaText | null>;
  /** Resolves once the registry has the schema. */
  readonly register: (schema: NewSchema) => Promise<RowSchema>;
}

export class AskedSchemas extends LaneAsks<AskSchema> {
  /** Rejects with the control thread's failure. */
  schema(
    topic: string,
    ref: SchemaRef,
    inferred: string | null,
    part: "key" | "value",
  ): Promise<SchemaText | null> {
    return this.ask((n) => ({ t: "ask_schema", n, topic, ref, part, inferred }));
  }

  register(schema: NewSchema): Promise<RowSchema> {
    return this.ask((n) => ({ t: "register_schema", n, ...schema }));
  }
}

/** In the control thread. */
export async function answerSchema(ask: AskSchema, service: SchemaService): Promise<AnswerSchema> {
  const find = async () =>
    ask.t === "ask_schema"
      ? await service.find(ask.topic, ask.ref, ask.inferred, ask.part)
      : await service.register(ask);
  return { t: "schema", ...(await answered(ask.n, find)) };
}
