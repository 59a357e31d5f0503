/**
 * Blocks of an Avro object container file to rows of a lane's table. A block is unpacked and decoded at a time: straight
 * into the table's columns where they are the file's, else by columns that are cast.
 */
import { type AvroDecoder, compileAvro } from "../codecs/avro/compile.ts";
import {
  type ContainerBlock,
  type ContainerCodecs,
  readBlock,
  tooLarge,
  unpackBlock,
} from "../codecs/avro/container.ts";
import { DecodeError, type DecodeFault } from "../codecs/record-codec.ts";
import type { Piece, PieceDecoder, RowTarget } from "../codecs/rows.ts";
import { Output } from "../compression/output.ts";
import { asFailure, Failure } from "../failure/failure.ts";
import type { AvroLayout, FileWork } from "../ports/batch-lane.ts";
import { sameType } from "../types/cast-column.ts";
import { builderOf, type ColumnBuilder } from "../types/column-builder.ts";
import type { ColumnField } from "../types/table-batch.ts";
import { sourceOf, type TableField, type TableSchema } from "../types/table-schema.ts";
import { plainColumn, StoredRows } from "./stored-rows.ts";

export interface AvroRowsOptions {
  readonly codecs: ContainerCodecs;
  readonly decoders: AvroDecoders;
  readonly isUtf8: (bytes: Uint8Array) => boolean;
  /** Of a block, stored or unpacked. */
  readonly maxBlockBytes: number;
}

/** Throws files.schema for a writer's schema that is none, or does not go into the reader's. */
export function avroDecoder(
  { schema, reader }: Pick<AvroLayout, "schema" | "reader">,
  isUtf8: AvroRowsOptions["isUtf8"],
  at: string,
): AvroDecoder {
  const source = (text: string) => ({ text, references: [] });
  try {
    const schemas = { writer: source(schema), ...(reader === null ? {} : { reader: source(reader) }) };
    return compileAvro(schemas, { isUtf8 });
  } catch (e) {
    if (!(e instanceof DecodeError)) throw e;
    const place = e.path === "" ? "" : ` at ${e.path}`;
    throw new Failure("files.schema", `its Avro schema cannot be used${place}: ${e.message}`, { at });
  }
}

/** Files of a job mostly have one schema: code is made for it once, and stays warm. */
export class AvroDecoders {
  readonly #isUtf8: AvroRowsOptions["isUtf8"];
  #last: { readonly key: string; readonly decoder: AvroDecoder } | null = null;

  constructor(isUtf8: AvroRowsOptions["isUtf8"]) {
    this.#isUtf8 = isUtf8;
  }

  of(layout: AvroLayout, at: string): AvroDecoder {
    const key = `${layout.schema}\n${layout.reader}`;
    if (this.#last?.key !== key) this.#last = { key, decoder: avroDecoder(layout, this.#isUtf8, at) };
    return this.#last.decoder;
  }
}

export class AvroRows implements PieceDecoder {
  readonly #work: Pick<FileWork, "name">;
  readonly #layout: AvroLayout;
  readonly #o: AvroRowsOptions;
  readonly #decoder: AvroDecoder;
  readonly #isSame: boolean;
  readonly #rows: StoredRows;
  readonly #columns: readonly ColumnBuilder[];
  readonly #unpacked = new Output();

  constructor(
    work: Pick<FileWork, "name">,
    layout: AvroLayout,
    schema: TableSchema,
    options: AvroRowsOptions,
  ) {
    this.#work = work;
    this.#layout = layout;
    this.#o = options;
    const { isUtf8, decoders } = options;
    this.#decoder = decoders.of(layout, work.name);
    const { fields } = this.#decoder;
    this.#isSame = takes(schema.fields, fields);
    this.#rows = new StoredRows(fields.map(plainColumn), schema, { at: work.name, isUtf8 });
    this.#columns = fields.map((f) => builderOf(f.type));
  }

  decode({ bytes, from, end, firstRow, skip }: Piece, target: RowTarget, batchDone: () => void): number {
    let row = firstRow;
    for (let at = from; at < end; ) {
      const block = readBlock(bytes, at, end, this.#layout, this.#o.maxBlockBytes);
      if (block === null) throw new Failure("internal.bug", "a piece ends within a block");
      const next = row + block.count;
      const covered = skip.filter((r) => r.from < next && r.next > row);
      if (!covered.some((r) => r.from <= row && r.next >= next)) {
        this.#block(bytes, block, row, covered, target);
        batchDone();
      }
      row = next;
      at = block.next;
    }
    return row - firstRow;
  }

  #block(
    bytes: Uint8Array,
    block: ContainerBlock,
    firstRow: number,
    skip: Piece["skip"],
    target: RowTarget,
  ): void {
    const out = this.#unpacked;
    const isDirect = this.#isSame && skip.length === 0;
    const columns = isDirect ? target.columns : this.#columns;
    const faults: DecodeFault[] = [];
    try {
      out.begin(0, this.#o.maxBlockBytes);
      unpackBlock(bytes, block, this.#layout.codec, this.#o.codecs, out);
      if (!isDirect) for (const c of columns) c.reset();
      this.#decoder.block(out.bytes, 0, out.end, block.count, columns, (f) => faults.push(f));
    } catch (e) {
      throw this.#damaged(asFailure(e), firstRow, block.count);
    }
    const refused = faults.map((f) => firstRow + f.row);
    for (const [i, f] of faults.entries()) {
      const row = refused[i]!;
      if (!skip.some((r) => row >= r.from && row < r.next)) this.#refuse(f, row, target);
    }
    const rows = block.count - faults.length;
    if (isDirect) addRuns(target, firstRow, block.count, refused);
    else {
      const finished = columns.map((c) => c.finish());
      this.#rows.add(
        { fields: this.#decoder.fields, columns: finished, rows },
        firstRow,
        skip,
        target,
        refused,
      );
    }
  }

  #refuse({ code, path, reason, range }: DecodeFault, row: number, target: RowTarget): void {
    const value = range === undefined ? {} : { value: this.#unpacked.bytes.slice(range.from, range.to) };
    target.reject({ row, from: 0, to: 0, code, column: path === "" ? null : path, reason, ...value });
  }

  #damaged(f: Failure, firstRow: number, count: number): Failure {
    const at = this.#work.name;
    const which = `the block of rows ${firstRow} to ${firstRow + count - 1}`;
    if (f.code === "compression.limit") {
      const { hint } = tooLarge("", 0, 0);
      const message = `${which} unpacks to more than ${this.#o.maxBlockBytes} bytes`;
      return new Failure("files.record_too_large", message, hint === null ? { at } : { at, hint });
    }
    if (f.code === "internal.bug") return f;
    return new Failure("files.not_avro", `${which} is damaged: ${f.message}`, { at, cause: f });
  }
}

/** Whether rows of the file's columns are rows of the table as they stand. */
function takes(table: readonly TableField[], file: readonly ColumnField[]): boolean {
  if (table.length !== file.length) return false;
  return table.every((t, i) => {
    const f = file[i]!;
    return sourceOf(t) === f.name && sameType(t.type, f.type) && (t.nullable || !f.nullable);
  });
}

function addRuns(target: RowTarget, firstRow: number, rows: number, refused: readonly number[]): void {
  let from = firstRow;
  for (const row of [...refused, firstRow + rows]) {
    if (row > from) target.addRun(from, row - from);
    from = row + 1;
  }
}
