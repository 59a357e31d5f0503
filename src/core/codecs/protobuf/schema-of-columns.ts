/** The `.proto` source of a table's columns: proto3, one file, the table's message first. */
import { Failure } from "../../failure/failure.ts";
import type { ColumnField } from "../../types/table-batch.ts";
import type { FieldNumbers } from "./field-numbers.ts";
import {
  camel,
  messageOfColumns,
  type ProtoField,
  type ProtoMessage,
  type ProtoType,
} from "./message-of-columns.ts";

/**
 * `record`: full name. `order`: one of those in which fields can be declared, the same message by another text: rotations
 * first, then all of them again for each order within the messages within. Throws encode.unsupported.
 */
export function protobufSchemaOf(
  fields: readonly ColumnField[],
  record: string,
  numbers: FieldNumbers,
  order = 0,
): string {
  const { name, space } = partsOf(record);
  if (space.split(".").includes("google"))
    throw new Failure("encode.unsupported", `${record}: within a package google there are the format's own`);
  const message = messageOfColumns(fields, name, numbers);
  const head = ['syntax = "proto3";', ...(space === "" ? [] : [`package ${space};`])];
  const imports = hasInstants(message) ? ['import "google/protobuf/timestamp.proto";'] : [];
  return `${[...head, ...imports, messageText(message, "", order)].join("\n\n")}\n`;
}

export function partsOf(record: string): { readonly name: string; readonly space: string } {
  const at = record.lastIndexOf(".");
  return { name: record.slice(at + 1), space: at < 0 ? "" : record.slice(0, at) };
}

function hasInstants({ fields }: ProtoMessage): boolean {
  return fields.some(
    ({ type }) => type.is === "instant" || (type.is === "message" && hasInstants(type.message)),
  );
}

function messageText({ name, fields, reserved }: ProtoMessage, indent: string, order: number): string {
  const inner = `${indent}  `;
  const lines = [`${indent}message ${name} {`];
  if (reserved.length > 0) {
    const ranges = reserved.map(([first, last]) => (first === last ? `${first}` : `${first} to ${last}`));
    lines.push(`${inner}reserved ${ranges.join(", ")};`);
  }
  const first = order % Math.max(1, fields.length);
  const within = Math.trunc(order / Math.max(1, fields.length));
  for (const { type } of fields)
    if (type.is === "message") lines.push(messageText(type.message, inner, within));
  const taken = new Map<string, number>();
  for (const f of fields) taken.set(jsonName(f.name), (taken.get(jsonName(f.name)) ?? 0) + 1);
  for (const f of [...fields.slice(first), ...fields.slice(0, first)])
    lines.push(`${inner}${fieldText(f, taken.get(jsonName(f.name))! > 1)}`);
  return [...lines, `${indent}}`].join("\n");
}

/** `ambiguous`: compilers refuse two fields that JSON would have under one name; those with a _ keep theirs. */
function fieldText({ name, number, label, key, type }: ProtoField, ambiguous: boolean): string {
  const option = ambiguous && name.includes("_") ? ` [json_name = "${name}"]` : "";
  const what = label === "map" ? `map<${typeText(key!)}, ${typeText(type)}>` : `${label} ${typeText(type)}`;
  return `${what} ${name} = ${number}${option};`;
}

function typeText(type: ProtoType): string {
  switch (type.is) {
    case "text":
      return "string";
    case "instant":
      return "google.protobuf.Timestamp";
    case "message":
      return type.message.name;
    case "declared":
      return type.text;
    default:
      return type.is;
  }
}

function jsonName(name: string): string {
  const whole = camel(name);
  return name.startsWith("_") ? whole : name.slice(0, 1) + whole.slice(1);
}
