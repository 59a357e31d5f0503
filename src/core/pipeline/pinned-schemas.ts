/**
 * What was learned of the columns of topics, durable in one place for all lanes, restarts and members of a group. Columns are
 * added and never changed, so whoever knows an older version reads on with it. One versioned object:
 *
 *   { "format": "twg.schemas", "formatVersion": 1,
 *     "topics": { "orders": { "version": 2, "columns": [{ "name": "id", "type": "int64" }, ...] } } }
 */
import { Failure } from "../failure/failure.ts";
import type { Versioned, VersionedStore } from "../ports/versioned-store.ts";
import { appendFields, type GrowthRules } from "../schema/append-fields.ts";
import type { SchemaText } from "../schema/resolver.ts";
import { sameType } from "../types/cast-column.ts";
import { parseSchemaDocument, schemaDocument } from "../types/schema-file.ts";
import { sourceOf, type TableField } from "../types/table-schema.ts";

const FORMAT = "twg.schemas";
const FORMAT_VERSION = 1;
/** Writes that are lost in a row, each to a newer object, before something must be wrong. */
const MAX_ROUNDS = 100;

interface Pinned {
  /** From 1 on, by one with every change. */
  readonly version: number;
  readonly fields: readonly TableField[];
}

type Topics = ReadonlyMap<string, Pinned>;

interface Seen {
  /** Null: there is no object. */
  readonly version: number | null;
  readonly topics: Topics;
}

export interface PinnedOptions extends GrowthRules {
  readonly store: VersionedStore;
  /** Unique to the process. */
  readonly instance: string;
  /** Whether columns are added to those of a topic. */
  readonly grows: boolean;
  /** Columns were learned, or added to what was. */
  readonly learned: (topic: string, version: number, added: readonly string[], place: string) => void;
}

export class PinnedSchemas {
  readonly #o: PinnedOptions;
  #topics: Topics = new Map();
  #prepared = false;
  #serial = 0;
  /** Changes go one behind the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: PinnedOptions) {
    this.#o = options;
  }

  /** Null: nothing was learned of the topic. */
  async find(topic: string): Promise<SchemaText | null> {
    if (!this.#topics.has(topic)) await this.#read();
    const pinned = this.#topics.get(topic);
    return pinned === undefined ? null : this.#textOf(pinned);
  }

  /**
   * With these columns, too, as far as there is room; durable when it resolves. Where one of them is of another type already
   * nothing is added: the records that they were learned of are refused by that, and would teach all the same.
   */
  async learn(topic: string, more: readonly TableField[]): Promise<SchemaText> {
    const turn = this.#last.then(() => this.#learn(topic, more));
    this.#last = turn.catch(() => {});
    return this.#textOf(await turn);
  }

  async #learn(topic: string, more: readonly TableField[]): Promise<Pinned> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      // Another process may have learned meanwhile.
      const seen = await this.#read();
      const now = seen.topics.get(topic);
      const fields = appendFields(now?.fields ?? [], more, this.#o);
      if (now !== undefined && (fields === now.fields || !this.#o.grows || differs(now.fields, more)))
        return now;
      const next: Pinned = { version: (now?.version ?? 0) + 1, fields };
      if (!(await this.#write(seen.version, new Map(seen.topics).set(topic, next)))) continue;
      const added = fields.slice(now?.fields.length ?? 0).map((f) => f.name);
      this.#o.learned(topic, next.version, added, this.#o.store.place);
      return next;
    }
    throw new Failure("coverage.unavailable", "others change the learned columns all the time", {
      at: this.#o.store.place,
      retry: true,
    });
  }

  async #read(): Promise<Seen> {
    const found = await this.#o.store.read();
    this.#topics = found === null ? new Map() : parsed(found);
    return { version: found?.version ?? null, topics: this.#topics };
  }

  /** `over`: what `topics` were made of, since others look at the object meanwhile. False: it has to be looked at again. */
  async #write(over: number | null, topics: Topics): Promise<boolean> {
    if (!this.#prepared) await this.#o.store.prepare();
    this.#prepared = true;
    const bytes = new TextEncoder().encode(documentOf(topics));
    return (await this.#o.store.write(over, bytes, `${this.#o.instance}.${this.#serial++}`)) === "won";
  }

  #textOf({ version, fields }: Pinned): SchemaText {
    const inferred = this.#o.grows && fields.length < this.#o.maxColumns ? "open" : "closed";
    const text = schemaDocument({ fields });
    return {
      format: "json",
      text,
      references: [],
      id: `inferred-${version}`,
      subject: null,
      version,
      inferred,
    };
  }
}

/** One of the columns is there, and of another type. */
function differs(now: readonly TableField[], more: readonly TableField[]): boolean {
  const types = new Map(now.map((f) => [sourceOf(f), f.type]));
  return more.some((f) => {
    const type = types.get(sourceOf(f));
    return type !== undefined && !sameType(type, f.type);
  });
}

function documentOf(topics: Topics): string {
  const all = [...topics].map(([topic, { version, fields }]) => {
    const { columns } = JSON.parse(schemaDocument({ fields })) as { columns: unknown };
    return [topic, { version, columns }];
  });
  const document = { format: FORMAT, formatVersion: FORMAT_VERSION, topics: Object.fromEntries(all) };
  return `${JSON.stringify(document, null, 1)}\n`;
}

/** Throws files.schema with the place of what is none of ours. */
function parsed({ bytes, name }: Pick<Versioned, "bytes" | "name">): Topics {
  const document = jsonOf(bytes);
  if (!isObject(document) || document.format !== FORMAT || !isObject(document.topics))
    throw corrupt("it does not hold the learned columns of topics", name);
  if (document.formatVersion !== FORMAT_VERSION)
    throw new Failure(
      "coverage.newer_version",
      `format version ${String(document.formatVersion)}, ${FORMAT_VERSION} is read`,
      {
        at: name,
        hint: "A later version of twg wrote it: use that one",
      },
    );
  return new Map(
    Object.entries(document.topics).map(([topic, value]) => {
      const version = isObject(value) ? value.version : undefined;
      if (typeof version !== "number" || !Number.isSafeInteger(version) || version < 1)
        throw corrupt(`the topic ${topic} has no version`, name);
      const { fields } = parseSchemaDocument(JSON.stringify(value), `${name} ${topic}`);
      return [topic, { version, fields }];
    }),
  );
}

/** For `config explain`, which writes nothing: the table's schema of each topic. */
export async function readPinned(store: Pick<VersionedStore, "read">): Promise<ReadonlyMap<string, string>> {
  const found = await store.read();
  const topics: Topics = found === null ? new Map() : parsed(found);
  return new Map([...topics].map(([topic, { fields }]) => [topic, schemaDocument({ fields })]));
}

function corrupt(what: string, at: string): Failure {
  return new Failure("files.schema", what, {
    at,
    hint: "Restore the object from a backup, or give a schema_file",
  });
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
