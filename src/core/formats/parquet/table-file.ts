/** A batch of columns as one Parquet file of one row group, in memory: what DuckDB would make, without it. */
import type { ColumnField, TableBatch, TableColumn } from "../../types/table-batch.ts";
import { footerBytes, MAGIC, rowGroupBytes } from "./footer.ts";
import { type PageValues, pageValues } from "./leaf-values.ts";
import { LevelWriter, putLevels } from "./levels.ts";
import { type ChunkInfo, ChunkPages, ENCODING, PAGE_BYTES, PAGE_VALUES, type PageContext } from "./page.ts";
import { OutQueue } from "./slabs.ts";
import { type Entries, itemEntries, presentEntries, rootEntries, THERE } from "./table-levels.ts";
import { type TableLeaf, type TableNode, type TablePlan, tablePlan } from "./table-plan.ts";

/** Chunks below this are stored as they are. */
const COMPRESS_FROM = 512;
/** Bytes of levels that are always enough: a packed level takes half a byte, a run's header less than its levels. */
const LEVEL_ROOM = 64;

export class TableEncoder {
  readonly #context: PageContext;
  readonly #definition: LevelWriter[] = [];
  readonly #repetition: LevelWriter[] = [];
  #fields: readonly ColumnField[] | null = null;
  #plan: TablePlan | null = null;

  constructor(context: PageContext) {
    this.#context = context;
  }

  /** Null: there is a type, or a value, that somebody else has to encode. */
  encode(batch: TableBatch): Uint8Array | null {
    if (batch.fields !== this.#fields) {
      this.#fields = batch.fields;
      this.#plan = tablePlan(batch.fields);
    }
    const plan = this.#plan;
    if (plan === null) return null;
    const out = new OutQueue(this.#context.slabs);
    try {
      out.append(MAGIC);
      const chunks: ChunkInfo[] = [];
      const root = rootEntries(batch.rows);
      for (const [i, node] of plan.nodes.entries())
        if (!this.#node(node, root, batch.columns[i]!, out, chunks)) return null;
      const group = rowGroupBytes(plan.leaves, chunks, batch.rows, MAGIC.length, 0);
      out.append(
        footerBytes({
          schema: plan.schema,
          elements: plan.elements,
          leaves: plan.leaves.length,
          rows: batch.rows,
          rowGroups: [group],
          metadata: [],
          createdBy: "twg",
        }),
      );
      return whole(out);
    } finally {
      out.drop();
    }
  }

  #node(node: TableNode, e: Entries, column: TableColumn, out: OutQueue, chunks: ChunkInfo[]): boolean {
    if (node.id === "list") {
      const lists = presentEntries(e, column);
      const depth = depthOf(node.child);
      return this.#node(node.child, itemEntries(lists, column, depth), column.children[0]!, out, chunks);
    }
    // A map without a key is nothing that the format can say.
    if (!node.optional && column.nullCount > 0) return false;
    const present = node.optional ? presentEntries(e, column) : e;
    if (node.id === "struct")
      return node.children.every((child, i) => this.#node(child, present, column.children[i]!, out, chunks));
    const values = pageValues(node.leaf.values, present, column);
    if (values === null) return false;
    chunks.push(this.#chunk(node.leaf, present, values, out));
    return true;
  }

  #chunk(leaf: TableLeaf, e: Entries, values: PageValues, out: OutQueue): ChunkInfo {
    const small =
      values.bound(0, e.there) + (values.dictionary?.raw.length ?? 0) + e.count / 4 < COMPRESS_FROM;
    const pages = new ChunkPages(this.#context, small ? null : this.#context.codec);
    if (values.dictionary !== null) pages.dictionary(values.dictionary.raw, values.dictionary.values);
    for (let at = 0, n = 0; at < e.count; ) {
      const { end, there } = pageEnd(e, values.offsets, at, n);
      const encoding = there > 0 ? values.encoding : ENCODING.plain;
      pages.data(this.#page(leaf, e, values, [at, end], [n, n + there]), end - at, encoding);
      at = end;
      n += there;
    }
    // Writers disagree on whether an empty list counts as a null of its leaf, so lists say nothing.
    const statistics =
      leaf.maxRepetition > 0
        ? null
        : {
            nulls: e.count - e.there,
            least: values.bounds?.least ?? null,
            greatest: values.bounds?.greatest ?? null,
          };
    return pages.finish(out, statistics);
  }

  #page(
    leaf: TableLeaf,
    e: Entries,
    values: PageValues,
    [from, to]: readonly [number, number],
    [first, last]: readonly [number, number],
  ): Uint8Array {
    const room = LEVEL_ROOM + 2 * (to - from);
    const raw = this.#context.assemble(room + (last > first ? values.bound(first, last) : 0));
    let at = 0;
    if (leaf.maxRepetition > 0) {
      const w = writerOf(this.#repetition, leaf.maxRepetition);
      addLevels(w, e.repetition!, 0, from, to);
      at = putLevels(raw, at, w.finish());
    }
    if (leaf.maxDefinition > 0) {
      const w = writerOf(this.#definition, leaf.maxDefinition);
      if (e.definition === null) w.add(leaf.maxDefinition, to - from);
      else addLevels(w, e.definition, leaf.maxDefinition, from, to);
      at = putLevels(raw, at, w.finish());
    }
    // Where there are no values no reader has to know an empty block of deltas.
    if (last > first) at = values.put(first, last, raw, at);
    return raw.subarray(0, at);
  }
}

/** The repetition level of the innermost list around a part. */
function depthOf(node: TableNode): number {
  let inner = node;
  let inside = 0;
  while (inner.id !== "leaf") {
    if (inner.id === "list") inside++;
    inner = inner.id === "list" ? inner.child : inner.children[0]!;
  }
  return inner.leaf.maxRepetition - inside;
}

function writerOf(all: LevelWriter[], most: number): LevelWriter {
  const w = all[most] ?? new LevelWriter(most);
  all[most] = w;
  w.reset();
  return w;
}

/** `most`: the level of what is there. */
function addLevels(w: LevelWriter, levels: Uint8Array, most: number, from: number, to: number): void {
  for (let i = from; i < to; ) {
    const level = levels[i]!;
    let end = i + 1;
    while (end < to && levels[end] === level) end++;
    w.add(level === THERE ? most : level, end - i);
    i = end;
  }
}

interface PageEnd {
  readonly end: number;
  readonly there: number;
}

/** The first entry behind a page that begins at entry `at` with value `first`, and its values: a row is never split. */
function pageEnd(e: Entries, offsets: Int32Array | null, at: number, first: number): PageEnd {
  const { definition, repetition, count } = e;
  const most = Math.min(count, at + PAGE_VALUES);
  // What is not there has no bytes, so this is at least what the values of the entries up to `most` have.
  const values = offsets === null ? 0 : Math.min(first + most - at, e.there);
  if (offsets !== null && offsets[values]! - offsets[first]! > PAGE_BYTES)
    return pageByBytes(e, offsets, at, first);
  let end = most;
  while (end < count && repetition !== null && repetition[end] !== 0) end++;
  if (definition === null) return { end, there: end - at };
  let there = 0;
  for (let i = at; i < end; i++) if (definition[i] === THERE) there++;
  return { end, there };
}

function pageByBytes(e: Entries, offsets: Int32Array, at: number, first: number): PageEnd {
  const { definition, repetition, count } = e;
  const most = offsets[first]! + PAGE_BYTES;
  let value = first;
  let i = at;
  while (i < count) {
    const full = i - at >= PAGE_VALUES || offsets[value]! >= most;
    if (full && i > at && (repetition === null || repetition[i] === 0)) break;
    if (definition === null || definition[i] === THERE) value++;
    i++;
  }
  return { end: i, there: value - first };
}

function whole(out: OutQueue): Uint8Array {
  const file = new Uint8Array(out.position);
  let at = 0;
  for (let bytes = out.first(); bytes !== null; bytes = out.first()) {
    file.set(bytes, at);
    at += bytes.length;
    out.dropFirst();
  }
  return file;
}
