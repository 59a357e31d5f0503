/**
 * `.proto` source of every syntax to a FileDescriptorProto as Google's compiler makes it, types still named as they are
 * written (link.ts resolves them). Left out: services, options that the format does not have itself, comments.
 */
import { create } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  DescriptorProto_ExtensionRangeSchema,
  DescriptorProto_ReservedRangeSchema,
  DescriptorProtoSchema,
  Edition,
  type EnumDescriptorProto,
  EnumDescriptorProto_EnumReservedRangeSchema,
  EnumDescriptorProtoSchema,
  EnumOptionsSchema,
  EnumValueDescriptorProtoSchema,
  EnumValueOptionsSchema,
  type FieldDescriptorProto,
  FieldDescriptorProtoSchema,
  FieldOptionsSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileOptionsSchema,
  FieldDescriptorProto_Label as Label,
  MessageOptionsSchema,
  OneofDescriptorProtoSchema,
  OneofOptionsSchema,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { optionsOf, type RawOption } from "./options.ts";
import { Tokens } from "./tokens.ts";

const SCALARS: Readonly<Record<string, Type>> = {
  double: Type.DOUBLE,
  float: Type.FLOAT,
  int64: Type.INT64,
  uint64: Type.UINT64,
  int32: Type.INT32,
  fixed64: Type.FIXED64,
  fixed32: Type.FIXED32,
  bool: Type.BOOL,
  string: Type.STRING,
  bytes: Type.BYTES,
  uint32: Type.UINT32,
  sfixed32: Type.SFIXED32,
  sfixed64: Type.SFIXED64,
  sint32: Type.SINT32,
  sint64: Type.SINT64,
};

const LABELS: Readonly<Record<string, Label>> = {
  optional: Label.OPTIONAL,
  required: Label.REQUIRED,
  repeated: Label.REPEATED,
};

const NO_KEYS = new Set<Type>([Type.DOUBLE, Type.FLOAT, Type.BYTES]);
const MAX_NUMBER = 536_870_911;
const MAX_NESTED = 32;

export function parseProto(file: string, text: string): FileDescriptorProto {
  return new Parser(file, text).file();
}

class Parser {
  readonly #name: string;
  readonly #t: Tokens;
  #edition: Edition = Edition.EDITION_PROTO2;

  constructor(file: string, text: string) {
    this.#name = file;
    this.#t = new Tokens(file, text);
  }

  #fail = (at: number, reason: string): never => this.#t.fail(at, reason);

  file(): FileDescriptorProto {
    const file = create(FileDescriptorProtoSchema, { name: this.#name });
    const options: RawOption[] = [];
    this.#syntax(file);
    while (!this.#t.isEnd) this.#topLevel(file, options);
    const set = optionsOf(FileOptionsSchema, options, this.#fail);
    if (set !== undefined) file.options = set;
    return file;
  }

  #syntax(file: FileDescriptorProto): void {
    const t: Tokens = this.#t;
    const at = t.at;
    if (t.accept("syntax")) {
      t.expect("=");
      const syntax = t.string();
      if (syntax !== "proto2" && syntax !== "proto3")
        t.fail(at, `there is no syntax ${JSON.stringify(syntax)}`);
      if (syntax === "proto3") file.syntax = syntax;
      this.#edition = syntax === "proto3" ? Edition.EDITION_PROTO3 : Edition.EDITION_PROTO2;
      t.expect(";");
    } else if (t.accept("edition")) {
      t.expect("=");
      const edition = t.string();
      const known = { "2023": Edition.EDITION_2023, "2024": Edition.EDITION_2024 }[edition];
      if (known === undefined)
        t.fail(at, `the edition ${JSON.stringify(edition)} is none that is known here`);
      this.#edition = known;
      file.syntax = "editions";
      file.edition = known;
      t.expect(";");
    }
  }

  #topLevel(file: FileDescriptorProto, options: RawOption[]): void {
    const t: Tokens = this.#t;
    if (t.accept(";")) return;
    if (t.accept("package")) {
      file.package = t.dotted();
      t.expect(";");
    } else if (t.accept("import")) this.#import(file);
    else if (t.accept("option")) options.push(t.optionStatement());
    else if (t.accept("service")) {
      t.word();
      t.skipBraces();
    } else if (t.accept("extend")) this.#extend(file.extension, file.messageType, 0);
    else {
      t.acceptVisibility();
      if (t.accept("message")) file.messageType.push(this.#message(0));
      else if (t.accept("enum")) file.enumType.push(this.#enum());
      else t.unexpected("a message, an enum, an option or an import");
    }
  }

  #import(file: FileDescriptorProto): void {
    const t: Tokens = this.#t;
    const index = file.dependency.length;
    // Only for options, which are left out.
    const unused = t.accept("option");
    if (t.accept("public")) file.publicDependency.push(index);
    else if (t.accept("weak")) file.weakDependency.push(index);
    const path = t.string();
    if (!unused) file.dependency.push(path);
    t.expect(";");
  }

  #message(depth: number): DescriptorProto {
    const message = create(DescriptorProtoSchema, { name: this.#t.word() });
    this.#body(message, depth);
    return message;
  }

  #body(message: DescriptorProto, depth: number): void {
    const t: Tokens = this.#t;
    if (depth > MAX_NESTED) t.fail(t.at, `messages are declared more than ${MAX_NESTED} deep`);
    const options: RawOption[] = [];
    t.expect("{");
    while (!t.accept("}")) this.#member(message, options, depth);
    const set = optionsOf(MessageOptionsSchema, options, this.#fail);
    if (set !== undefined) message.options = set;
    if (message.options?.messageSetWireFormat === true) {
      // Numbers of a message set are type ids of 31 bits.
      for (const r of message.extensionRange) if (r.end === MAX_NUMBER + 1) r.end = 0x7fffffff;
    }
    if (this.#edition === Edition.EDITION_PROTO3) syntheticOneofs(message);
  }

  #member(message: DescriptorProto, options: RawOption[], depth: number): void {
    const t: Tokens = this.#t;
    if (t.accept(";")) return;
    if (t.isDeclaration("message")) message.nestedType.push(this.#message(depth + 1));
    else if (t.isDeclaration("enum")) message.enumType.push(this.#enum());
    else if (t.accept("option")) options.push(t.optionStatement());
    else if (t.accept("extend")) this.#extend(message.extension, message.nestedType, depth);
    else if (t.accept("oneof")) this.#oneof(message, depth);
    else if (t.accept("extensions")) {
      for (const [start, end] of t.ranges(MAX_NUMBER))
        message.extensionRange.push(create(DescriptorProto_ExtensionRangeSchema, { start, end: end + 1 }));
      t.options();
      t.expect(";");
    } else if (t.accept("reserved")) {
      if (t.isNumber) {
        for (const [start, end] of t.ranges(MAX_NUMBER))
          message.reservedRange.push(create(DescriptorProto_ReservedRangeSchema, { start, end: end + 1 }));
      } else message.reservedName.push(...t.names());
      t.expect(";");
    } else message.field.push(this.#field(message.nestedType, -1, depth));
  }

  #oneof(message: DescriptorProto, depth: number): void {
    const t: Tokens = this.#t;
    const oneof = create(OneofDescriptorProtoSchema, { name: t.word() });
    const options: RawOption[] = [];
    const index = message.oneofDecl.push(oneof) - 1;
    t.expect("{");
    while (!t.accept("}")) {
      if (t.accept(";")) continue;
      if (t.accept("option")) options.push(t.optionStatement());
      else message.field.push(this.#field(message.nestedType, index, depth));
    }
    const set = optionsOf(OneofOptionsSchema, options, this.#fail);
    if (set !== undefined) oneof.options = set;
  }

  #extend(fields: FieldDescriptorProto[], nested: DescriptorProto[], depth: number): void {
    const t: Tokens = this.#t;
    const extendee = t.dotted();
    t.expect("{");
    while (!t.accept("}")) {
      if (t.accept(";")) continue;
      const field = this.#field(nested, -1, depth);
      field.extendee = extendee;
      fields.push(field);
    }
  }

  #field(nested: DescriptorProto[], oneof: number, depth: number): FieldDescriptorProto {
    const t: Tokens = this.#t;
    const at = t.at;
    const label = t.isLabel ? LABELS[t.word()] : undefined;
    const field = create(FieldDescriptorProtoSchema, { label: label ?? Label.OPTIONAL });
    if (oneof >= 0) field.oneofIndex = oneof;
    if (label === Label.OPTIONAL && this.#edition === Edition.EDITION_PROTO3) field.proto3Optional = true;
    if (label === undefined && oneof < 0 && this.#edition === Edition.EDITION_PROTO2 && !t.is("map"))
      t.fail(at, "in proto2 a field begins with optional, required or repeated");
    if (t.accept("group")) {
      this.#group(field, nested, depth);
      return field;
    }
    const map = t.is("map") && t.peekIs("<");
    if (map) this.#map(field, nested);
    else this.#type(field);
    const nameAt = t.at;
    field.name = t.word();
    this.#numbered(field);
    field.jsonName = jsonName(field.name);
    this.#fieldOptions(field);
    t.expect(";");
    if (map) this.#mapEntry(field, nested, nameAt);
    return field;
  }

  #numbered(field: FieldDescriptorProto): void {
    const t: Tokens = this.#t;
    t.expect("=");
    const at = t.at;
    field.number = t.integer();
    if (field.number < 1 || field.number > MAX_NUMBER)
      t.fail(at, `the field number ${field.number} is not from 1 to ${MAX_NUMBER}`);
    if (field.number >= 19_000 && field.number <= 19_999)
      t.fail(at, `the field number ${field.number} is one of those that the format keeps for itself`);
  }

  #group(field: FieldDescriptorProto, nested: DescriptorProto[], depth: number): void {
    const name = this.#t.word();
    field.type = Type.GROUP;
    field.name = name.toLowerCase();
    field.jsonName = jsonName(field.name);
    field.typeName = name;
    this.#numbered(field);
    this.#fieldOptions(field);
    const message = create(DescriptorProtoSchema, { name });
    this.#body(message, depth + 1);
    nested.push(message);
  }

  #type(field: FieldDescriptorProto): void {
    const name = this.#t.typeName();
    const scalar = Object.hasOwn(SCALARS, name) ? SCALARS[name] : undefined;
    if (scalar === undefined) field.typeName = name;
    else field.type = scalar;
  }

  /** The entry's fields wait in the nested message until the field's name is known. */
  #map(field: FieldDescriptorProto, nested: DescriptorProto[]): void {
    const t: Tokens = this.#t;
    t.word();
    t.expect("<");
    const at = t.at;
    const entry = (name: string, number: number) =>
      create(FieldDescriptorProtoSchema, { name, number, jsonName: name, label: Label.OPTIONAL });
    const key = entry("key", 1);
    const value = entry("value", 2);
    this.#type(key);
    if (key.typeName !== "" || NO_KEYS.has(key.type))
      t.fail(at, "the key of a map is an integer, a bool or a string");
    t.expect(",");
    this.#type(value);
    t.expect(">");
    field.label = Label.REPEATED;
    nested.push(create(DescriptorProtoSchema, { field: [key, value], options: { mapEntry: true } }));
  }

  #mapEntry(field: FieldDescriptorProto, nested: DescriptorProto[], at: number): void {
    const name = `${camel(field.name)}Entry`;
    if (nested.some((m) => m.name === name)) this.#t.fail(at, `${name} is declared twice`);
    nested.at(-1)!.name = name;
    field.type = Type.MESSAGE;
    field.typeName = name;
  }

  #fieldOptions(field: FieldDescriptorProto): void {
    const own: RawOption[] = [];
    for (const o of this.#t.options()) {
      const [name] = o.name;
      if (o.name.length > 1 || (name !== "default" && name !== "json_name")) own.push(o);
      else if (o.value.is === "group") this.#t.fail(o.at, `${name} takes one value`);
      else if (name === "json_name") field.jsonName = o.value.text;
      else field.defaultValue = defaultText(field, o.value.text);
    }
    const set = optionsOf(FieldOptionsSchema, own, this.#fail);
    if (set !== undefined) field.options = set;
  }

  #enum(): EnumDescriptorProto {
    const t: Tokens = this.#t;
    const proto = create(EnumDescriptorProtoSchema, { name: t.word() });
    const options: RawOption[] = [];
    t.expect("{");
    while (!t.accept("}")) {
      if (t.accept(";")) continue;
      if (t.accept("option")) options.push(t.optionStatement());
      else if (t.accept("reserved")) {
        if (t.isNumber) {
          for (const [start, end] of t.ranges(0x7fffffff))
            proto.reservedRange.push(create(EnumDescriptorProto_EnumReservedRangeSchema, { start, end }));
        } else proto.reservedName.push(...t.names());
        t.expect(";");
      } else {
        const value = create(EnumValueDescriptorProtoSchema, { name: t.word() });
        t.expect("=");
        value.number = t.integer();
        const set = optionsOf(EnumValueOptionsSchema, t.options(), this.#fail);
        if (set !== undefined) value.options = set;
        t.expect(";");
        proto.value.push(value);
      }
    }
    const set = optionsOf(EnumOptionsSchema, options, this.#fail);
    if (set !== undefined) proto.options = set;
    return proto;
  }
}

/** proto3's `optional` is a oneof of one, behind all others. */
function syntheticOneofs(message: DescriptorProto): void {
  const taken = new Set([...message.oneofDecl.map((o) => o.name), ...message.field.map((f) => f.name)]);
  for (const f of message.field) {
    if (!f.proto3Optional) continue;
    let name = f.name.startsWith("_") ? f.name : `_${f.name}`;
    while (taken.has(name)) name = `X${name}`;
    taken.add(name);
    f.oneofIndex = message.oneofDecl.push(create(OneofDescriptorProtoSchema, { name })) - 1;
  }
}

/** foo_bar -> FooBar */
function camel(name: string): string {
  return name.replace(/(?:^|_)([a-z0-9A-Z]?)/g, (_, c: string) => c.toUpperCase());
}

/** foo_bar -> fooBar */
function jsonName(name: string): string {
  return name.replace(/_+(.?)/g, (_, c: string) => c.toUpperCase());
}

function defaultText(field: FieldDescriptorProto, text: string): string {
  // Of a string its characters, of bytes the escapes that descriptors have.
  if (field.type === Type.STRING)
    return new TextDecoder().decode(Uint8Array.from(text, (c) => c.charCodeAt(0)));
  if (field.type !== Type.BYTES) return text;
  return [...text].map(escaped).join("");
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  '"': '\\"',
  "'": "\\'",
  "\\": "\\\\",
};

function escaped(c: string): string {
  const code = c.charCodeAt(0);
  return ESCAPES[c] ?? (code < 0x20 || code >= 0x7f ? `\\${code.toString(8).padStart(3, "0")}` : c);
}
