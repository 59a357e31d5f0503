/**
 * One row group of somebody's file as a Parquet file of its own: the chunks as they are, under a footer made anew that
 * tells an engine how values are stored and nested, and nothing else. So what they mean is ours to say, statistics
 * that lie are not there, and names cannot confuse.
 */
import type { ColumnType } from "../../types/table-batch.ts";
import type { ColumnPlan, ShownNode } from "./column-plan.ts";
import { MAGIC } from "./footer.ts";
import { type ChunkInfo, REPETITION, type RowGroupInfo } from "./read-footer.ts";
import { T, ThriftWriter } from "./thrift.ts";

const CONVERTED_LIST = 3;
const UTF8 = new TextEncoder();

/** Name of the column number `i` in the file. */
export function shownName(i: number): string {
  return `c${i}`;
}

export interface PlacedChunk extends ChunkInfo {
  /** Where its pages begin in the new file. */
  readonly at: number;
}

/** Chunks follow one another behind the magic. */
export function placeChunks({ chunks }: RowGroupInfo): readonly PlacedChunk[] {
  let at = MAGIC.length;
  return chunks.map((c) => {
    const placed = { ...c, at };
    at += c.to - c.from;
    return placed;
  });
}

/** Footer, length and magic: what follows the last chunk. */
export function groupFooter(
  columns: readonly ShownNode[],
  rows: number,
  chunks: readonly PlacedChunk[],
): Uint8Array {
  const elements = new ThriftWriter();
  const paths: { readonly path: readonly string[]; readonly physical: number }[] = [];
  let count = 1;
  elements.open().string(4, "root").i32(5, columns.length).close();
  const show = (node: ShownNode, name: string, path: readonly string[]): void => {
    count++;
    const here = [...path, name];
    elements.open();
    if (node.kind === "leaf") {
      paths.push({ path: here, physical: node.physical });
      elements.i32(1, node.physical);
      if (node.length > 0) elements.i32(2, node.length);
    }
    elements.i32(3, node.repetition).string(4, name);
    if (node.kind === "leaf") {
      elements.close();
      return;
    }
    if (node.kind === "struct") {
      elements.i32(5, node.fields.length).close();
      for (const [i, f] of node.fields.entries()) show(f, `f${i}`, here);
      return;
    }
    elements.i32(5, 1).i32(6, CONVERTED_LIST).close();
    elements.open().i32(3, REPETITION.repeated).string(4, "list").i32(5, 1).close();
    count++;
    show(node.item, "element", [...here, "list"]);
  };
  for (const [i, c] of columns.entries()) show(c, shownName(i), []);

  const w = new ThriftWriter();
  w.open().i32(1, 1).list(2, T.struct, count).raw(elements.view()).i64(3, rows);
  w.list(4, T.struct, 1).open().list(1, T.struct, chunks.length);
  for (const [i, c] of chunks.entries()) writeChunk(w, c, paths[i]!);
  w.i64(
    2,
    chunks.reduce((n, c) => n + c.rawBytes, 0),
  )
    .i64(3, rows)
    .close();
  w.string(6, "twg").close();
  const { length } = w;
  w.raw(Uint8Array.of(length, length >>> 8, length >>> 16, length >>> 24)).raw(MAGIC);
  return w.view().slice();
}

function writeChunk(
  w: ThriftWriter,
  c: PlacedChunk,
  { path, physical }: { readonly path: readonly string[]; readonly physical: number },
): void {
  w.open().i64(2, c.at).open(3).i32(1, physical).list(2, T.i32, 0).list(3, T.binary, path.length);
  for (const name of path) w.rawBinary(UTF8.encode(name));
  w.i32(4, c.codec)
    .i64(5, c.values)
    .i64(6, c.rawBytes)
    .i64(7, c.to - c.from);
  w.i64(9, c.at + c.dataAt - c.from);
  if (c.dictionaryAt !== null) w.i64(11, c.at + c.dictionaryAt - c.from);
  w.close().close();
}

/** What an engine must make of a column that is shown so. */
export function shownType(plan: ColumnPlan): ColumnType {
  switch (plan.kind) {
    case "leaf":
      return plan.raw;
    case "struct":
      return {
        id: "struct",
        fields: plan.fields.map((f, i) => ({ name: `f${i}`, type: shownType(f), nullable: true })),
      };
    default:
      return { id: "list", item: { name: "l", type: shownType(plan.item), nullable: true } };
  }
}
