/** Type names of parsed files as full names: the innermost scope first, as C++ and Google's compiler look names up. */
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FieldDescriptorProto,
  type FileDescriptorProto,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { DecodeError } from "../../record-codec.ts";

type Symbol = "message" | "enum" | "package";

/** Resolves all names of `file` in place; `files`: by name, itself and all that it imports. */
export function link(file: FileDescriptorProto, files: ReadonlyMap<string, FileDescriptorProto>): void {
  const symbols = new Map<string, Symbol>();
  for (const f of visible(file, files)) declare(f, symbols);
  const linker = new Linker(file.name, symbols);
  linker.fields(file.extension, file.package);
  for (const m of file.messageType) linker.message(m, file.package);
  unique(file);
}

/** Imports, and what those import publicly. */
function visible(
  file: FileDescriptorProto,
  files: ReadonlyMap<string, FileDescriptorProto>,
): Set<FileDescriptorProto> {
  const seen = new Set([file]);
  const add = (name: string | undefined): void => {
    const f = files.get(name ?? "");
    if (f === undefined || seen.has(f)) return;
    seen.add(f);
    for (const i of f.publicDependency) add(f.dependency[i]);
  };
  for (const d of file.dependency) add(d);
  return seen;
}

const within = (scope: string, name: string) => (scope === "" ? name : `${scope}.${name}`);

function declare(file: FileDescriptorProto, symbols: Map<string, Symbol>): void {
  const parts = file.package === "" ? [] : file.package.split(".");
  for (let i = 1; i <= parts.length; i++) symbols.set(parts.slice(0, i).join("."), "package");
  const message = (m: DescriptorProto, scope: string): void => {
    const name = within(scope, m.name);
    symbols.set(name, "message");
    for (const e of m.enumType) symbols.set(within(name, e.name), "enum");
    for (const n of m.nestedType) message(n, name);
  };
  for (const e of file.enumType) symbols.set(within(file.package, e.name), "enum");
  for (const m of file.messageType) message(m, file.package);
}

class Linker {
  readonly #file: string;
  readonly #symbols: ReadonlyMap<string, Symbol>;

  constructor(file: string, symbols: ReadonlyMap<string, Symbol>) {
    this.#file = file;
    this.#symbols = symbols;
  }

  message(m: DescriptorProto, scope: string): void {
    const name = within(scope, m.name);
    this.fields(m.field, name);
    this.fields(m.extension, name);
    for (const n of m.nestedType) this.message(n, name);
  }

  fields(fields: readonly FieldDescriptorProto[], scope: string): void {
    for (const f of fields) {
      if (f.extendee !== "") f.extendee = `.${this.#resolve(f.extendee, scope, f.name)}`;
      if (f.typeName === "") continue;
      const name = this.#resolve(f.typeName, scope, f.name);
      f.typeName = `.${name}`;
      if (f.type === Type.GROUP) continue;
      f.type = this.#symbols.get(name) === "enum" ? Type.ENUM : Type.MESSAGE;
    }
  }

  /** The first part is looked for from the inside out; where it is found, the rest must be. */
  #resolve(name: string, scope: string, field: string): string {
    if (name.startsWith(".")) {
      const full = name.slice(1);
      if (this.#isType(full)) return full;
      return this.#missing(name, scope, field);
    }
    const first = name.split(".", 1)[0]!;
    for (let s = scope; ; s = s.slice(0, Math.max(0, s.lastIndexOf(".")))) {
      const full = within(s, name);
      const begins = this.#symbols.get(within(s, first));
      if (name === first ? this.#isType(full) : begins !== undefined && begins !== "enum") {
        if (this.#isType(full)) return full;
        return this.#missing(name, scope, field);
      }
      if (s === "") return this.#missing(name, scope, field);
    }
  }

  #isType(name: string): boolean {
    const symbol = this.#symbols.get(name);
    return symbol === "message" || symbol === "enum";
  }

  #missing(name: string, scope: string, field: string): never {
    const why = `${within(scope, field)} is of type ${name}, which neither the file nor what it imports declares`;
    throw new DecodeError("decode.schema", "", `${this.#file}: ${why}`);
  }
}

/** No two of a name in one scope, no two fields of a number. */
function unique(file: FileDescriptorProto): void {
  const names = new Set<string>();
  const take = (scope: string, name: string, what = "name"): void => {
    const full = `${scope}.${name}`;
    if (names.has(full))
      throw new DecodeError(
        "decode.schema",
        "",
        `${file.name}: the ${what} ${name} stands twice in ${scope}`,
      );
    names.add(full);
  };
  const enums = (of: readonly EnumDescriptorProto[], scope: string): void => {
    for (const e of of) {
      take(scope, e.name);
      if (e.value.length === 0)
        throw new DecodeError("decode.schema", "", `${file.name}: the enum ${e.name} has no values`);
      // The values of an enum are names of what it stands in.
      for (const v of e.value) take(scope, v.name);
    }
  };
  const message = (m: DescriptorProto, scope: string): void => {
    take(scope, m.name);
    const here = `${scope}.${m.name}`;
    for (const f of m.field) {
      take(here, f.name);
      take(`${here} as number`, String(f.number), "field number");
    }
    for (const o of m.oneofDecl) take(here, o.name);
    for (const f of m.extension) take(here, f.name);
    enums(m.enumType, here);
    for (const n of m.nestedType) message(n, here);
  };
  const scope = file.package === "" ? "the file" : file.package;
  enums(file.enumType, scope);
  for (const m of file.messageType) message(m, scope);
  for (const f of file.extension) take(scope, f.name);
}
