/**
 * A schema's text to descriptors: `.proto` source with the files that it imports, or a FileDescriptorSet or
 * FileDescriptorProto of Google's compiler in base64. Features of editions, presence and encodings are worked out by the
 * runtime's registry, which reads descriptors alone.
 */
import { create, createFileRegistry, type DescFile, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  type FileDescriptorSet,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import type { SchemaText } from "../../schema/resolver.ts";
import { DecodeError } from "../record-codec.ts";
import { knownSource, wellKnownFile } from "./known-files.ts";
import { link } from "./source/link.ts";
import { parseProto } from "./source/parse.ts";

export interface ProtobufSchema {
  readonly registry: FileRegistry;
  /** The file whose messages payloads are of. */
  readonly main: DescFile;
}

export function registryOf(writer: SchemaText): ProtobufSchema {
  const packed = base64Of(writer.text);
  return registryOfSet(packed === null ? compileSource(writer) : descriptorSetOf(packed));
}

/** The name that the compiled file goes by in messages: its own, if it came from one, else of its id. */
function mainName({ id, references }: SchemaText): string {
  const file = id.slice(Math.max(id.lastIndexOf("/"), id.lastIndexOf("\\")) + 1);
  const name = /\.proto$/i.test(file) ? file : `${file === "" ? "schema" : file}.proto`;
  return references.some((r) => r.name === name) ? `./${name}` : name;
}

/** Source and the sources of its references, each under the path that it is imported by. */
function compileSource(writer: SchemaText): FileDescriptorSet {
  const texts = new Map<string, string>();
  const gather = (references: SchemaText["references"], depth: number): void => {
    if (depth > MAX_IMPORTS_DEEP) throw refuse(`references are more than ${MAX_IMPORTS_DEEP} deep`);
    for (const r of references) {
      texts.set(r.name, r.text);
      gather(r.references, depth + 1);
    }
  };
  gather(writer.references, 0);
  const files = new Map<string, FileDescriptorProto>();
  const load = (file: FileDescriptorProto): void => {
    files.set(file.name, file);
    for (const name of file.dependency) {
      if (files.has(name)) continue;
      const known = wellKnownFile(name);
      const text = texts.get(name) ?? knownSource(name);
      if (known !== undefined) files.set(name, known);
      else if (text !== undefined) load(fileOf(name, text));
    }
  };
  const name = mainName(writer);
  const main = fileOf(name, writer.text);
  load(main);
  for (const f of files.values()) {
    // A file that is not there matters once a type of it is used; link says so then.
    for (const d of f.dependency.filter((name) => !files.has(name))) forget(f, d);
  }
  for (const f of files.values()) if (wellKnownFile(f.name) === undefined) link(f, files);
  files.delete(name);
  return create(FileDescriptorSetSchema, { file: [...files.values(), main] });
}

const MAX_IMPORTS_DEEP = 64;

/** A reference may be source or base64, as the schema itself. */
function fileOf(name: string, text: string): FileDescriptorProto {
  const packed = base64Of(text);
  if (packed === null) return parseProto(name, text);
  const file = descriptorSetOf(packed).file.at(-1);
  if (file === undefined) throw refuse(`the reference ${name} has no file`);
  return { ...file, name };
}

function forget(file: FileDescriptorProto, dependency: string): void {
  const index = file.dependency.indexOf(dependency);
  file.dependency.splice(index, 1);
  file.publicDependency = file.publicDependency
    .filter((i) => i !== index)
    .map((i) => (i > index ? i - 1 : i));
  file.weakDependency = [];
}

/** A binary FileDescriptorSet; its last file is the one that was compiled. */
export function registryOfSet(set: FileDescriptorSet): ProtobufSchema {
  const files = new Map(set.file.map((f) => [f.name, f]));
  const ordered: FileDescriptorProto[] = [];
  const state = new Map<string, "open" | "done">();
  const add = (name: string, by: string): void => {
    if (state.get(name) === "done") return;
    if (state.get(name) === "open") throw refuse(`${name} imports itself by way of ${by}`);
    const file = files.get(name) ?? wellKnownFile(name);
    if (file === undefined) throw refuse(`${by} imports ${name}, which is not there`);
    state.set(name, "open");
    for (const d of file.dependency) add(d, name);
    state.set(name, "done");
    ordered.push(file);
  };
  for (const f of set.file) add(f.name, f.name);
  const last = set.file.at(-1);
  if (last === undefined) throw refuse("the descriptor set has no files");
  try {
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: ordered }));
    return { registry, main: registry.getFile(last.name)! };
  } catch (e) {
    throw refuse(e instanceof Error ? e.message : String(e));
  }
}

function refuse(reason: string): DecodeError {
  return new DecodeError("decode.schema", "", reason.slice(0, 300));
}

/** Null: not base64, so it is source. */
function base64Of(text: string): Uint8Array | null {
  const plain = text.replace(/\s+/g, "");
  if (plain.length === 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(plain)) return null;
  return Uint8Array.from(atob(plain), (c) => c.charCodeAt(0));
}

/** Field 1 of a set is a message; of a single file it is its name, which begins with no tag of a file's name. */
function descriptorSetOf(bytes: Uint8Array): FileDescriptorSet {
  for (const read of [asSet, asFile]) {
    try {
      const set = read(bytes);
      if (set.file.length > 0 && set.file.every((f) => f.name !== "")) return set;
    } catch {
      // The other of the two, then.
    }
  }
  throw refuse("the base64 text is neither a FileDescriptorSet nor a FileDescriptorProto");
}

const asSet = (bytes: Uint8Array) => fromBinary(FileDescriptorSetSchema, bytes);
const asFile = (bytes: Uint8Array) =>
  create(FileDescriptorSetSchema, { file: [fromBinary(FileDescriptorProtoSchema, bytes)] });
