/** Schemas are had by the control thread, which has the registries and their secrets; lanes ask it. */
import { asFailure, type FailureWire, fromWire, toWire } from "../core/failure/failure.ts";
import type { SchemaRef, SchemaText } from "../core/schema/resolver.ts";

/** From a lane's thread. */
export type AskSchema =
  | {
      readonly t: "ask_schema";
      readonly n: number;
      readonly topic: string;
      readonly ref: SchemaRef /** The table's schema as its records tell it, where no other is known; null: what is known is asked for. */;
      readonly inferred: string | null;
    }
  | ({ readonly t: "register_schema"; readonly n: number } & NewSchema);

/** What a sink of decoded rows writes by. */
export interface NewSchema {
  readonly sink: string;
  readonly subject: string;
  readonly schema: string;
}

/** To it. `answer` null: nothing is known of the schema, it is to be inferred. */
export type AnswerSchema = { readonly t: "schema"; readonly n: number } & (
  | { readonly answer: SchemaText | number | null }
  | { readonly failure: FailureWire }
);

/** In the control thread. */
export interface SchemaService {
  readonly find: (topic: string, ref: SchemaRef, inferred: string | null) => Promise<SchemaText | null>;
  /** Answers the schema's id. */
  readonly register: (schema: NewSchema) => Promise<number>;
}

interface Waiting {
  readonly resolve: (answer: never) => void;
  readonly reject: (e: unknown) => void;
}

export class AskedSchemas {
  readonly #post: (ask: AskSchema) => void;
  readonly #waiting = new Map<number, Waiting>();
  #n = 0;

  constructor(post: (ask: AskSchema) => void) {
    this.#post = post;
  }

  /** Rejects with the control thread's failure. */
  schema(topic: string, ref: SchemaRef, inferred: string | null): Promise<SchemaText | null> {
    return this.#ask((n) => ({ t: "ask_schema", n, topic, ref, inferred }));
  }

  register(schema: NewSchema): Promise<number> {
    return this.#ask((n) => ({ t: "register_schema", n, ...schema }));
  }

  answer(answer: AnswerSchema): void {
    const waiting = this.#waiting.get(answer.n);
    this.#waiting.delete(answer.n);
    if ("failure" in answer) waiting?.reject(fromWire(answer.failure));
    else waiting?.resolve(answer.answer as never);
  }

  #ask<T>(question: (n: number) => AskSchema): Promise<T> {
    const n = this.#n++;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(n, { resolve, reject });
      this.#post(question(n));
    });
  }
}

/** In the control thread. */
export async function answerSchema(ask: AskSchema, service: SchemaService): Promise<AnswerSchema> {
  const { n } = ask;
  try {
    const answer =
      ask.t === "ask_schema"
        ? await service.find(ask.topic, ask.ref, ask.inferred)
        : await service.register(ask);
    return { t: "schema", n, answer };
  } catch (e) {
    return { t: "schema", n, failure: toWire(asFailure(e)) };
  }
}
