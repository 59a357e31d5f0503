/** Schemas are had by the control thread, which has the registry and its secrets; lanes ask it. */
import { asFailure, type FailureWire, fromWire, toWire } from "../core/failure/failure.ts";
import type { SchemaRef, SchemaText } from "../core/schema/resolver.ts";

/** From a lane's thread. */
export interface AskSchema {
  readonly t: "ask_schema";
  readonly n: number;
  readonly topic: string;
  readonly ref: SchemaRef;
}

/** To it. */
export interface AnswerSchema {
  readonly t: "schema";
  readonly n: number;
  readonly schema: SchemaText | null;
  readonly failure: FailureWire | null;
}

export class AskedSchemas {
  readonly #post: (ask: AskSchema) => void;
  readonly #waiting = new Map<number, { resolve: (s: SchemaText) => void; reject: (e: unknown) => void }>();
  #n = 0;

  constructor(post: (ask: AskSchema) => void) {
    this.#post = post;
  }

  /** Rejects with the control thread's failure. */
  schema(topic: string, ref: SchemaRef): Promise<SchemaText> {
    const n = this.#n++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(n, { resolve, reject });
      this.#post({ t: "ask_schema", n, topic, ref });
    });
  }

  answer({ n, schema, failure }: AnswerSchema): void {
    const waiting = this.#waiting.get(n);
    this.#waiting.delete(n);
    if (schema !== null) waiting?.resolve(schema);
    else if (failure !== null) waiting?.reject(fromWire(failure));
  }
}

/** In the control thread. */
export async function answerSchema(
  { n, topic, ref }: AskSchema,
  find: (topic: string, ref: SchemaRef) => Promise<SchemaText>,
): Promise<AnswerSchema> {
  try {
    return { t: "schema", n, schema: await find(topic, ref), failure: null };
  } catch (e) {
    return { t: "schema", n, schema: null, failure: toWire(asFailure(e)) };
  }
}
