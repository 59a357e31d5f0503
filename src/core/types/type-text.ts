/**
 * Column types as text, for schema files and messages: SQL's names where it has one.
 *
 *   boolean · int8..int64 · uint8..uint64 · float · double · decimal(p,s) · string · binary · date · time
 *   timestamp[s|ms|us|ns] · timestamptz[s|ms|us|ns] · uuid · json · list<T> · map<K,V> · struct<name T, ...>
 */
import type { ColumnField, ColumnType } from "./table-batch.ts";

const SIMPLE: ReadonlyMap<string, ColumnType> = new Map<string, ColumnType>([
  ["boolean", { id: "bool" }],
  ["bool", { id: "bool" }],
  ["float", { id: "float", bits: 32 }],
  ["real", { id: "float", bits: 32 }],
  ["double", { id: "float", bits: 64 }],
  ["string", { id: "utf8" }],
  ["varchar", { id: "utf8" }],
  ["text", { id: "utf8" }],
  ["binary", { id: "binary" }],
  ["date", { id: "date32" }],
  ["time", { id: "time64", unit: "us" }],
  ["uuid", { id: "fixed", bytes: 16, as: "uuid" }],
  ["json", { id: "json" }],
  ["tinyint", { id: "int", bits: 8, signed: true }],
  ["smallint", { id: "int", bits: 16, signed: true }],
  ["int", { id: "int", bits: 32, signed: true }],
  ["integer", { id: "int", bits: 32, signed: true }],
  ["bigint", { id: "int", bits: 64, signed: true }],
]);

export function typeText(type: ColumnType): string {
  switch (type.id) {
    case "bool":
      return "boolean";
    case "utf8":
      return "string";
    case "date32":
      return "date";
    case "int":
      return `${type.signed ? "int" : "uint"}${type.bits}`;
    case "float":
      return type.bits === 64 ? "double" : "float";
    case "decimal":
      return `decimal(${type.precision},${type.scale})`;
    case "fixed":
      return type.as ?? `fixed(${type.bytes})`;
    case "time64":
      return type.unit === "us" ? "time" : "time[ns]";
    case "timestamp":
      return `timestamp${type.zone === null ? "" : "tz"}${type.unit === "us" ? "" : `[${type.unit}]`}`;
    case "list":
      return `list<${typeText(type.item.type)}>`;
    case "map":
      return `map<${typeText(type.key.type)},${typeText(type.value.type)}>`;
    case "struct":
      return `struct<${type.fields.map((f) => `${nameText(f.name)} ${typeText(f.type)}`).join(", ")}>`;
    default:
      return type.id;
  }
}

function nameText(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : JSON.stringify(name);
}

/** Deeper types are refused: nobody writes them, and readers of files recurse. */
const MAX_DEPTH = 32;

/** The type, or why the text is none. */
export function parseType(text: string): ColumnType | string {
  const p = new TypeParser(text);
  try {
    const type = p.type(0);
    p.end();
    return type;
  } catch (e) {
    return e instanceof SyntaxError ? e.message : String(e);
  }
}

class TypeParser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  type(depth: number): ColumnType {
    if (depth > MAX_DEPTH) throw new SyntaxError(`nested deeper than ${MAX_DEPTH}`);
    const word = this.#word().toLowerCase();
    const simple = SIMPLE.get(word);
    if (word === "time" && this.#takes("[")) return this.#bracketed("ns", { id: "time64", unit: "ns" });
    if (simple !== undefined) return simple;
    const int = /^(u?)int(8|16|32|64)$/.exec(word);
    if (int !== null) return { id: "int", bits: Number(int[2]) as 8, signed: int[1] === "" };
    if (word === "decimal" || word === "numeric") return this.#decimal();
    if (word === "timestamp" || word === "timestamptz") return this.#timestamp(word === "timestamptz");
    if (word === "list") return { id: "list", item: nullable("element", this.#angled(depth)[0]!) };
    if (word === "map") {
      const [key, value] = this.#angled(depth, 2);
      return {
        id: "map",
        key: { name: "key", type: key!, nullable: false },
        value: nullable("value", value!),
      };
    }
    if (word === "struct") return { id: "struct", fields: this.#fields(depth) };
    throw new SyntaxError(`${JSON.stringify(word)} is no type`);
  }

  end(): void {
    this.#space();
    if (this.#at < this.#text.length)
      throw new SyntaxError(`nothing may follow: ${JSON.stringify(this.#text.slice(this.#at))}`);
  }

  #decimal(): ColumnType {
    const m = this.#match(/\(\s*(\d+)\s*,\s*(\d+)\s*\)/y);
    const precision = Number(m?.[1]);
    const scale = Number(m?.[2]);
    if (!(precision >= 1 && precision <= 38 && scale <= precision))
      throw new SyntaxError("decimal wants (precision, scale), precision 1 to 38, scale at most that");
    return { id: "decimal", precision, scale };
  }

  #timestamp(zoned: boolean): ColumnType {
    const unit = (this.#match(/\[(s|ms|us|ns)\]/y)?.[1] ?? "us") as "us";
    return { id: "timestamp", unit, zone: zoned ? "UTC" : null };
  }

  #bracketed(unit: string, type: ColumnType): ColumnType {
    if (this.#word() !== unit || !this.#takes("]")) throw new SyntaxError(`time wants [${unit}] or nothing`);
    return type;
  }

  #angled(depth: number, count = 1): ColumnType[] {
    this.#must("<");
    const types = [this.type(depth + 1)];
    while (types.length < count) {
      this.#must(",");
      types.push(this.type(depth + 1));
    }
    this.#must(">");
    return types;
  }

  #fields(depth: number): ColumnField[] {
    this.#must("<");
    const fields: ColumnField[] = [];
    do {
      const quoted = this.#match(/"(?:[^"\\]|\\.)*"/y)?.[0];
      const name = quoted === undefined ? this.#word() : (JSON.parse(quoted) as string);
      this.#takes(":");
      fields.push(nullable(name, this.type(depth + 1)));
    } while (this.#takes(","));
    this.#must(">");
    return fields;
  }

  #word(): string {
    const m = this.#match(/[A-Za-z_][A-Za-z0-9_]*/y);
    if (m === null)
      throw new SyntaxError(`a name is wanted at ${JSON.stringify(this.#text.slice(this.#at))}`);
    return m[0];
  }

  #space(): void {
    while (this.#text[this.#at] === " ") this.#at++;
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    this.#space();
    pattern.lastIndex = this.#at;
    const m = pattern.exec(this.#text);
    if (m !== null) this.#at = pattern.lastIndex;
    return m;
  }

  #takes(mark: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== mark) return false;
    this.#at++;
    return true;
  }

  #must(mark: string): void {
    if (!this.#takes(mark))
      throw new SyntaxError(`${mark} is wanted at ${JSON.stringify(this.#text.slice(this.#at))}`);
  }
}

function nullable(name: string, type: ColumnType): ColumnField {
  return { name, type, nullable: true };
}
