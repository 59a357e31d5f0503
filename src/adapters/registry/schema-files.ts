/** Schema files: their format by name, their text within a bound, and the Protobuf files that they import. */
import { open } from "node:fs/promises";
import { isAbsolute, join, normalize, relative, sep } from "node:path";
import { Failure } from "../../core/failure/failure.ts";
import { isArrowIpc } from "../../core/formats/arrow/ipc-schema.ts";
import type { RegistryFormat, SchemaReference } from "../../core/schema/resolver.ts";

export const EXTENSIONS: Readonly<Record<RegistryFormat, readonly string[]>> = {
  avro: [".avsc"],
  protobuf: [".proto"],
  json: [".json"],
};
const MAX_FILE_BYTES = 4 * 1024 * 1024;
const MAX_DEPTH = 32;
const MAX_FILES = 1000;

export function formatOf(name: string): RegistryFormat | null {
  for (const format of ["avro", "protobuf", "json"] as const)
    if (EXTENSIONS[format].some((e) => name.toLowerCase().endsWith(e))) return format;
  return null;
}

/** As `readBytes`, from wherever it is. */
export type ReadSchemaFile = (path: string) => Promise<Uint8Array | null>;

/** Null where there is none. Throws registry.folder for what cannot be read or is no text of the size of a schema. */
export async function readText(path: string, read: ReadSchemaFile = readBytes): Promise<string | null> {
  const bytes = await read(path);
  return bytes === null ? null : textOf(bytes, path);
}

export function textOf(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw unusable(path, "it is no UTF-8");
  }
}

/** The same as bytes; of an Arrow file the first of them, where its schema is. */
export async function readBytes(path: string): Promise<Uint8Array | null> {
  try {
    const file = await open(path);
    try {
      const info = await file.stat();
      if (!info.isFile()) throw unusable(path, "it is no regular file");
      const bytes = new Uint8Array(Math.min(info.size, MAX_FILE_BYTES));
      let held = 0;
      for (let n = -1; n !== 0 && held < bytes.length; held += n)
        n = (await file.read(bytes, held, bytes.length - held)).bytesRead;
      if (info.size > MAX_FILE_BYTES && !isArrowIpc(bytes))
        throw unusable(path, `it has ${info.size} bytes, at most ${MAX_FILE_BYTES} are read`);
      return bytes.subarray(0, held);
    } finally {
      await file.close();
    }
  } catch (e) {
    if (e instanceof Failure) throw e;
    const code = e instanceof Error && "code" in e ? String(e.code) : "";
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw unusable(path, code === "EACCES" ? "we may not read it" : code || String(e));
  }
}

export function unusable(path: string, why: string): Failure {
  return new Failure("registry.folder", `a schema file cannot be used: ${why}`, { at: path });
}

/** The place of `name` in `folder`, null where it would be outside. */
export function inside(folder: string, name: string): string | null {
  if (isAbsolute(name) || name.includes("\0")) return null;
  const path = normalize(join(folder, name));
  const way = relative(normalize(folder), path);
  return way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way) ? null : path;
}

const IMPORT = /(?:^|[;}\n])\s*import\s+(?:public\s+|weak\s+)?(?:"([^"\n]+)"|'([^'\n]+)')\s*;/g;

/** What a .proto file imports, in its order. Those that the folder lacks (google/protobuf/…) are the codec's to know. */
export async function importsOf(
  text: string,
  folder: string,
  read: ReadSchemaFile = readBytes,
): Promise<SchemaReference[]> {
  let files = 0;
  const loaded = async (of: string, above: readonly string[]): Promise<SchemaReference[]> => {
    const plain = of.replaceAll(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, " ");
    const found: SchemaReference[] = [];
    for (const [, a, b] of plain.matchAll(IMPORT)) {
      const name = a ?? b ?? "";
      const path = inside(folder, name);
      if (path === null)
        throw unusable(folder, `${JSON.stringify(name)} is imported from outside of the folder`);
      if (above.includes(name))
        throw unusable(folder, `files import each other: ${[...above, name].join(" -> ")}`);
      if (above.length >= MAX_DEPTH || ++files > MAX_FILES)
        throw unusable(folder, `imports go deeper than ${MAX_DEPTH} or are more than ${MAX_FILES}`);
      const inner = await readText(path, read);
      if (inner !== null)
        found.push({ name, text: inner, references: await loaded(inner, [...above, name]) });
    }
    return found;
  };
  return await loaded(text, []);
}
