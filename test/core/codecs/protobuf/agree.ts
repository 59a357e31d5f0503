/** Payloads through both ways of reading: what one says, the other must. */
import {
  DecodeError,
  type DecodeFault,
  type RecordDecoder,
} from "../../../../src/core/codecs/record-codec.ts";
import { builderOf, type ColumnBuilder } from "../../../../src/core/types/column-builder.ts";
import type { ColumnType, TableColumn } from "../../../../src/core/types/table-batch.ts";
import type { Value } from "../../../../src/core/types/value.ts";
import { cellValue } from "../../../../src/core/types/value-cells.ts";
import { valueJson } from "../../../../src/core/types/value-json.ts";

export interface Decoded {
  readonly columns: readonly TableColumn[];
  readonly rows: number;
  readonly faults: readonly DecodeFault[];
}

export function decodeAll(decoder: RecordDecoder, payloads: readonly Uint8Array[]): Decoded {
  // Bytes before and behind, so that who reads beyond a payload meets others.
  const bytes = Uint8Array.from(Buffer.concat([Buffer.of(8), ...payloads, Buffer.of(8, 8)]));
  const ends = new Int32Array(payloads.length);
  const starts = new Int32Array(payloads.length);
  let at = 1;
  for (const [i, p] of payloads.entries()) {
    starts[i] = at;
    at += p.length;
    ends[i] = at;
  }
  const builders = buildersOf(decoder);
  const faults: DecodeFault[] = [];
  const half = payloads.length >> 1;
  // In two calls: the second appends.
  const given = (from: number, to: number) => ({
    bytes,
    starts: starts.subarray(from, to),
    ends: ends.subarray(from, to),
    count: to - from,
  });
  let rows = decoder.decode(given(0, half), builders, (f) => faults.push(f));
  rows += decoder.decode(given(half, payloads.length), builders, (f) =>
    faults.push({ ...f, row: f.row + half }),
  );
  return { columns: builders.map((b) => b.finish()), rows, faults };
}

const BUILDERS = new WeakMap<RecordDecoder, ColumnBuilder[]>();

/** Used again and again, as a lane does: what was there before must not shine through. */
function buildersOf(decoder: RecordDecoder): ColumnBuilder[] {
  const known = BUILDERS.get(decoder);
  const builders = known ?? decoder.fields.map((f) => builderOf(f.type));
  for (const b of builders) b.reset();
  BUILDERS.set(decoder, builders);
  return builders;
}

/** Throws where they differ; how many payloads were refused. */
export function agree(decoder: RecordDecoder, payloads: readonly Uint8Array[]): number {
  const { columns, rows, faults } = decodeAll(decoder, payloads);
  const wanted: Value[] = [];
  const wantedFaults: DecodeFault[] = [];
  for (const [row, payload] of payloads.entries()) {
    try {
      wanted.push(decoder.value(payload, 0, payload.length));
    } catch (e) {
      if (!(e instanceof DecodeError)) throw e;
      wantedFaults.push({ row, code: e.code, path: e.path, reason: e.message });
    }
  }
  same("faults", JSON.stringify(faults), JSON.stringify(wantedFaults));
  same("rows", String(rows), String(wanted.length));
  for (const [i, column] of columns.entries()) {
    const { name, type } = decoder.fields[i]!;
    checkLayout(column, rows, name);
    for (const [row, value] of wanted.entries()) {
      if (value.kind !== "record") throw new Error("a record is no record");
      const cell = value.fields.find((f) => f.name === name)?.value;
      same(`row ${row} of ${name}`, valueJson(cellValue(column, row)), valueJson(asCell(type, cell)));
    }
  }
  return faults.length;
}

/** Lengths, offsets and nulls are those of Arrow. */
function checkLayout(column: TableColumn, rows: number, name: string): void {
  same(`length of ${name}`, String(column.length), String(rows));
  let nulls = 0;
  for (let i = 0; i < rows; i++) {
    if (column.validity !== null && ((column.validity[i >> 3]! >> (i & 7)) & 1) === 0) nulls++;
    const { offsets } = column;
    if (offsets !== null && (offsets[i + 1]! < offsets[i]! || offsets[0] !== 0))
      throw new Error(`offsets of ${name} fall at row ${i}`);
  }
  same(`nulls of ${name}`, String(column.nullCount), String(nulls));
  const inner = column.offsets === null ? rows : column.offsets[rows]!;
  for (const [i, child] of column.children.entries()) checkLayout(child, inner, `${name}.${i}`);
}

const NULL: Value = { kind: "null" };

/** What a column of the type says of the Value: text of JSON, an enum's name. */
export function asCell(type: ColumnType, value: Value | undefined): Value {
  if (value === undefined) return NULL;
  switch (type.id) {
    case "json":
      return { kind: "string", value: valueJson(value) };
    case "struct": {
      const fields = value.kind === "record" ? value.fields : [];
      return {
        kind: "record",
        fields: type.fields.map((f) => ({
          name: f.name,
          value: asCell(f.type, fields.find((v) => v.name === f.name)?.value),
        })),
      };
    }
    case "list":
      return {
        kind: "list",
        items: value.kind === "list" ? value.items.map((v) => asCell(type.item.type, v)) : [],
      };
    case "map":
      return {
        kind: "map",
        entries:
          value.kind === "map"
            ? value.entries.map(([k, v]) => [asCell(type.key.type, k), asCell(type.value.type, v)] as const)
            : [],
      };
    default:
      return value.kind === "enum" ? { kind: "string", value: value.symbol } : value;
  }
}

function same(what: string, seen: string, wanted: string): void {
  if (seen !== wanted)
    throw new Error(`${what}: ${seen.slice(0, 400)} where the Value has ${wanted.slice(0, 400)}`);
}
