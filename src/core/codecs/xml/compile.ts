/** XML payloads, one document each, to columns. */
import type { SchemaText } from "../../schema/resolver.ts";
import type { ColumnBuilder } from "../../types/column-builder.ts";
import type { ColumnField, ColumnType } from "../../types/table-batch.ts";
import { sourceOf, type TableField } from "../../types/table-schema.ts";
import type { Value } from "../../types/value.ts";
import { CellMemory, cellNodes } from "../cell-memory.ts";
import { DecodeError, type DecodeFault, type Payloads, type RecordDecoder } from "../record-codec.ts";
import { refuseReserved, tableDocument } from "../table-document.ts";
import { chunkRows, type TextOptions, TextRecords } from "../text-records.ts";
import { utf8Payloads } from "./encoding.ts";
import { XmlCells, type XmlRules } from "./record-cells.ts";

export interface XmlOptions extends XmlRules, TextOptions {}

export class XmlRecords implements RecordDecoder {
  readonly fields: readonly ColumnField[];
  readonly #records: TextRecords;

  /** Throws a DecodeError (decode.schema) for columns that no document can fill. */
  constructor(fields: readonly TableField[], options: XmlOptions) {
    for (const f of fields) checkType(f.type, f.name, false);
    this.fields = fields;
    const nodes = cellNodes(fields.map((f) => ({ ...f, name: sourceOf(f) })));
    const memory = new CellMemory(nodes, chunkRows(nodes.length));
    this.#records = new TextRecords(fields, options, memory, new XmlCells(memory, options));
  }

  decode(payloads: Payloads, columns: readonly ColumnBuilder[], fault: (f: DecodeFault) => void): number {
    const refused = new Set<number>();
    const utf8 = utf8Payloads(payloads, (row, reason) => {
      refused.add(row);
      fault({ row, code: "decode.encoding", path: "", reason });
    });
    return this.#records.decode(utf8, columns, (f) => {
      if (!refused.has(f.row)) fault(f);
    });
  }

  value(bytes: Uint8Array, from: number, to: number): Value {
    const one = { bytes, starts: Int32Array.of(from), ends: Int32Array.of(to), count: 1 };
    const utf8 = utf8Payloads(one, (_, reason) => {
      throw new DecodeError("decode.encoding", "", reason);
    });
    return this.#records.value(utf8.bytes, utf8.starts[0]!, utf8.ends[0]!);
  }
}

/**
 * Of a table's schema (`columns`), whose names are those of elements; `namespaces` has the URIs of their prefixes. Throws a
 * DecodeError: decode.schema, or decode.reserved for a column under the reserved prefix.
 */
export function compileXml(
  { text, table }: Pick<SchemaText, "text" | "table">,
  options: Omit<XmlOptions, "prefixes">,
): XmlRecords {
  const document = table === undefined ? tableDocument(text) : { ...table, namespaces: new Map() };
  if (document === null)
    throw new DecodeError(
      "decode.schema",
      "",
      'XML is read by a table\'s schema: an object with a list "columns"',
    );
  refuseReserved(document.fields, options.reserved);
  const prefixes = new Map([...document.namespaces].map(([prefix, uri]) => [uri, prefix]));
  return new XmlRecords(document.fields, { ...options, prefixes });
}

/** Elements have no keys of their own, so there are no maps; a list's items have names, so none is a list itself. */
function checkType(type: ColumnType, place: string, inList: boolean): void {
  const bad = (what: string) => {
    throw new DecodeError("decode.schema", place, `XML has no ${what}`);
  };
  if (type.id === "map" || type.id === "json" || type.id === "null") bad(`${type.id} columns`);
  if (type.id === "list") {
    if (inList) bad("lists of lists");
    checkType(type.item.type, `${place}[]`, true);
  }
  if (type.id === "struct") for (const f of type.fields) checkType(f.type, `${place}.${f.name}`, false);
}
