/**
 * What a changed schema means for a table that has data. A table only grows: a column that came stays, one that is new is
 * appended and may be null, a type gives way to a wider one that holds all values of both. So schemas that alternate come
 * to one table that holds both, and nothing flaps between them. Whatever else differs is refused, with all differences.
 */
import type { ColumnField, ColumnType } from "../types/table-batch.ts";
import { typeText } from "../types/type-text.ts";

/** What the target's table can do without being made anew. */
export interface TargetAbilities {
  /** A column without null becomes one that may be null. */
  readonly relax: boolean;
  /** Fields are added inside of structs. */
  readonly nested: boolean;
  widen(from: ColumnType, to: ColumnType): boolean;
}

export interface Widened {
  /** Of the column, or of what is inside: `items[].price`. */
  readonly path: string;
  readonly from: ColumnType;
  readonly to: ColumnType;
}

/** `fields`: the table's columns from now on. Rows of a schema that lacks one have null there, narrower values are widened. */
export type Evolution =
  | { readonly kind: "unchanged"; readonly fields: readonly ColumnField[] }
  | {
      readonly kind: "grown";
      readonly fields: readonly ColumnField[];
      /** New columns, in their order. */
      readonly added: readonly ColumnField[];
      readonly widened: readonly Widened[];
      /** Paths of what may be null from now on. */
      readonly relaxed: readonly string[];
      /** Paths of what is new inside of columns. */
      readonly nested: readonly string[];
    }
  | { readonly kind: "refused"; readonly differences: readonly string[] };

/** `now`: the table's columns. `next`: those of the schema that comes. */
export function evolve(
  now: readonly ColumnField[],
  next: readonly ColumnField[],
  can: TargetAbilities,
): Evolution {
  const merge = new Merge(can);
  const fields = merge.fields(now, next, "", false);
  if (merge.differences.length > 0) return { kind: "refused", differences: merge.differences };
  const { widened, relaxed, nested } = merge;
  const added = fields.slice(now.length);
  const changes = added.length + widened.length + relaxed.length + nested.length;
  if (changes === 0) return { kind: "unchanged", fields: now };
  return { kind: "grown", fields, added, widened, relaxed, nested };
}

class Merge {
  readonly widened: Widened[] = [];
  readonly relaxed: string[] = [];
  readonly nested: string[] = [];
  readonly differences: string[] = [];
  readonly #can: TargetAbilities;

  constructor(can: TargetAbilities) {
    this.#can = can;
  }

  fields(
    now: readonly ColumnField[],
    next: readonly ColumnField[],
    above: string,
    inside: boolean,
  ): readonly ColumnField[] {
    const coming = new Map(next.map((f) => [f.name, f]));
    const names = new Map(now.map((f) => [f.name.toLowerCase(), f.name]));
    const kept = now.map((field) => {
      const path = `${above}${field.name}`;
      const other = coming.get(field.name);
      coming.delete(field.name);
      return other === undefined ? this.#absent(field, path) : this.#both(field, other, path);
    });
    const added = [...coming.values()].map((field): ColumnField => {
      const path = `${above}${field.name}`;
      const like = names.get(field.name.toLowerCase());
      names.set(field.name.toLowerCase(), field.name);
      if (like !== undefined) this.#refuse(path, `differs from ${JSON.stringify(like)} in nothing but case`);
      if (inside) this.#addInside(path);
      return { ...field, nullable: true };
    });
    return [...kept, ...added];
  }

  #absent(field: ColumnField, path: string): ColumnField {
    return field.nullable ? field : this.#relax(field, path, "is not in the schema any more");
  }

  #both(now: ColumnField, next: ColumnField, path: string): ColumnField {
    const type = this.#type(now.type, next.type, path);
    const field = type === now.type ? now : { ...now, type };
    return next.nullable && !now.nullable ? this.#relax(field, path, "may be null now") : field;
  }

  #type(now: ColumnType, next: ColumnType, path: string): ColumnType {
    if (now.id === "struct" && next.id === "struct") {
      const fields = this.fields(now.fields, next.fields, `${path}.`, true);
      return same(fields, now.fields) ? now : { ...now, fields };
    }
    if (now.id === "list" && next.id === "list") {
      const item = this.#both(now.item, next.item, `${path}[]`);
      return item === now.item ? now : { ...now, item };
    }
    if (now.id === "map" && next.id === "map") {
      const key = this.#both(now.key, next.key, `${path}{key}`);
      const value = this.#both(now.value, next.value, `${path}{}`);
      return key === now.key && value === now.value ? now : { ...now, key, value };
    }
    const wider = widerOf(now, next);
    if (wider === null) {
      this.#refuse(path, `is ${typeText(now)} in the table and ${typeText(next)} in the schema`);
      return now;
    }
    if (typeText(wider) === typeText(now)) return now;
    if (!this.#can.widen(now, wider)) {
      this.#refuse(
        path,
        `is ${typeText(now)} in the table, which cannot be changed to ${typeText(wider)} there`,
      );
      return now;
    }
    this.widened.push({ path, from: now, to: wider });
    return wider;
  }

  #relax(field: ColumnField, path: string, why: string): ColumnField {
    if (this.#can.relax) this.relaxed.push(path);
    else this.#refuse(path, `${why}, and the table does not allow null there`);
    return { ...field, nullable: true };
  }

  #addInside(path: string): void {
    if (this.#can.nested) this.nested.push(path);
    else this.#refuse(path, "is new, and the table cannot grow inside of a column");
  }

  #refuse(path: string, why: string): void {
    this.differences.push(`${path} ${why}`);
  }
}

function same(a: readonly ColumnField[], b: readonly ColumnField[]): boolean {
  return a.length === b.length && a.every((f, i) => f === b[i]);
}

/** The type that holds every value of both, null where there is none that loses nothing. */
function widerOf(a: ColumnType, b: ColumnType): ColumnType | null {
  if (typeText(a) === typeText(b)) return a;
  if (a.id === "null") return b;
  if (b.id === "null") return a;
  if (a.id === "int" && b.id === "int") return widerInt(a, b);
  if (a.id === "float" && b.id === "float") return a.bits > b.bits ? a : b;
  if (a.id === "decimal" && b.id === "decimal") return widerDecimal(a, b);
  return null;
}

type Int = Extract<ColumnType, { readonly id: "int" }>;
type Decimal = Extract<ColumnType, { readonly id: "decimal" }>;

function widerInt(a: Int, b: Int): Int | null {
  if (a.signed === b.signed) return a.bits > b.bits ? a : b;
  const [signed, unsigned] = a.signed ? [a, b] : [b, a];
  if (unsigned.bits === 64) return null;
  const bits = Math.max(signed.bits, unsigned.bits * 2) as Int["bits"];
  return bits === signed.bits ? signed : { id: "int", bits, signed: true };
}

const MAX_PRECISION = 38;

/** Digits before and after the point, as many as either has. */
function widerDecimal(a: Decimal, b: Decimal): Decimal | null {
  const scale = Math.max(a.scale, b.scale);
  const precision = Math.max(a.precision - a.scale, b.precision - b.scale) + scale;
  return precision > MAX_PRECISION ? null : { id: "decimal", precision, scale };
}
