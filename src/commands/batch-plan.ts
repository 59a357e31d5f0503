/** What a batch job will read and how: files, their layouts, and the one schema of all. Looks at the begin of files only. */
import { isUtf8 } from "node:buffer";
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isFetched, type Scratch } from "../adapters/files/fetch.ts";
import { openLocalFile } from "../adapters/files/file-bytes.ts";
import {
  compressionOf,
  type FileFormat,
  formatOf,
  type LocalFile,
  localFiles,
} from "../adapters/files/locate.ts";
import { encodingOf, rawHead, type Sample, sampleOf } from "../adapters/files/sample.ts";
import { schemaOfFile } from "../adapters/registry/folder.ts";
import { LF } from "../core/codecs/csv/dialect.ts";
import { type Cells, columnNames, sampleRecords, sniffDialect } from "../core/codecs/csv/sniff.ts";
import { inferType } from "../core/codecs/infer.ts";
import { inferFields, parseLines } from "../core/codecs/json/infer.ts";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import { asFailure, Failure } from "../core/failure/failure.ts";
import { avroDecoder } from "../core/pipeline/avro-rows.ts";
import { bindColumns } from "../core/pipeline/stored-rows.ts";
import type { Compression, FileLayout, FileWork, TextEncoding } from "../core/ports/batch-lane.ts";
import type { OpenFile } from "../core/ports/file-bytes.ts";
import { checkSchema, parseSchemaDocument } from "../core/types/schema-file.ts";
import { sourceOf, type TableField, type TableSchema } from "../core/types/table-schema.ts";
import type { BatchConfig } from "./batch-config.ts";
import type { BatchInputs } from "./batch-inputs.ts";
import { planAvro, planParquet, type StoredPlan } from "./batch-plan-stored.ts";
import { SharedTexts } from "./shared-texts.ts";

export interface BatchPlan {
  readonly works: readonly FileWork[];
  readonly schema: TableSchema;
  /** A file, or "inferred from N rows". */
  readonly schemaFrom: string;
}

/** First look at a file; grown as long as the rows asked for are not in it. */
const SAMPLE_BYTES = 1024 * 1024;
const MAX_SAMPLE_BYTES = 256 * 1024 * 1024;
const LAYOUT_ROWS = 1000;

interface Opened {
  readonly file: LocalFile;
  readonly format: FileFormat;
  readonly compression: Compression;
  readonly encoding: TextEncoding;
  readonly head: Uint8Array;
  /** Null: a text, whose columns are looked for. */
  readonly stored: StoredPlan | null;
  readonly openFile: OpenFile;
}

export async function planBatch(
  config: BatchConfig,
  files: readonly LocalFile[],
  openFile: OpenFile = openLocalFile,
): Promise<BatchPlan> {
  const { source, sink } = config;
  const pinned = await pinnedSchema(source.schema, files);
  const opened: Opened[] = [];
  const texts = new SharedTexts();
  for (const file of files) opened.push(await open(file, source, pinned?.reader ?? null, openFile, texts));
  const layouts: FileLayout[] = [];
  for (const o of opened) layouts.push(await layoutOf(o, source, pinned?.schema ?? null));
  const { schema, from } = pinned ?? (await inferSchema(opened, layouts, source));
  checkSchema(schema, sink.metadata_prefix, from);
  if (sink.type === "postgres") checkKey(sink.key ?? [], schema, from);
  const works = opened.map((o, i): FileWork => {
    checkColumns(layouts[i]!, schema, o.file.name);
    if (o.stored !== null) bindColumns(o.stored.columns, schema, o.file.name);
    const { name, path, revision, bytes } = o.file;
    const { compression, encoding } = o;
    return { file: i, name, path, revision, bytes, compression, encoding, layout: layouts[i]! };
  });
  return { works, schema, schemaFrom: from };
}

function checkKey(key: readonly string[], { fields }: TableSchema, from: string): void {
  const missing = key.filter((name) => !fields.some((f) => f.name === name));
  if (missing.length === 0) return;
  throw new Failure("config.conflict", `the key names ${missing.join(", ")}, which the schema has not`, {
    at: from,
    hint: `Columns are ${fields.map((f) => f.name).join(", ")}`,
  });
}

/** Local files behind the inputs; a file that two inputs name is read once. */
export async function locate(
  inputs: readonly string[],
  scratch: Scratch,
  buckets: Pick<BatchInputs, "objects">,
): Promise<LocalFile[]> {
  const seen = new Set<string>();
  const files: LocalFile[] = [];
  for (const input of inputs) {
    const found = isFetched(input)
      ? [await scratch.fetch(input, Bun.stdin.stream())]
      : isBucketUrl(input)
        ? await buckets.objects(input)
        : localFiles(input);
    for (const f of found) {
      if (seen.has(f.path)) continue;
      seen.add(f.path);
      files.push(f);
    }
  }
  return files;
}

type Source = BatchConfig["source"];

/** `reader`: an Avro schema that is the table's. */
async function open(
  file: LocalFile,
  source: Source,
  reader: string | null,
  openFile: OpenFile,
  texts: SharedTexts,
): Promise<Opened> {
  const format = formatOf(file.name, source);
  const packed = { file, format, openFile, encoding: "utf-8", head: new Uint8Array(0) } as const;
  if (format === "parquet")
    return { ...packed, compression: "none", stored: await planParquet(file, openFile) };
  const compression = await compressionOf(file, source, openFile);
  if (format === "avro")
    return { ...packed, compression, stored: await planAvro(file, compression, reader, openFile, texts) };
  const head = await rawHead(file, compression, openFile);
  return { file, format, compression, head, encoding: encodingOf(head, source), stored: null, openFile };
}

function sample(
  { file, compression, encoding, openFile }: Opened,
  layout: FileLayout,
  bytes: number,
): Promise<Sample> {
  return sampleOf({ ...file, compression, layout }, encoding, bytes, openFile);
}

/** A document that begins with [ is one array; else it is taken for an object a line. */
function isArray({ format, head }: Opened): boolean {
  if (format !== "json") return false;
  const first = head.find((c) => c > 32 && c < 128);
  return first === 91;
}

const PLAIN: FileLayout = { format: "ndjson", array: false };

async function layoutOf(o: Opened, source: Source, pinned: TableSchema | null): Promise<FileLayout> {
  if (o.stored !== null) return o.stored.layout;
  if (o.format !== "csv") return { format: "ndjson", array: isArray(o) };
  const { bytes, whole } = await sample(o, PLAIN, SAMPLE_BYTES);
  const { csv } = source;
  const name = o.file.name;
  const tabbed = /\.(tsv|tab)(\.|$)/i.test(name) ? "\t" : undefined;
  const byte = (text: string | undefined): number | null =>
    text === undefined || text === "" ? null : text.charCodeAt(0);
  const dialect = sniffDialect(
    bytes,
    whole,
    {
      delimiter: byte(csv.delimiter ?? tabbed),
      quote: byte(csv.quote),
      escape: byte(csv.escape),
      nulls: csv.nulls,
    },
    name,
  );
  const records = sampleRecords(bytes, dialect, LAYOUT_ROWS, whole);
  if (records.length === 0 && pinned !== null && csv.header !== "yes")
    return { format: "csv", dialect, columns: pinned.fields.map(sourceOf), header: false };
  const { names, header } = columnNames(records, pinnedHeader(csv.header, records[0], pinned), name);
  const columns = header || pinned === null ? names : pinned.fields.map(sourceOf);
  return { format: "csv", dialect, columns, header };
}

/** A schema that names the first record's fields settles what `auto` would ask. */
function pinnedHeader(header: "auto" | "yes" | "no", first: Cells | undefined, pinned: TableSchema | null) {
  if (header !== "auto" || pinned === null || first === undefined) return header;
  const known = new Set(pinned.fields.map(sourceOf));
  return first.every((c) => c !== null && known.has(c)) ? "yes" : "auto";
}

// ---- schema

interface Pinned {
  readonly schema: TableSchema;
  readonly from: string;
  /** The schema as Avro's JSON where it is one: Avro files are resolved to it. */
  readonly reader?: string;
}

async function pinnedSchema(given: string | undefined, files: readonly LocalFile[]): Promise<Pinned | null> {
  const [first] = files;
  if (given !== undefined) return { ...(await readSchema(given, first?.name ?? "")), from: given };
  if (first === undefined) return null;
  const beside = [`${first.path}.schema.json`, join(dirname(first.path), "_schema.json")].find((p) =>
    existsSync(p),
  );
  return beside === undefined ? null : { ...(await readSchema(beside, first.name)), from: beside };
}

/** `first`: a file by whose name the object of a contract is chosen; empty: of no file. Throws files.schema. */
export async function readSchema(path: string, first: string): Promise<Omit<Pinned, "from">> {
  const wanted = { name: null, topic: basename(first).split(".")[0] ?? "", how: ", the first file's name" };
  const text = await schemaOfFile(path, "json", wanted).catch((e) => {
    const { code, message, at } = asFailure(e);
    throw code === "registry.folder" ? new Failure("files.schema", message, { at: at ?? path }) : e;
  });
  if (text.table !== undefined) return { schema: { fields: text.table.fields } };
  if (!path.toLowerCase().endsWith(".avsc")) return { schema: parseSchemaDocument(text.text, path) };
  const { fields } = avroDecoder({ schema: text.text, reader: null }, isUtf8, path);
  return { schema: { fields }, reader: text.text };
}

async function inferSchema(
  opened: readonly Opened[],
  layouts: readonly FileLayout[],
  source: Source,
): Promise<Pinned> {
  const [first] = layouts;
  const columns = opened[0]?.stored?.columns;
  if (columns !== undefined)
    return { schema: { fields: columns.map((c) => c.field) }, from: "of the first file" };
  return first?.format === "csv"
    ? inferCsv(first.columns, opened, layouts, source)
    : inferJson(opened, layouts, source);
}

/** The first file says which columns there are: a later one with others is a question, not a wider table. */
async function inferCsv(
  names: readonly string[],
  opened: readonly Opened[],
  layouts: readonly FileLayout[],
  source: Source,
): Promise<Pinned> {
  const columns = new Map(names.map((name) => [name, [] as (string | null)[]]));
  let left = source.infer_rows;
  for (const [i, o] of opened.entries()) {
    const layout = layouts[i]!;
    if (left <= 0) break;
    if (layout.format !== "csv") continue;
    const rows = await csvRows(o, layout, left);
    left -= rows.length;
    for (const [c, name] of layout.columns.entries()) {
      const cells = columns.get(name);
      for (const r of rows) if (r.length === layout.columns.length) cells?.push(r[c] ?? null);
    }
  }
  const fields = [...columns].map(
    ([name, cells]): TableField => ({ name, type: inferType(cells), nullable: true }),
  );
  return { schema: { fields }, from: `inferred from ${source.infer_rows - left} rows` };
}

async function inferJson(
  opened: readonly Opened[],
  layouts: readonly FileLayout[],
  source: Source,
): Promise<Pinned> {
  const rows: Record<string, unknown>[] = [];
  for (const [i, o] of opened.entries()) {
    const left = source.infer_rows - rows.length;
    if (left <= 0) break;
    if (layouts[i]?.format === "ndjson") rows.push(...(await jsonRows(o, layouts[i], left)));
  }
  const fields = inferFields(rows);
  if (fields.length === 0)
    throw new Failure("files.schema", "no object with a key is among the first rows", {
      at: opened[0]?.file.name ?? "",
      hint: "Give the columns with --schema",
    });
  return { schema: { fields }, from: `inferred from ${rows.length} rows` };
}

async function jsonRows(o: Opened, layout: FileLayout, most: number): Promise<Record<string, unknown>[]> {
  let rows: Record<string, unknown>[] = [];
  for await (const { bytes } of samples(o, layout, most, LF)) {
    rows = parseLines(new TextDecoder().decode(bytes), most);
    if (rows.length >= most) break;
  }
  return rows;
}

async function csvRows(
  o: Opened,
  layout: Extract<FileLayout, { format: "csv" }>,
  most: number,
): Promise<Cells[]> {
  let records: Cells[] = [];
  for await (const { bytes, whole } of samples(o, PLAIN, most, layout.dialect.newline)) {
    records = sampleRecords(bytes, layout.dialect, most + 1, whole);
    if (records.length > most) break;
  }
  return records.slice(layout.header ? 1 : 0, most + (layout.header ? 1 : 0));
}

/**
 * Begins of a file, each larger than the one before, up to its end or what is looked at. One with too few line ends
 * is passed over: it can't hold the rows, and counting costs nothing beside reading values.
 */
async function* samples(
  o: Opened,
  layout: FileLayout,
  most: number,
  newline: number,
): AsyncGenerator<Sample> {
  for (let bytes = SAMPLE_BYTES; ; ) {
    const s = await sample(o, layout, bytes);
    const last = s.whole || bytes >= MAX_SAMPLE_BYTES;
    const lines = lineEnds(s.bytes, newline);
    if (last || lines > most) yield s;
    if (last) return;
    const wanted = lines > most ? 4 : (1.25 * most) / Math.max(1, lines);
    bytes = Math.min(MAX_SAMPLE_BYTES, Math.ceil(bytes * Math.min(8, Math.max(1.5, wanted))));
  }
}

function lineEnds(bytes: Uint8Array, newline: number): number {
  let lines = 0;
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) lines++;
  return lines;
}

/** Every column of a file must have its place: to leave one out would lose it without a word. */
function checkColumns(layout: FileLayout, schema: TableSchema, at: string): void {
  if (layout.format !== "csv") return;
  const known = new Set(schema.fields.map(sourceOf));
  const stray = layout.columns.find((c) => !known.has(c));
  if (stray !== undefined)
    throw new Failure("files.unknown_column", `the column ${JSON.stringify(stray)} is not in the schema`, {
      at,
      hint: "Add it to the schema, or read this file by itself",
    });
  const missing = schema.fields.find((f) => !f.nullable && !layout.columns.includes(sourceOf(f)));
  if (missing !== undefined)
    throw new Failure("files.schema", `the required column ${JSON.stringify(sourceOf(missing))} is missing`, {
      at,
    });
  const nested = schema.fields.find((f) => ["struct", "list", "map", "null", "interval"].includes(f.type.id));
  if (nested !== undefined)
    throw new Failure(
      "files.schema",
      `the column ${JSON.stringify(nested.name)} has a type that CSV cannot hold`,
      {
        at,
        hint: "Use string or json",
      },
    );
}
