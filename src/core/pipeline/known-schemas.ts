/**
 * The schemas that the payloads of a lane name, each asked for once. What nobody knows is asked for together, since a topic may
 * name as many schemas as it has records; what the registry said it has not is refused, and asked for again beside the
 * work: a schema may come late, and whoever waits for it by then must not hold up the others.
 */
import { DecodeError, type RecordDecoder } from "../codecs/record-codec.ts";
import { asFailure, Failure } from "../failure/failure.ts";
import type { SchemaRef, SchemaText } from "../schema/resolver.ts";
import type { Clock } from "../time/clock.ts";
import { builderOf } from "../types/column-builder.ts";
import type { Part } from "./decode-keys.ts";
import { type Known, refText } from "./known-schema.ts";
import type { TakeSample } from "./sampling.ts";

/** A schema as payloads of a topic name it. */
export interface Named {
  readonly name: string;
  readonly topic: string;
  readonly part: Part;
  readonly ref: SchemaRef;
  readonly message: readonly number[] | null;
}

export interface KnownSchemasParts {
  readonly clock: Clock;
  /**
   * Rejects with a failure that may be retried, or one that says that there is no such schema. `take`: of the values that
   * wait for it, for schemas that are inferred.
   */
  readonly schema: (topic: string, ref: SchemaRef, part: Part, take: TakeSample) => Promise<SchemaText>;
  /** Throws a DecodeError where the schema cannot be used. */
  readonly compile: (
    topic: string,
    schema: SchemaText,
    message: readonly number[] | null,
    part: Part,
  ) => RecordDecoder;
  /** A schema cannot be had for now; null: it can. */
  readonly trouble: (failure: Failure | null) => void;
}

const RETRY_MS = 1_000;
/** Refused schemas that are met again are asked for so often; how long it is remembered that there is none is the registry's client's. */
const AGAIN_MS = 10_000;
/** Those that are asked for together: as many as a batch has records. */
export const MOST_ASKED = 65_536;
/** More than keys and values of two batches can name: what is forgotten for one is not needed by the one at hand. */
const MOST_SCHEMAS = 5 * MOST_ASKED;
/** Of schemas that never have further fields. */
const NO_FIELDS = new Set<string>();

export class KnownSchemas {
  readonly #p: KnownSchemasParts;
  readonly #taker: (topic: string) => TakeSample;
  readonly #known = new Map<string, Known>();
  #life = 0;

  /** `taker`: of the values of a topic that wait. */
  constructor(parts: KnownSchemasParts, taker: (topic: string) => TakeSample) {
    this.#p = parts;
    this.#taker = taker;
  }

  get({ name, topic, part, ref, message }: Named): Known | undefined {
    const known = this.#known.get(name);
    if (known === undefined || known.again === null || this.#p.clock.monotonic() < known.again) return known;
    known.again = this.#p.clock.monotonic() + AGAIN_MS;
    void this.#p.schema(topic, ref, part, this.#taker(topic)).then(
      (schema) => this.replace(known, this.#compiled(topic, part, schema, message)),
      () => {},
    );
    return known;
  }

  /** Returns when they are known, or known to be of no use. */
  async load(wanted: readonly Named[]): Promise<void> {
    // Ids that nobody knows may be as many as there are.
    if (this.#known.size + wanted.length > MOST_SCHEMAS) this.#known.clear();
    await Promise.all(wanted.map((w) => this.#load(w)));
  }

  async #load({ name, topic, part, ref, message }: Named): Promise<void> {
    const schema = await this.patiently(() => this.#p.schema(topic, ref, part, this.#taker(topic)));
    if (schema instanceof Failure) {
      const fault = { code: "decode.schema", path: "", reason: schema.message } as const;
      const nothing = { decoder: null, columns: [], open: null, futile: NO_FIELDS, naturalKey: [] };
      const again = this.#p.clock.monotonic() + AGAIN_MS;
      this.#known.set(name, { schemaId: refText(ref), fault, again, ...nothing });
    } else if (schema !== null) this.#known.set(name, this.#compiled(topic, part, schema, message));
  }

  /** The columns of the topic have become more. */
  relearned(known: Known, topic: string, schema: SchemaText): void {
    this.replace(known, this.#compiled(topic, "value", schema, null));
  }

  replace(known: Known, by: Known): void {
    for (const [name, one] of this.#known) if (one === known) this.#known.set(name, by);
  }

  /** Whoever waits gives up. */
  reset(): void {
    this.#life++;
  }

  /** What was asked for, or the final word against it; null: nobody waits for it any more. */
  async patiently<T>(ask: () => Promise<T>): Promise<T | Failure | null> {
    const life = this.#life;
    for (;;) {
      try {
        const answer = await ask();
        this.#p.trouble(null);
        return answer;
      } catch (e) {
        const failure = asFailure(e);
        if (!failure.retry && failure.kind === "runtime") return failure;
        this.#p.trouble(failure);
        await new Promise<void>((resolve) => void this.#p.clock.after(RETRY_MS, resolve));
        if (life !== this.#life) return null;
      }
    }
  }

  #compiled(topic: string, part: Part, schema: SchemaText, message: readonly number[] | null): Known {
    const isOpen = schema.inferred === "open";
    const growing = {
      open: isOpen ? schema : null,
      futile: isOpen ? new Set<string>() : NO_FIELDS,
      naturalKey: (schema.reader?.table ?? schema.table)?.naturalKey ?? [],
    };
    const { id: schemaId } = schema;
    try {
      const decoder = this.#p.compile(topic, schema, message, part);
      const columns = decoder.fields.map((f) => builderOf(f.type));
      return { schemaId, decoder, columns, fault: null, again: null, ...growing };
    } catch (e) {
      if (!(e instanceof DecodeError)) throw e;
      const fault = { code: e.code, path: e.path, reason: e.message };
      return { schemaId, decoder: null, columns: [], fault, again: null, ...growing };
    }
  }
}
