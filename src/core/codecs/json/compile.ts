/**
 * JSON payloads, one object each, to columns: cut into cells by a WebAssembly module where the processor can
 * (record-module.ts), what that leaves by record-cells.ts. Numbers are read from their digits, so none is bent on its way
 * through a double.
 */

import type { SchemaText } from "../../schema/resolver.ts";
import type { ColumnType } from "../../types/table-batch.ts";
import { sourceOf, type TableField } from "../../types/table-schema.ts";
import type { PackedColumn } from "../../types/text-cells.ts";
import { CellMemory, type CellNode, cellNodes } from "../cell-memory.ts";
import { refuseReserved, tableDocument } from "../table-document.ts";
import { chunkRows, type RecordScanner, type TextOptions, TextRecords } from "../text-records.ts";
import { KIND } from "./cursor.ts";
import { fits } from "./fits.ts";
import { fieldsOfJsonSchema } from "./json-schema.ts";
import { RecordCells, type RecordRules } from "./record-cells.ts";
import { RECORD_MODULE } from "./record-module.ts";

export interface JsonOptions extends RecordRules, TextOptions {}

/** A bit for each kind that a leaf's text can be taken of as it stands, null excepted. */
function kindsOf(type: ColumnType): number {
  const raw = type.id === "json" ? [KIND.number, KIND.true, KIND.false] : Object.values(KIND);
  return raw.reduce<number>((bits, kind) => bits | (fits(type, kind) ? 1 << kind : 0), 0);
}

interface Exports {
  readonly full: WebAssembly.Global;
  readonly spareAt: WebAssembly.Global;
  readRecords(...numbers: number[]): number;
  packCells(node: number, cells: number, out: number, offsets: number, base: number): number;
}

let module: WebAssembly.Module | null | undefined;

/** Null where the processor has no such instructions. */
function recordModule(): WebAssembly.Module | null {
  if (module === undefined) {
    const bytes = Uint8Array.fromBase64(RECORD_MODULE);
    module = WebAssembly.validate(bytes) ? new WebAssembly.Module(bytes) : null;
  }
  return module;
}

class ModuleScanner implements RecordScanner {
  readonly #memory: CellMemory;
  readonly #call: Exports;

  constructor(memory: CellMemory, module: WebAssembly.Module) {
    this.#memory = memory;
    const { exports } = new WebAssembly.Instance(module, { env: { memory: memory.memory } });
    this.#call = exports as unknown as Exports;
  }

  scan(at: number, count: number, spareAt: number) {
    const m = this.#memory;
    const call = this.#call;
    const { text, nodesAt, nodes } = m;
    const stopped = call.readRecords(
      text,
      m.rowStarts,
      m.rowEnds,
      at,
      count,
      nodesAt,
      nodes.length,
      text + spareAt,
    );
    const full: number = call.full.value;
    return { at: stopped, spareAt: call.spareAt.value - text, full: full === 0 ? null : m.nodeAt(full) };
  }

  pack(node: CellNode, cells: number, base: number): PackedColumn {
    const m = this.#memory;
    const nulls = this.#call.packCells(m.address(node), cells, m.packed, m.offsets, base);
    const offsets = new Int32Array(m.memory.buffer, m.offsets, cells);
    const length = cells === 0 ? 0 : offsets[cells - 1]! - base;
    return { bytes: new Uint8Array(m.memory.buffer, m.packed, length), offsets, nulls };
  }
}

/** `module` null: without instructions for many bytes at a time. */
export function jsonRecords(
  fields: readonly TableField[],
  options: JsonOptions,
  module: WebAssembly.Module | null = recordModule(),
): TextRecords {
  const keys = fields.map((f) => ({ ...f, name: sourceOf(f) }));
  const nodes = cellNodes(keys, kindsOf);
  const memory = new CellMemory(nodes, chunkRows(nodes.length));
  const reader = new RecordCells(memory, options);
  const scanner = module === null ? null : new ModuleScanner(memory, module);
  return new TextRecords(fields, options, memory, reader, scanner);
}

/**
 * Of a JSON Schema, of what knows its columns itself (`table`), or of a table's schema as `twg batch --print-schema` writes it (`columns`). Throws a DecodeError:
 * decode.schema, or decode.reserved for a column under the reserved prefix.
 */
export function compileJson(
  writer: Pick<SchemaText, "text" | "references" | "table">,
  options: JsonOptions,
): TextRecords {
  const fields = writer.table?.fields ?? tableDocument(writer.text)?.fields ?? fieldsOfJsonSchema(writer);
  refuseReserved(fields, options.reserved);
  return jsonRecords(fields, options);
}
