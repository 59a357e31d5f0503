/** Rows of finished columns into columns that grow: runs of bytes, no value looked at. */
import {
  BoolBuilder,
  BytesBuilder,
  type ColumnBuilder,
  FixedBuilder,
  ListBuilder,
  StructBuilder,
} from "./column-builder.ts";
import type { TableColumn } from "./table-batch.ts";

/** Appends rows [from, to) of `c`, which must be of the builder's type. Throws as the builder does when it is full. */
export function appendRows(b: ColumnBuilder, c: TableColumn, from: number, to: number): void {
  const n = to - from;
  b.reserve(n);
  const start = b.rows;
  if (b instanceof FixedBuilder) {
    b.u8.set(c.data.subarray(from * b.width, to * b.width), start * b.width);
    b.rows += n;
  } else if (b instanceof BytesBuilder) appendBytes(b, c, from, to);
  else if (b instanceof BoolBuilder)
    for (let i = from; i < to; i++) b.push(((c.data[i >> 3]! >> (i & 7)) & 1) === 1);
  else if (b instanceof StructBuilder) {
    for (const [i, child] of b.children.entries()) appendRows(child, c.children[i]!, from, to);
    b.rows += n;
  } else if (b instanceof ListBuilder) appendLists(b, c, from, to);
  if (c.validity === null) return;
  for (let i = from; i < to; i++)
    if (((c.validity[i >> 3]! >> (i & 7)) & 1) === 0) b.validity.clear(start + i - from);
}

function appendBytes(b: BytesBuilder, { offsets, data }: TableColumn, from: number, to: number): void {
  const first = offsets![from]!;
  const last = offsets![to]!;
  b.reserveBytes(last - first);
  const at = b.bytes;
  b.data.set(data.subarray(first, last), at);
  const shift = at - first;
  const out = b.rows - from;
  for (let i = from + 1; i <= to; i++) b.offsets[out + i] = offsets![i]! + shift;
  b.rows += to - from;
}

function appendLists(b: ListBuilder, { offsets, children }: TableColumn, from: number, to: number): void {
  const first = offsets![from]!;
  const shift = b.child.rows - first;
  appendRows(b.child, children[0]!, first, offsets![to]!);
  const out = b.rows - from;
  for (let i = from + 1; i <= to; i++) b.offsets[out + i] = offsets![i]! + shift;
  b.rows += to - from;
}
