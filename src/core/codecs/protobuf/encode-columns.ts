/**
 * Rows of columns to Protobuf payloads: the columns that decoding the schema gives, or some of them. A row goes by way of its
 * Value; JSON text becomes the Value that it was made of.
 */
import type { TableBatch } from "../../types/table-batch.ts";
import type { Value } from "../../types/value.ts";
import { cellValue } from "../../types/value-cells.ts";
import { DecodeError, type Payloads } from "../record-codec.ts";
import type { ProtobufCodec } from "./compile.ts";
import { jsonCell } from "./json-cell.ts";
import type { FieldPlan, MessagePlan } from "./plan.ts";

/** Payload i is row i of the batch. Throws a DecodeError: columns that are not of the schema, cells that do not fit. */
export function encodeProtobufColumns(codec: ProtobufCodec, { fields, columns, rows }: TableBatch): Payloads {
  const { separator } = codec;
  const plans = new Map(flatFields(codec.plan, "", separator));
  const stranger = fields.find((f) => !plans.has(f.name));
  if (stranger !== undefined) {
    const why = `${codec.desc.typeName} has no field for the column ${stranger.name}`;
    throw new DecodeError("decode.unknown_field", stranger.name, why);
  }
  const parts: Uint8Array[] = [];
  const [starts, ends] = [new Int32Array(rows), new Int32Array(rows)];
  let at = 0;
  for (let row = 0; row < rows; row++) {
    const given = fields.flatMap(({ name }, i) => {
      const value = fieldCell(plans.get(name)!, cellValue(columns[i]!, row), separator);
      return value === null ? [] : [{ name, value }];
    });
    const payload = codec.encoder.encode({ kind: "record", fields: given });
    starts[row] = at;
    at += payload.length;
    ends[row] = at;
    parts.push(payload);
  }
  const bytes = new Uint8Array(at);
  for (const [row, part] of parts.entries()) bytes.set(part, starts[row]!);
  return { bytes, starts, ends, count: rows };
}

/** Fields by the names of their columns. */
function* flatFields(plan: MessagePlan, prefix: string, separator: string): Generator<[string, FieldPlan]> {
  for (const f of plan.fields) {
    if (f.flat && f.shape.is === "message")
      yield* flatFields(f.shape.plan, prefix + f.name + separator, separator);
    else yield [prefix + f.name, f];
  }
}

/** The Value of a field behind a cell; null: it is absent. */
function fieldCell(f: FieldPlan, cell: Value, separator: string): Value | null {
  if (cell.kind === "null") return null;
  if (f.label === "list" && cell.kind === "list")
    return { kind: "list", items: cell.items.map((item) => oneCell(f, item, separator)) };
  if (f.label === "map" && cell.kind === "map")
    return { kind: "map", entries: cell.entries.map(([k, v]) => [k, oneCell(f, v, separator)] as const) };
  return oneCell(f, cell, separator);
}

function oneCell({ shape }: FieldPlan, cell: Value, separator: string): Value {
  switch (shape.is) {
    case "enum":
      return cell.kind === "string" ? { kind: "enum", symbol: cell.value } : cell;
    case "json":
      return cell.kind === "string" ? jsonCell(shape, cell.value) : cell;
    case "message": {
      if (cell.kind !== "record") return cell;
      const plans = new Map(flatFields(shape.plan, "", separator));
      const fields = cell.fields.flatMap(({ name, value }) => {
        const plan = plans.get(name);
        const inner = plan === undefined ? value : fieldCell(plan, value, separator);
        return inner === null ? [] : [{ name, value: inner }];
      });
      return { kind: "record", fields };
    }
    default:
      return cell;
  }
}
