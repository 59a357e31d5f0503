/**
 * Rows of columns to Avro payloads. What a column holds in the schema's own form is written without an object for a
 * value; the few types that must be turned into another form go by way of a Value.
 */
import type { SchemaText } from "../../schema/resolver.ts";
import type { ColumnField, TableBatch, TableColumn } from "../../types/table-batch.ts";
import { typeText } from "../../types/type-text.ts";
import { cellValue } from "../../types/value-cells.ts";
import { DecodeError, type Payloads } from "../record-codec.ts";
import { AvroWriter } from "./avro-writer.ts";
import { ValueWriter } from "./encode-value.ts";
import { parseSchema } from "./parse-schema.ts";
import { type AvroType, branchNames, optional, type RecordType, type UnionType } from "./schema.ts";

type Write = (row: number) => void;

/** Payload i is row i of the batch. Throws a DecodeError: columns that are not of the schema, cells that do not fit. */
export function encodeColumns(
  schema: Pick<SchemaText, "text" | "references">,
  { fields, columns, rows }: TableBatch,
): Payloads {
  const type = parseSchema(schema);
  const encoder = new ColumnWriter();
  const write = encoder.table(type, fields, columns);
  const starts = new Int32Array(rows);
  const ends = new Int32Array(rows);
  for (let row = 0; row < rows; row++) {
    starts[row] = encoder.out.length;
    write(row);
    ends[row] = encoder.out.length;
  }
  return { bytes: encoder.out.view(), starts, ends, count: rows };
}

class ColumnWriter {
  readonly out = new AvroWriter();
  readonly #values = new ValueWriter(this.out);

  table(type: AvroType, fields: readonly ColumnField[], columns: readonly TableColumn[]): Write {
    if (type.kind === "record") return this.#fields(type, fields, columns);
    const [column] = columns;
    return column === undefined ? refuse("a table without columns") : this.#cell(type, column);
  }

  #fields(type: RecordType, fields: readonly ColumnField[], columns: readonly TableColumn[]): Write {
    const parts = type.fields.map((f) => {
      const column = columns[fields.findIndex((c) => c.name === f.name)];
      if (column !== undefined) return this.#cell(f.type, column);
      return optional(f.type) === null
        ? refuse(`there is no column ${f.name}, and its type is not optional`)
        : this.#nothing(f.type as UnionType);
    });
    const unknown = fields.find((c) => !type.fields.some((f) => f.name === c.name));
    if (unknown !== undefined) refuse(`${type.name} has no field ${unknown.name}`);
    return (row) => {
      for (const part of parts) part(row);
    };
  }

  #nothing(type: UnionType): Write {
    const index = type.branches.findIndex((b) => b.kind === "null");
    return () => this.out.int(index);
  }

  /** Of a column whose rows may be null. */
  #cell(type: AvroType, column: TableColumn): Write {
    const { validity } = column;
    if (type.kind === "null") return () => undefined;
    if (type.kind === "union") return this.#union(type, column);
    const inner = this.#valid(type, column);
    if (validity === null) return inner;
    return (row) => {
      if (!isValid(validity, row)) throw new DecodeError("decode.null", "", `null for ${type.kind}`);
      inner(row);
    };
  }

  #union(type: UnionType, column: TableColumn): Write {
    const none = type.branches.findIndex((b) => b.kind === "null");
    const [only, ...others] = type.branches.filter((b) => b.kind !== "null");
    const isOne = only !== undefined && others.length === 0;
    const index = isOne ? type.branches.indexOf(only) : -1;
    const inner = isOne ? this.#valid(only, column) : this.#members(type, column);
    const { validity } = column;
    return (row) => {
      if (validity !== null && !isValid(validity, row)) {
        if (none < 0) throw new DecodeError("decode.null", "", "null for a union without it");
        this.out.int(none);
        return;
      }
      if (isOne) this.out.int(index);
      inner(row);
    };
  }

  /** A struct of which one member is set. */
  #members(type: UnionType, column: TableColumn): Write {
    if (column.type.id !== "struct") return this.#byValue(type, column);
    const names = branchNames(type);
    const members = column.type.fields.map((f, i) => {
      const index = names.indexOf(f.name);
      if (index < 0) return refuse(`the union has no branch ${f.name}`);
      const child = column.children[i]!;
      return { index, child, write: this.#valid(type.branches[index]!, child) };
    });
    return (row) => {
      let set = -1;
      for (const [i, { child }] of members.entries()) {
        if (child.validity !== null && !isValid(child.validity, row)) continue;
        if (set >= 0) throw new DecodeError("decode.type", "", "two branches of a union are set");
        set = i;
      }
      const member = members[set];
      if (member === undefined) throw new DecodeError("decode.null", "", "no branch of a union is set");
      this.out.int(member.index);
      member.write(row);
    };
  }

  #byValue(type: AvroType, column: TableColumn): Write {
    return (row) => this.#values.write(type, cellValue(column, row), 0);
  }

  #valid(type: AvroType, column: TableColumn): Write {
    const { out } = this;
    const { data, offsets, children } = column;
    const shape = column.type;
    switch (type.kind) {
      case "record":
        return shape.id === "struct"
          ? this.#fields(type, shape.fields, children)
          : refuse(`a column of ${typeText(shape)} for the record ${type.name}`);
      case "array":
        return shape.id === "list" || shape.id === "map"
          ? this.#items(offsets!, this.#cell(type.items, children[0]!))
          : refuse(`a column of ${typeText(shape)} for an array`);
      case "map": {
        if (shape.id !== "map") return refuse(`a column of ${typeText(shape)} for a map`);
        const [keys, values] = children[0]!.children as readonly [TableColumn, TableColumn];
        const key = this.#cell({ kind: "string", logical: null }, keys);
        const value = this.#cell(type.values, values);
        return this.#items(offsets!, (row) => {
          key(row);
          value(row);
        });
      }
      case "string":
      case "bytes":
        if (type.logical === null && (shape.id === "utf8" || shape.id === "binary"))
          return (row) => {
            const from = offsets![row]!;
            const to = offsets![row + 1]!;
            out.int(to - from);
            out.copy(data, from, to);
          };
        break;
      case "boolean":
        if (shape.id === "bool") return (row) => out.byte((data[row >> 3]! >> (row & 7)) & 1);
        break;
      default:
        break;
    }
    if (shape.id === "int" && "logical" in type && type.logical?.as === "decimal")
      return this.#wholeDecimal(type, column);
    return this.#number(type, column) ?? this.#byValue(type, column);
  }

  /** Integers that no type of Avro holds stand as decimals. */
  #wholeDecimal(type: AvroType, column: TableColumn): Write {
    return (row) => {
      const value = cellValue(column, row);
      if (value.kind !== "int" && value.kind !== "long") throw new DecodeError("decode.type", "", value.kind);
      this.#values.write(type, { kind: "decimal", unscaled: BigInt(value.value), scale: 0 }, 0);
    };
  }

  #items(offsets: Int32Array, item: Write): Write {
    return (row) => {
      const from = offsets[row]!;
      const to = offsets[row + 1]!;
      if (to > from) this.out.int(to - from);
      for (let i = from; i < to; i++) item(i);
      this.out.int(0);
    };
  }

  /** Null: it is not in the schema's form. */
  #number(type: AvroType, { type: shape, data }: TableColumn): Write | null {
    const { out } = this;
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const logical = "logical" in type ? type.logical : null;
    const isPlainInt = shape.id === "int" && shape.signed && logical === null;
    const isInstant =
      shape.id === "timestamp" &&
      logical?.as === "timestamp" &&
      logical.unit === shape.unit &&
      logical.zone === shape.zone;
    if (
      type.kind === "int" &&
      ((isPlainInt && shape.bits === 32) || (shape.id === "date32" && logical?.as === "date"))
    )
      return (row) => out.int(view.getInt32(4 * row, true));
    if (type.kind === "long" && ((isPlainInt && shape.bits === 64) || isInstant))
      return (row) => out.long(view.getInt32(8 * row, true), view.getInt32(8 * row + 4, true));
    if (type.kind === "float" && shape.id === "float" && shape.bits === 32)
      return (row) => out.copy(data, 4 * row, 4 * row + 4);
    if (type.kind === "double" && shape.id === "float" && shape.bits === 64)
      return (row) => out.copy(data, 8 * row, 8 * row + 8);
    if (type.kind === "fixed" && shape.id === "fixed" && shape.bytes === type.size)
      return (row) => out.copy(data, type.size * row, type.size * row + type.size);
    return null;
  }
}

function isValid(validity: Uint8Array, row: number): boolean {
  return ((validity[row >> 3]! >> (row & 7)) & 1) === 1;
}

function refuse(reason: string): never {
  throw new DecodeError("decode.schema", "", reason);
}
