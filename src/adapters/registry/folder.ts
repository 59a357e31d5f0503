/**
 * Schemas from files. In a folder a schema is found by the name of its file, `7.avsc`, `<GUID>.avsc`, `orders-value.avsc`
 * (a subject, percent-encoded where a file cannot be called so), or by `index.json`, which then is the only truth:
 *
 *   { "schemas": [{ "file": "order.avsc", "id": 7, "guid": "…", "subject": "orders-value", "version": 2,
 *                   "references": [{ "name": "acme.Money", "file": "money.avsc" }] }] }
 *
 * Files are read when they are asked for: whoever decodes keeps what it made of them.
 */
import { dirname } from "node:path";
import type { WantedObject } from "../../core/contract/odcs.ts";
import { Failure } from "../../core/failure/failure.ts";
import type {
  RegistryFormat,
  SchemaFormat,
  SchemaRef,
  SchemaReference,
  SchemaResolver,
  SchemaText,
} from "../../core/schema/resolver.ts";
import { schemaDocument } from "../../core/types/schema-file.ts";
import { isObject, type JsonObject } from "./answers.ts";
import { whole } from "./schema-answer.ts";
import {
  EXTENSIONS,
  formatOf,
  importsOf,
  inside,
  type ReadSchemaFile,
  readBytes,
  readText,
  textOf as textOfBytes,
  unusable,
} from "./schema-files.ts";
import { tableOfFile } from "./table-file.ts";

const INDEX = "index.json";
const MAX_ENTRIES = 10_000;
const MAX_DEPTH = 32;

interface Entry {
  readonly file: string;
  readonly id: number | null;
  readonly guid: string | null;
  readonly subject: string | null;
  readonly version: number | null;
  readonly references: readonly { readonly name: string; readonly file: string }[];
}

/** Of the file given in the configuration. `wanted`: which object, where it is a data contract. */
export async function schemaOfFile(
  path: string,
  format: SchemaFormat,
  wanted: WantedObject = { name: null, topic: "" },
  read: ReadSchemaFile = readBytes,
): Promise<SchemaText> {
  const bytes = await read(path);
  if (bytes === null) throw unusable(path, "there is no such file");
  const table = await tableOfFile(path, bytes, wanted);
  if (table !== null) {
    const text = schemaDocument({ fields: table.fields });
    return { format, text, references: [], id: path, subject: null, version: null, table };
  }
  const text = textOfBytes(bytes, path);
  const references = format === "protobuf" ? await importsOf(text, dirname(path), read) : [];
  return { format, text, references, id: path, subject: null, version: null };
}

export class SchemaFolder implements SchemaResolver {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async schema(ref: SchemaRef): Promise<SchemaText> {
    switch (ref.by) {
      case "id":
        return await this.#find(`schema id ${ref.id}`, String(ref.id), (e) => e.id === ref.id);
      case "guid":
        return await this.#find(
          `schema GUID ${ref.guid}`,
          ref.guid,
          (e) => e.guid?.toLowerCase() === ref.guid,
        );
      case "default":
        throw new Failure("internal.bug", "a folder was asked for a schema that nothing names");
    }
  }

  async latest(subject: string): Promise<SchemaText> {
    return await this.#find(
      `a schema of ${subject}`,
      encodeURIComponent(subject),
      (e) => e.subject === subject,
      subject,
    );
  }

  async #find(
    what: string,
    stem: string,
    wanted: (entry: Entry) => boolean,
    subject: string | null = null,
  ): Promise<SchemaText> {
    const index = await readText(`${this.#folder}/${INDEX}`);
    const found = index === null ? await this.#named(stem) : await this.#indexed(index, wanted);
    if (found !== null) return subject === null ? found : { ...found, subject };
    const how = index === null ? `no file ${stem} with the ending of a schema` : `nothing in ${INDEX}`;
    const code = subject === null ? "registry.unknown_schema" : "registry.unknown_subject";
    throw new Failure(code, `${what}: the folder has none: ${how}`, { at: this.#folder });
  }

  async #named(stem: string): Promise<SchemaText | null> {
    for (const [format, endings] of Object.entries(EXTENSIONS) as [RegistryFormat, readonly string[]][]) {
      for (const ending of endings) {
        const text = await readText(`${this.#folder}/${stem}${ending}`);
        if (text === null) continue;
        const references = format === "protobuf" ? await importsOf(text, this.#folder) : [];
        return { format, text, references, id: decodeURIComponent(stem), subject: null, version: null };
      }
    }
    return null;
  }

  async #indexed(text: string, wanted: (entry: Entry) => boolean): Promise<SchemaText | null> {
    const entries = readIndex(text, `${this.#folder}/${INDEX}`);
    // Of several versions of a subject the latest.
    const [entry] = entries.filter(wanted).sort((a, b) => (b.version ?? 0) - (a.version ?? 0));
    if (entry === undefined) return null;
    const format = formatOf(entry.file);
    if (format === null) throw this.#bad(`${entry.file} ends with none of .avsc, .proto and .json`);
    const own = await this.#text(entry.file);
    const references =
      format === "protobuf" && entry.references.length === 0
        ? await importsOf(own, this.#folder)
        : await this.#references(entry, entries, [entry.file]);
    const id = entry.id === null ? (entry.guid ?? entry.file) : String(entry.id);
    return { format, text: own, references, id, subject: entry.subject, version: entry.version };
  }

  /** A file that is referred to has the references of its own entry. */
  async #references(
    of: Entry,
    entries: readonly Entry[],
    above: readonly string[],
  ): Promise<SchemaReference[]> {
    const found: SchemaReference[] = [];
    for (const { name, file } of of.references) {
      if (above.includes(file))
        throw this.#bad(`references go in a circle: ${[...above, file].join(" -> ")}`);
      if (above.length > MAX_DEPTH) throw this.#bad(`references go deeper than ${MAX_DEPTH}`);
      const entry = entries.find((e) => e.file === file);
      const references = entry === undefined ? [] : await this.#references(entry, entries, [...above, file]);
      found.push({ name, text: await this.#text(file), references });
    }
    return found;
  }

  async #text(file: string): Promise<string> {
    const path = inside(this.#folder, file);
    if (path === null) throw this.#bad(`${file} is outside of the folder`);
    const text = await readText(path);
    if (text === null) throw unusable(path, `${INDEX} names it, and there is no such file`);
    return text;
  }

  #bad(why: string): Failure {
    return unusable(`${this.#folder}/${INDEX}`, why);
  }
}

function readIndex(text: string, at: string): Entry[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (e) {
    throw unusable(at, `it is no JSON: ${e instanceof Error ? e.message : String(e)}`);
  }
  const list = isObject(value) ? value["schemas"] : undefined;
  if (!Array.isArray(list)) throw unusable(at, 'a list "schemas" is wanted');
  if (list.length > MAX_ENTRIES) throw unusable(at, `more than ${MAX_ENTRIES} schemas`);
  return list.map((e: unknown, i) => entryOf(e, `schemas[${i}]`, at));
}

const KEYS = ["file", "id", "guid", "subject", "version", "references"];

function entryOf(value: unknown, place: string, at: string): Entry {
  if (!isObject(value)) throw unusable(at, `${place} is no object`);
  const unknown = Object.keys(value).find((k) => !KEYS.includes(k));
  if (unknown !== undefined)
    throw unusable(at, `${place} has the key "${unknown}"; known are ${KEYS.join(", ")}`);
  const { file, guid, subject, references = [] } = value;
  if (typeof file !== "string" || file === "") throw unusable(at, `${place} wants a "file"`);
  const number = (key: "id" | "version"): number | null => {
    if (value[key] === undefined) return null;
    const n = whole(value[key]);
    if (n === null) throw unusable(at, `${place}.${key} is a whole number`);
    return n;
  };
  if (!Array.isArray(references)) throw unusable(at, `${place}.references is a list`);
  return {
    file,
    id: number("id"),
    guid: textOf(guid, `${place}.guid`, at),
    subject: textOf(subject, `${place}.subject`, at),
    version: number("version"),
    references: references.map((r: unknown) => referenceOf(isObject(r) ? r : {}, place, at)),
  };
}

function referenceOf({ name, file }: JsonObject, place: string, at: string): { name: string; file: string } {
  if (typeof name === "string" && typeof file === "string") return { name, file };
  throw unusable(at, `each of ${place}.references wants a "name" and a "file"`);
}

function textOf(value: unknown, place: string, at: string): string | null {
  if (value === undefined) return null;
  if (typeof value === "string") return value;
  throw unusable(at, `${place} is a text`);
}
