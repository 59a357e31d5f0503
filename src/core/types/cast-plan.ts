/**
 * How columns of one description become those of another, nested ones by the names of their fields: planned once, with every
 * place where the two do not go together, then done column by column. Nothing is rounded.
 */
import { canCast, castColumn } from "./cast-column.ts";
import { builderOf } from "./column-builder.ts";
import type { ColumnField, ColumnType, TableColumn } from "./table-batch.ts";
import { FAULT } from "./text-cells.ts";
import { typeText } from "./type-text.ts";

/** Where two types do not go together, and why. */
export class CastError extends Error {
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}

export interface CastPlan {
  readonly to: ColumnType;
  readonly path: string;
  /** No value may be null where what is around it is there. */
  readonly required: boolean;
  /** Of what has others in it: each child of `to`, and of which child it is made; null: of none, all are null. */
  readonly children: readonly {
    readonly from: number;
    readonly plan: CastPlan | null;
    readonly to: ColumnType;
  }[];
}

/** `extra`: what becomes of fields that `to` has no place for. Throws a CastError. */
export function planCast(
  from: ColumnType,
  to: ColumnField,
  path: string,
  extra: "drop" | "refuse",
): CastPlan {
  const plan = { to: to.type, path, required: !to.nullable };
  const target = to.type;
  if (from.id === "struct" && target.id === "struct")
    return { ...plan, children: fieldsOf(from.fields, target.fields, `${path}.`, extra) };
  if (from.id === "list" && target.id === "list") {
    const item = planCast(from.item.type, target.item, `${path}[]`, extra);
    return { ...plan, children: [{ from: 0, plan: item, to: item.to }] };
  }
  if (from.id === "map" && target.id === "map") {
    const entries = (t: typeof from): ColumnField => ({
      ...{ name: "entries", nullable: false },
      type: { id: "struct", fields: [t.key, t.value] },
    });
    const inner = planCast(entries(from).type, entries(target), `${path}{}`, extra);
    return { ...plan, children: [{ from: 0, plan: inner, to: inner.to }] };
  }
  if (canCast(from, target)) return { ...plan, children: [] };
  throw new CastError(path, `${typeText(from)} does not go into ${typeText(target)}`);
}

function fieldsOf(
  from: readonly ColumnField[],
  to: readonly ColumnField[],
  above: string,
  extra: "drop" | "refuse",
): CastPlan["children"] {
  const stray = extra === "refuse" ? from.find((f) => !to.some((t) => t.name === f.name)) : undefined;
  if (stray !== undefined) throw new CastError(`${above}${stray.name}`, "there is no field for it");
  return to.map((t) => {
    const at = from.findIndex((f) => f.name === t.name);
    const path = `${above}${t.name}`;
    if (at >= 0) return { from: at, plan: planCast(from[at]!.type, t, path, extra), to: t.type };
    if (!t.nullable) throw new CastError(path, "it is required and not there");
    return { from: -1, plan: null, to: t.type };
  });
}

/** Row of the column, how (`FAULT`), and where. */
export type OnCastFault = (row: number, fault: number, at: CastPlan) => void;

export function castByPlan(c: TableColumn, plan: CastPlan, fault: OnCastFault): TableColumn {
  const { to, children } = plan;
  if (plan.required) eachNull(c, (row) => fault(row, FAULT.null, plan));
  if (children.length === 0) return castColumn(c, to, (row, why) => fault(row, why, plan));
  const cast = children.map((child) => {
    if (child.plan === null) return nulls(child.to, c.length);
    const column = c.children[child.from]!;
    if (c.offsets === null) return castByPlan(column, child.plan, withinStruct(c, fault));
    return castByPlan(column, child.plan, lifted(c.offsets, c.length, fault));
  });
  return { ...c, type: to, children: cast };
}

const isNull = ({ validity }: TableColumn, row: number): boolean =>
  validity !== null && ((validity[row >> 3]! >> (row & 7)) & 1) === 0;

function eachNull(c: TableColumn, use: (row: number) => void): void {
  if (c.validity === null) return;
  for (let i = 0; i < c.length; i++) if (isNull(c, i)) use(i);
}

/** What stands in a row that is null has no fault. */
function withinStruct(struct: TableColumn, fault: OnCastFault): OnCastFault {
  if (struct.validity === null) return fault;
  return (row, why, at) => {
    if (!isNull(struct, row)) fault(row, why, at);
  };
}

/** From items to the rows that hold them. */
function lifted(offsets: Int32Array, rows: number, fault: OnCastFault): OnCastFault {
  return (item, why, at) => {
    let low = 0;
    let high = rows - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (offsets[middle]! <= item) low = middle;
      else high = middle - 1;
    }
    fault(low, why, at);
  };
}

export function nulls(type: ColumnType, rows: number): TableColumn {
  const builder = builderOf(type);
  builder.reserve(rows);
  for (let i = 0; i < rows; i++) builder.pushNull();
  return builder.finish();
}
