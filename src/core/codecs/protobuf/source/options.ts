/** Options of the format itself, found by its own descriptors; those that somebody added are left out. */
import { create, type DescField, type DescMessage } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";

export type OptionValue =
  | { readonly is: "word" | "number" | "string"; readonly text: string }
  | { readonly is: "group"; readonly entries: readonly RawOption[] };

export interface RawOption {
  /** Parts between dots; those in brackets of either kind begin with "(". */
  readonly name: readonly string[];
  readonly value: OptionValue;
  readonly at: number;
}

type Fail = (at: number, reason: string) => never;

/** Null: none of the given is an option of `schema`. */
export function optionsOf<T extends DescMessage>(schema: T, raw: readonly RawOption[], fail: Fail) {
  const message = create(schema);
  let any = false;
  for (const o of raw) if (set(schema, message, o.name, o.value, o.at, fail)) any = true;
  return any ? message : undefined;
}

function set(
  schema: DescMessage,
  message: ReturnType<typeof create>,
  [first, ...rest]: readonly string[],
  value: OptionValue,
  at: number,
  fail: Fail,
): boolean {
  if (first === undefined || first.startsWith("(")) return false;
  const field = schema.fields.find((f) => f.name === first);
  if (field === undefined) return fail(at, `${schema.name} has no option ${first}`);
  const on = reflect(schema, message);
  if (field.fieldKind === "message") {
    if (!on.isSet(field)) on.set(field, reflect(field.message, create(field.message)));
    const inner = on.get(field).message;
    if (rest.length > 0) return set(field.message, inner, rest, value, at, fail);
    if (value.is !== "group") return fail(at, `the option ${first} takes values in braces`);
    for (const e of value.entries) set(field.message, inner, e.name, e.value, e.at, fail);
    return true;
  }
  if (rest.length > 0) return fail(at, `the option ${first} has no part ${rest[0]}`);
  if (field.fieldKind === "list" || field.fieldKind === "map") return false;
  on.set(field, scalarOf(field, value, at, fail));
  return true;
}

function scalarOf(
  field: DescField,
  value: OptionValue,
  at: number,
  fail: Fail,
): string | number | boolean | bigint {
  if (value.is === "group") return fail(at, `the option ${field.name} takes one value`);
  if (field.enum !== undefined) {
    const found = field.enum.values.find((v) => v.name === value.text);
    return found?.number ?? fail(at, `the option ${field.name} has no value ${value.text}`);
  }
  if (value.text === "true" || value.text === "false") return value.text === "true";
  return value.is === "number" ? Number(value.text) : value.text;
}
