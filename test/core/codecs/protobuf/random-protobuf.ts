/** Schemas by chance as `.proto` source of every syntax, and payloads of them by chance, written here byte by byte. */

export type Draw = (below: number) => number;

interface FieldModel {
  readonly name: string;
  readonly number: number;
  readonly label: "one" | "list" | "map";
  readonly key: string;
  readonly type: TypeModel;
  readonly group: boolean;
  readonly required: boolean;
  readonly text: string;
}

type TypeModel =
  | { readonly is: "scalar" | "known"; readonly name: string }
  | { readonly is: "enum"; readonly name: string; readonly numbers: readonly number[] }
  | { readonly is: "message"; readonly of: number; readonly name: string };

interface MessageModel {
  readonly fields: readonly FieldModel[];
}

export interface SchemaModel {
  readonly text: string;
  readonly messages: readonly MessageModel[];
}

const SCALARS = [
  "double",
  "float",
  "int32",
  "int64",
  "uint32",
  "uint64",
  "sint32",
  "sint64",
  "fixed32",
  "fixed64",
  "sfixed32",
  "sfixed64",
  "bool",
  "string",
  "bytes",
];
const KEYS = SCALARS.filter((s) => !["double", "float", "bytes"].includes(s));
const KNOWN = [
  "Timestamp",
  "Duration",
  "Struct",
  "Value",
  "ListValue",
  "Int64Value",
  "StringValue",
  "BoolValue",
  "DoubleValue",
  "Empty",
  "Any",
  "FieldMask",
];
const FILES: Readonly<Record<string, string>> = {
  Timestamp: "timestamp",
  Duration: "duration",
  Struct: "struct",
  Value: "struct",
  ListValue: "struct",
  Empty: "empty",
  Any: "any",
  FieldMask: "field_mask",
};

const pick = <T>(draw: Draw, of: readonly T[]): T => of[draw(of.length)]!;

type Syntax = "proto2" | "proto3" | "2023" | "2024";

export function randomSchema(draw: Draw): SchemaModel {
  const syntax = pick<Syntax>(draw, ["proto2", "proto3", "2023", "2024"]);
  const count = 1 + draw(4);
  const enums = [
    { name: "E0", numbers: [0, 1, 5] },
    { name: "E1", numbers: [0, -1, 1000] },
  ];
  const messages: MessageModel[] = [];
  const lines = [syntax.startsWith("proto") ? `syntax = "${syntax}";` : `edition = "${syntax}";`];
  lines.push("package chance;");
  for (const file of new Set(KNOWN.map((k) => FILES[k] ?? "wrappers")))
    lines.push(`import "google/protobuf/${file}.proto";`);
  for (const e of enums) {
    const values = e.numbers.map((n, i) => `${e.name}_V${i} = ${n};`);
    const closed = syntax.startsWith("20") && draw(2) === 0 ? "option features.enum_type = CLOSED;" : "";
    lines.push(`enum ${e.name} { ${closed} ${values.join(" ")} }`);
  }
  for (let m = 0; m < count; m++) {
    const taken = new Set<number>();
    const fields: FieldModel[] = [];
    let oneof: string[] | null = null;
    lines.push(`message M${m} {`);
    for (let i = 1 + draw(7); i > 0; i--) {
      let number = draw(6) === 0 ? 16 + draw(3000) : 1 + draw(15);
      while (taken.has(number)) number++;
      taken.add(number);
      const field = randomField(draw, syntax, number, count, m, enums);
      fields.push(field);
      const inOneof = field.label === "one" && field.text.startsWith("plain ") && draw(3) === 0;
      if (inOneof) {
        oneof ??= [];
        oneof.push(field.text.slice(6));
      } else lines.push(`  ${finished(field, syntax)}`);
    }
    if (oneof !== null) lines.push(`  oneof choice { ${oneof.join(" ")} }`);
    lines.push("}");
    messages.push({ fields });
  }
  return { text: lines.join("\n"), messages };
}

/** `plain` marks a field without a label of its own. */
function finished({ text, required }: FieldModel, syntax: Syntax): string {
  if (!text.startsWith("plain ")) return text;
  const rest = text.slice(6);
  return syntax === "proto2" ? `${required ? "required" : "optional"} ${rest}` : rest;
}

function randomField(
  draw: Draw,
  syntax: Syntax,
  number: number,
  messages: number,
  within: number,
  enums: readonly { readonly name: string; readonly numbers: readonly number[] }[],
): FieldModel {
  const name = `f_${number}`;
  const type = randomType(draw, messages, within, enums);
  const named = type.is === "known" ? `google.protobuf.${type.name}` : type.name;
  const label = pick(draw, ["one", "one", "one", "list", "map"] as const);
  const options: string[] = [];
  const edition = syntax.startsWith("20");
  const simple = type.is === "scalar" || type.is === "enum";
  const packable = simple && named !== "string" && named !== "bytes";
  let group = false;
  let text: string;
  const key = pick(draw, KEYS);
  if (label === "list" && packable && draw(2) === 0)
    options.push(
      edition
        ? `features.repeated_field_encoding = ${pick(draw, ["PACKED", "EXPANDED"])}`
        : `packed = ${pick(draw, ["true", "false"])}`,
    );
  if (edition && !simple && label !== "map" && draw(3) === 0) {
    group = true;
    options.push("features.message_encoding = DELIMITED");
  }
  // Members of a oneof always have presence, so only what says so itself stays outside.
  let own = "plain";
  if (edition && label === "one" && simple && type.is === "scalar" && draw(3) === 0) {
    options.push("features.field_presence = IMPLICIT");
    own = "";
  }
  const tail = `${name} = ${number}${options.length > 0 ? ` [${options.join(", ")}]` : ""};`;
  const required = syntax === "proto2" && label === "one" && draw(8) === 0;
  if (required) own = "required";
  if (syntax === "proto3" && label === "one" && draw(3) === 0) own = "optional";
  if (label === "map") text = `map<${key}, ${named}> ${tail}`;
  else if (label === "list") text = `repeated ${named} ${tail}`;
  else text = `${own} ${named} ${tail}`.trim();
  return { name, number, label, key, type, group, required, text };
}

function randomType(
  draw: Draw,
  messages: number,
  within: number,
  enums: readonly { readonly name: string; readonly numbers: readonly number[] }[],
): TypeModel {
  const sort = draw(10);
  if (sort < 5) return { is: "scalar", name: pick(draw, SCALARS) };
  if (sort < 6) return { is: "enum", ...pick(draw, enums) };
  // Mostly a later message: each that holds itself makes columns of columns.
  const later = within + 1 + draw(messages);
  if (sort < 7) return later < messages ? messageType(later) : { is: "scalar", name: pick(draw, SCALARS) };
  if (sort < 8 && draw(3) === 0) return messageType(draw(messages));
  return { is: "known", name: pick(draw, KNOWN) };
}

const messageType = (of: number): TypeModel => ({ is: "message", of, name: `M${of}` });

/** Bytes of a payload of message `m`; rarely, what only a strange writer would write. */
export function randomPayload(schema: SchemaModel, draw: Draw, m = 0, depth = 0): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const f of schema.messages[m]!.fields) {
    const often = f.required ? 20 : 3;
    if (draw(often) === 0) continue;
    const times = f.label === "one" ? (draw(12) === 0 ? 2 : 1) : draw(4);
    for (let i = 0; i < times; i++) parts.push(...occurrence(schema, f, draw, depth));
  }
  if (draw(6) === 0) parts.push(unknownField(draw));
  if (draw(3) === 0) parts.sort(() => draw(3) - 1);
  return Uint8Array.from(Buffer.concat(parts));
}

function occurrence(schema: SchemaModel, f: FieldModel, draw: Draw, depth: number): Uint8Array[] {
  if (f.label === "map") {
    const entry: Uint8Array[] = [];
    if (draw(8) > 0) entry.push(tag(1, wireOf(f.key)), scalar(f.key, draw, 4));
    if (draw(8) > 0) entry.push(...valued(schema, { ...f, number: 2, group: false }, draw, depth));
    return [Buffer.concat([tag(f.number, 2), block(Buffer.concat(entry))])];
  }
  const wire = f.type.is === "scalar" ? wireOf(f.type.name) : f.type.is === "enum" ? 0 : 2;
  if (f.label === "list" && wire !== 2 && draw(2) === 0) {
    const items = Array.from({ length: draw(5) }, () => plain(f.type, draw));
    return [Buffer.concat([tag(f.number, 2), block(Buffer.concat(items))])];
  }
  return [Buffer.concat(valued(schema, f, draw, depth))];
}

function valued(schema: SchemaModel, f: FieldModel, draw: Draw, depth: number): Uint8Array[] {
  const { type } = f;
  if (type.is === "scalar") return [tag(f.number, wireOf(type.name)), scalar(type.name, draw)];
  if (type.is === "enum") return [tag(f.number, 0), plain(type, draw)];
  const content =
    type.is === "message"
      ? depth > 5
        ? Buffer.alloc(0)
        : randomPayload(schema, draw, type.of, depth + 1)
      : known(type.name, draw, depth);
  if (f.group) return [tag(f.number, 3), content, tag(f.number, 4)];
  return [tag(f.number, 2), block(content)];
}

function plain(type: TypeModel, draw: Draw): Uint8Array {
  if (type.is === "scalar") return scalar(type.name, draw);
  const numbers = type.is === "enum" ? type.numbers : [];
  return varint(BigInt(draw(6) === 0 ? draw(100) : pick(draw, numbers)));
}

function known(name: string, draw: Draw, depth: number): Uint8Array {
  switch (name) {
    case "Timestamp":
    case "Duration": {
      const parts: Uint8Array[] = [];
      const large = draw(10) === 0;
      const seconds = BigInt(draw(2_000_000_000)) - (large ? 300_000_000_000n : 1_000_000_000n);
      if (draw(5) > 0) parts.push(tag(1, 0), varint(seconds));
      if (draw(2) === 0)
        parts.push(tag(2, 0), varint(BigInt(draw(name === "Timestamp" ? 1_000_000_000 : 2))));
      return Buffer.concat(parts);
    }
    case "Struct": {
      const entries = Array.from({ length: depth > 5 ? 0 : draw(3) }, () => {
        const key = Buffer.from(pick(draw, ["a", "b", "__proto__", "é"]));
        return Buffer.concat([
          tag(1, 2),
          block(Buffer.concat([tag(1, 2), block(key), tag(2, 2), block(known("Value", draw, depth + 1))])),
        ]);
      });
      return Buffer.concat(entries);
    }
    case "ListValue":
      return Buffer.concat(
        Array.from({ length: depth > 5 ? 0 : draw(3) }, () =>
          Buffer.concat([tag(1, 2), block(known("Value", draw, depth + 1))]),
        ),
      );
    case "Value":
      switch (draw(7)) {
        case 0:
          return Buffer.concat([tag(1, 0), varint(0n)]);
        case 1:
          return Buffer.concat([tag(2, 1), scalar("double", draw)]);
        case 2:
          return Buffer.concat([tag(3, 2), scalar("string", draw)]);
        case 3:
          return Buffer.concat([tag(4, 0), varint(1n)]);
        case 4:
          return Buffer.concat([tag(5, 2), block(known("Struct", draw, depth + 1))]);
        case 5:
          return Buffer.concat([tag(6, 2), block(known("ListValue", draw, depth + 1))]);
        default:
          return Buffer.alloc(0);
      }
    case "Empty":
      return draw(3) === 0 ? unknownField(draw) : Buffer.alloc(0);
    case "Any":
      return Buffer.concat([tag(1, 2), block(Buffer.from("type/x.Y")), tag(2, 2), scalar("bytes", draw)]);
    case "FieldMask":
      return Buffer.concat([tag(1, 2), scalar("string", draw), tag(1, 2), scalar("string", draw)]);
    default: {
      const of = { Int64Value: "int64", StringValue: "string", BoolValue: "bool", DoubleValue: "double" }[
        name
      ]!;
      return draw(4) === 0 ? Buffer.alloc(0) : Buffer.concat([tag(1, wireOf(of)), scalar(of, draw)]);
    }
  }
}

/** Of a number that no schema here has. */
function unknownField(draw: Draw): Uint8Array {
  const number = 5000 + draw(100);
  switch (draw(5)) {
    case 0:
      return Buffer.concat([tag(number, 0), varint(wide(draw))]);
    case 1:
      return Buffer.concat([tag(number, 1), Buffer.alloc(8, 1)]);
    case 2:
      return Buffer.concat([tag(number, 2), block(Buffer.alloc(draw(5), 255))]);
    case 3:
      return Buffer.concat([tag(number, 3), tag(7, 0), varint(1n), unknownField(draw), tag(number, 4)]);
    default:
      return Buffer.concat([tag(number, 5), Buffer.alloc(4, 1)]);
  }
}

const WIRES: Readonly<Record<string, number>> = {
  double: 1,
  fixed64: 1,
  sfixed64: 1,
  float: 5,
  fixed32: 5,
  sfixed32: 5,
  string: 2,
  bytes: 2,
};
const wireOf = (name: string) => WIRES[name] ?? 0;

const TEXTS = ["", "a", "abc", "é", "日本語", "🙂", "\u0000", "x".repeat(40), "y".repeat(300)];

function wide(draw: Draw): bigint {
  const bits = draw(65);
  const value =
    (BigInt(draw(0x7fffffff)) << 40n) ^ (BigInt(draw(0x7fffffff)) << 20n) ^ BigInt(draw(0x7fffffff));
  return BigInt.asUintN(bits, draw(4) === 0 ? -1n : value);
}

/** `few`: of a handful of values, so that keys come twice. */
function scalar(name: string, draw: Draw, few = 0): Uint8Array {
  if (few > 0 && name !== "string") {
    const fixed = { 5: 4, 1: 8 }[wireOf(name)];
    return fixed === undefined ? varint(BigInt(draw(few))) : Buffer.alloc(fixed, draw(few));
  }
  switch (wireOf(name)) {
    case 0:
      return varint(wide(draw));
    case 1:
    case 5: {
      const bytes = Uint8Array.from({ length: wireOf(name) === 1 ? 8 : 4 }, () => draw(256));
      return bytes;
    }
    default:
      if (name === "bytes") return block(Uint8Array.from({ length: draw(6) }, () => draw(256)));
      return block(Buffer.from(pick(draw, few > 0 ? TEXTS.slice(0, few) : TEXTS)));
  }
}

export function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

export const tag = (number: number, wire: number): Uint8Array =>
  varint((BigInt(number) << 3n) | BigInt(wire));

export function block(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([varint(BigInt(bytes.length)), bytes]);
}
