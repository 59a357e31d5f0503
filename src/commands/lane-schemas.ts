/** Schemas are had by the control thread, which has the registry and its secrets; lanes ask it. */
import { asFailure, type FailureWire, fromWire, toWire } from "../core/failure/failure.ts";
import type { SchemaRef, SchemaText } from "../core/schema/resolver.ts";

/** From a lane's thread. */
export interface AskSchema {
  readonly t: "ask_schema";
  readonly n: number;
  readonly topic: string;
  readonly ref: SchemaRef;
  /** The table's schema as its records tell it, where no other is known; null: what is known is asked for. */
  readonly inferred: string | null;
}

/** To it. Neither: nothing is known of the schema, it is to be inferred. */
export interface AnswerSchema {
  readonly t: "schema";
  readonly n: number;
  readonly schema: SchemaText | null;
  readonly failure: FailureWire | null;
}

export class AskedSchemas {
  readonly #post: (ask: AskSchema) => void;
  readonly #waiting = new Map<
    number,
    { resolve: (s: SchemaText | null) => void; reject: (e: unknown) => void }
  >();
  #n = 0;

  constructor(post: (ask: AskSchema) => void) {
    this.#post = post;
  }

  /** Rejects with the control thread's failure. */
  schema(topic: string, ref: SchemaRef, inferred: string | null): Promise<SchemaText | null> {
    const n = this.#n++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(n, { resolve, reject });
      this.#post({ t: "ask_schema", n, topic, ref, inferred });
    });
  }

  answer({ n, schema, failure }: AnswerSchema): void {
    const waiting = this.#waiting.get(n);
    this.#waiting.delete(n);
    if (failure === null) waiting?.resolve(schema);
    else waiting?.reject(fromWire(failure));
  }
}

/** In the control thread. */
export async function answerSchema(
  { n, topic, ref, inferred }: AskSchema,
  find: (topic: string, ref: SchemaRef, inferred: string | null) => Promise<SchemaText | null>,
): Promise<AnswerSchema> {
  try {
    return { t: "schema", n, schema: await find(topic, ref, inferred), failure: null };
  } catch (e) {
    return { t: "schema", n, schema: null, failure: toWire(asFailure(e)) };
  }
}
