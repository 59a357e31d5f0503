/**
 * The metadata columns of rows of files. `locator`: which file, its digest, the row. `all`: every column of the one list
 * that a table can have (the value as received is the file itself), so that a table of files can be joined with one of a
 * topic; what files have not is null.
 */
import type { TableSpec } from "../ports/batch-lane.ts";
import { METADATA_COLUMNS, type MetadataType, metadataName } from "../records/metadata-columns.ts";
import { fillRecordIds, type RecordIdBase, recordIdBase } from "../records/record-id.ts";
import { BytesBuilder, builderOf, FixedBuilder } from "../types/column-builder.ts";
import type { ColumnField, ColumnType, TableColumn } from "../types/table-batch.ts";

const TEXT: ColumnType = { id: "utf8" };
const BYTES: ColumnType = { id: "binary" };
const INT32: ColumnType = { id: "int", bits: 32, signed: true };
const INT64: ColumnType = { id: "int", bits: 64, signed: true };
const MILLIS: ColumnType = { id: "timestamp", unit: "ms", zone: "UTC" };
const TWO32 = 0x1_0000_0000;
const UTF8 = new TextEncoder();
const TRANSPORT = UTF8.encode("file");

export const METADATA_TYPES: Readonly<Record<MetadataType, ColumnType>> = {
  string: TEXT,
  bytes: BYTES,
  bytes16: { id: "fixed", bytes: 16 },
  int32: INT32,
  int64: INT64,
  boolean: { id: "bool" },
  timestamp_ms: MILLIS,
  headers: {
    id: "list",
    item: {
      name: "element",
      nullable: false,
      type: {
        id: "struct",
        fields: [
          { name: "key", type: BYTES, nullable: false },
          { name: "value", type: BYTES, nullable: true },
        ],
      },
    },
  },
};

const LOCATOR: readonly string[] = ["source_topic", "source_message_id", "source_offset"];
/** Of upserts: the file's place in the order of files. Not one of the list, since no other source has it. */
const RANK = "source_incarnation";
const RAW_ONLY = "source_value";

export interface FileOrigin {
  readonly name: string;
  readonly sha256: string;
  readonly rank: number | null;
}

interface Origin {
  readonly file: FileOrigin;
  readonly name: Uint8Array;
  readonly digest: Uint8Array;
  readonly rank: number;
}

type Shape = Pick<TableSpec, "metadata" | "prefix" | "ranked">;

export function originFields({ metadata, prefix, ranked }: Shape): readonly ColumnField[] {
  if (metadata === "none") return [];
  const all = METADATA_COLUMNS.filter((c) => c.name !== RAW_ONLY);
  const known = new Set<string>([
    ...LOCATOR,
    "source_transport",
    "record_id",
    "ingest_ts",
    "emit_ts",
    "pipeline",
  ]);
  const wanted = metadata === "all" ? all : all.filter((c) => LOCATOR.includes(c.name));
  const order = (name: string) => LOCATOR.indexOf(name);
  const listed = metadata === "all" ? wanted : wanted.toSorted((a, b) => order(a.name) - order(b.name));
  const fields = listed.map((c) => ({
    name: metadataName(prefix, c),
    type: METADATA_TYPES[c.type],
    nullable: !known.has(c.name),
  }));
  return ranked ? [...fields, { name: `${prefix}${RANK}`, type: INT32, nullable: false }] : fields;
}

export class RowOrigins {
  readonly #fields: readonly ColumnField[];
  readonly #prefix: string;
  readonly #pipeline: Uint8Array;
  readonly #now: () => number;
  readonly #name = new BytesBuilder(TEXT);
  readonly #digest = new BytesBuilder(BYTES);
  readonly #row = new FixedBuilder(INT64);
  readonly #rank: FixedBuilder | null;
  /** Of `all`. */
  readonly #id: FixedBuilder | null;
  readonly #ingested: FixedBuilder | null;
  #origin: Origin | null = null;
  /** The file of all rows so far; null where there are several. */
  #only: Origin | null = null;
  #base: RecordIdBase | null = null;
  #begun = 0;

  constructor(spec: TableSpec, now: () => number) {
    const all = spec.metadata === "all";
    this.#fields = originFields(spec);
    this.#prefix = spec.prefix;
    this.#pipeline = UTF8.encode(spec.pipeline);
    this.#now = now;
    this.#rank = spec.ranked ? new FixedBuilder(INT32) : null;
    this.#id = all ? new FixedBuilder(METADATA_TYPES.bytes16) : null;
    this.#ingested = all ? new FixedBuilder(MILLIS) : null;
  }

  get bytes(): number {
    const { bytes } = this.#row;
    return this.#name.bytes + this.#digest.bytes + bytes + (this.#rank?.bytes ?? 0) + (this.#id?.bytes ?? 0);
  }

  /** Rows that come belong to this file. Its id rests on its content, so it is the same under every name. */
  begin(file: FileOrigin): void {
    const { name, sha256, rank } = file;
    this.#origin = { file, name: UTF8.encode(name), digest: Uint8Array.fromHex(sha256), rank: rank ?? 0 };
    this.#begun = this.#now();
    if (this.#id !== null)
      this.#base = recordIdBase({ transport: "file", cluster: "", topic: sha256, incarnation: 0 });
  }

  add(firstRow: number, rows: number): void {
    const { name, digest, rank } = this.#origin!;
    if (this.#row.rows === 0) this.#only = this.#origin;
    else if (this.#only !== null && !sameFile(this.#only.file, this.#origin!.file)) this.#only = null;
    fill(this.#name, name, rows);
    fill(this.#digest, digest, rows);
    const b = this.#row;
    const start = b.rows;
    b.reserve(rows);
    for (let i = 0, at = 2 * start; i < rows; i++, at += 2) {
      const n = firstRow + i;
      b.i32[at] = n % TWO32;
      b.i32[at + 1] = Math.floor(n / TWO32);
    }
    b.rows += rows;
    if (this.#rank !== null) fillInts(this.#rank, rank, rows);
    if (this.#id !== null && this.#base !== null) {
      this.#id.reserve(rows);
      fillRecordIds(this.#base, 0, b.i32, start, start + rows, this.#id.i32, 4 * start);
      this.#id.rows += rows;
    }
    if (this.#ingested !== null) fillMillis(this.#ingested, this.#begun, rows);
  }

  finish(): TableColumn[] {
    const { rows } = this.#row;
    const one = rows > 0 ? this.#only : null;
    const columns: Readonly<Record<string, () => TableColumn>> = {
      source_topic: () => constant(this.#name, one?.name),
      source_message_id: () => constant(this.#digest, one?.digest),
      source_offset: () => this.#row.finish(),
      [RANK]: () => this.#rank!.finish(),
      record_id: () => this.#id!.finish(),
      ingest_ts: () => this.#ingested!.finish(),
      source_transport: () => sameText(TRANSPORT, rows),
      pipeline: () => sameText(this.#pipeline, rows),
      emit_ts: () => {
        const b = new FixedBuilder(MILLIS);
        fillMillis(b, this.#now(), rows);
        return b.finish();
      },
    };
    return this.#fields.map((f) => columns[f.name.slice(this.#prefix.length)]?.() ?? nulls(f.type, rows));
  }

  reset(): void {
    for (const b of [this.#name, this.#digest, this.#row, this.#rank, this.#id, this.#ingested]) b?.reset();
  }
}

function sameFile(a: FileOrigin, b: FileOrigin): boolean {
  return a.name === b.name && a.sha256 === b.sha256;
}

function sameText(text: Uint8Array, rows: number): TableColumn {
  const b = new BytesBuilder(TEXT);
  fill(b, text, rows);
  return constant(b, rows === 0 ? undefined : text);
}

function constant(b: BytesBuilder, value: Uint8Array | undefined): TableColumn {
  return value === undefined ? b.finish() : { ...b.finish(), constant: value };
}

function nulls(type: ColumnType, rows: number): TableColumn {
  const b = builderOf(type);
  b.reserve(rows);
  for (let i = 0; i < rows; i++) b.pushNull();
  return b.finish();
}

function fillInts(b: FixedBuilder, value: number, rows: number): void {
  b.reserve(rows);
  b.i32.fill(value, b.rows, b.rows + rows);
  b.rows += rows;
}

function fillMillis(b: FixedBuilder, ms: number, rows: number): void {
  b.reserve(rows);
  const low = ms % TWO32;
  const high = Math.floor(ms / TWO32);
  for (let i = 0, at = 2 * b.rows; i < rows; i++, at += 2) {
    b.i32[at] = low;
    b.i32[at + 1] = high;
  }
  b.rows += rows;
}

/** `rows` times the same value: doubled by copies within the buffer. */
function fill(b: BytesBuilder, value: Uint8Array, rows: number): void {
  b.reserve(rows);
  b.reserveBytes(rows * value.length);
  const start = b.bytes;
  const end = start + rows * value.length;
  if (rows > 0) b.data.set(value, start);
  for (let done = start + value.length; done < end; ) {
    const n = Math.min(done - start, end - done);
    b.data.copyWithin(done, start, start + n);
    done += n;
  }
  for (let r = 1, at = start + value.length; r <= rows; r++, at += value.length) b.offsets[b.rows + r] = at;
  b.rows += rows;
}
