/**
 * Avro payloads of one writer schema to columns and Values. The columns are filled by a function that is generated for
 * the pair of schemas (generate.ts); what it finds wrong, and what it has no code for, the reader of Values handles.
 */
import { Failure } from "../../failure/failure.ts";
import type { SchemaText } from "../../schema/resolver.ts";
import { BytesBuilder, type ColumnBuilder } from "../../types/column-builder.ts";
import type { ColumnField } from "../../types/table-batch.ts";
import type { Value } from "../../types/value.ts";
import { valueJson } from "../../types/value-json.ts";
import { DecodeError, type DecodeFault, type Payloads, type RecordDecoder } from "../record-codec.ts";
import { refuseReserved } from "../table-document.ts";
import { type Generated, generate } from "./generate.ts";
import { buildersOf, type Layout, layoutOf } from "./layout.ts";
import { parseSchema } from "./parse-schema.ts";
import type { Plan } from "./plan.ts";
import { resolve } from "./resolve.ts";
import { MOST_EMPTY, type Runtime, runtimeOf } from "./runtime.ts";
import { type AvroType, leastBytes } from "./schema.ts";
import { ValueReader } from "./value-reader.ts";

export type AvroSource = Pick<SchemaText, "text" | "references">;

export interface AvroSchemas {
  readonly writer: AvroSource;
  /** Whose columns and Values come out; default: the writer's. */
  readonly reader?: AvroSource;
}

export interface AvroOptions {
  /** Whether bytes are UTF-8; it is asked for whole columns. */
  readonly isUtf8: (bytes: Uint8Array) => boolean;
  /** Columns must not begin so: the names are those of metadata columns. */
  readonly reserved?: string | null;
}

/**
 * Throws a DecodeError: decode.schema where a text is no schema, the two do not go together or there would be too many
 * columns, decode.reserved for a field under the reserved prefix.
 */
export function compileAvro({ writer, reader }: AvroSchemas, options: AvroOptions): AvroDecoder {
  try {
    const from = parseSchema(writer);
    const to = reader === undefined ? from : parseSchema(reader);
    const layout = layoutOf(to);
    refuseReserved(layout.fields, options.reserved ?? null);
    return new Decoder(resolve(from, to), from, layout, options);
  } catch (e) {
    // Types that name each other in a long row.
    if (e instanceof RangeError) throw new DecodeError("decode.schema", "", "the schema nests too deeply");
    throw e;
  }
}

/** The columns of a call, how many rows they have, and where the first value begins if it is not said of each. */
interface Target {
  readonly slots: readonly ColumnBuilder[];
  rows: number;
  at: number;
  readonly end: number;
}

/** Values to decode: each in its own bytes, or (`starts` null) one behind the other in bytes[from, to). */
interface Feed {
  readonly bytes: Uint8Array;
  readonly starts: Int32Array | null;
  readonly ends: Int32Array | null;
  readonly count: number;
  readonly from: number;
  readonly to: number;
}

export interface AvroDecoder extends RecordDecoder {
  /**
   * `count` values one behind the other, as blocks of object container files have them. One that is refused is passed over
   * where its end can be found, else all behind it are refused. Throws files.not_avro if they do not fill bytes[from, to).
   */
  block(
    bytes: Uint8Array,
    from: number,
    to: number,
    count: number,
    columns: readonly ColumnBuilder[],
    fault: (f: DecodeFault) => void,
  ): number;
}

type Decode = (
  target: Target,
  bytes: Uint8Array,
  starts: Int32Array | null,
  ends: Int32Array | null,
  first: number,
  count: number,
  careful: boolean,
) => number;

class Decoder implements AvroDecoder {
  readonly #plan: Plan;
  readonly #writer: AvroType;
  /** As it was written: to pass over a value, whatever the reader makes of it. */
  #written: Plan | null = null;
  /** Bytes that a value takes at least. */
  readonly #least: number;
  readonly #layout: Layout;
  readonly #options: AvroOptions;
  readonly #reader = new ValueReader();
  #runtime: Runtime | null = null;
  #decode: Decode | null = null;
  #target: { readonly columns: readonly ColumnBuilder[]; readonly slots: readonly ColumnBuilder[] } | null =
    null;

  constructor(plan: Plan, writer: AvroType, layout: Layout, options: AvroOptions) {
    this.#plan = plan;
    this.#writer = writer;
    this.#least = leastBytes(writer);
    this.#layout = layout;
    this.#options = options;
  }

  get fields(): readonly ColumnField[] {
    return this.#layout.fields;
  }

  decode(
    { bytes, starts, ends, count }: Payloads,
    columns: readonly ColumnBuilder[],
    fault: (f: DecodeFault) => void,
  ): number {
    return this.#all({ bytes, starts, ends, count, from: 0, to: 0 }, columns, fault);
  }

  block(
    bytes: Uint8Array,
    from: number,
    to: number,
    count: number,
    columns: readonly ColumnBuilder[],
    fault: (f: DecodeFault) => void,
  ): number {
    const most = this.#least === 0 ? MOST_EMPTY : Math.floor((to - from) / this.#least);
    if (count > most)
      throw new Failure(
        "files.not_avro",
        `a block of ${to - from} bytes says that it holds ${count} records`,
      );
    return this.#all({ bytes, starts: null, ends: null, count, from, to }, columns, fault);
  }

  #all(feed: Feed, columns: readonly ColumnBuilder[], fault: (f: DecodeFault) => void): number {
    if (this.#target?.columns !== columns)
      this.#target = { columns, slots: buildersOf(this.#layout, columns) };
    const { slots } = this.#target;
    const before = slots.map((b) => b.rows);
    const marks = columns.map((c) => c.mark());
    let faults: DecodeFault[] = [];
    let rows = this.#run(feed, slots, false, faults);
    if (!this.#isText(slots, before)) {
      // Some text is no UTF-8: all over again, looking at every single one.
      for (const [i, c] of columns.entries()) c.truncate(marks[i]!);
      faults = [];
      rows = this.#run(feed, slots, true, faults);
    }
    for (const f of faults) fault(f);
    return rows;
  }

  value(bytes: Uint8Array, from: number, to: number): Value {
    this.#reader.begin(bytes, from, to);
    return this.#reader.all(this.#plan);
  }

  /** Appends what can be read; gives the number of rows. */
  #run(f: Feed, slots: readonly ColumnBuilder[], careful: boolean, faults: DecodeFault[]): number {
    this.#decode ??= this.#generate();
    const { roots } = this.#layout;
    for (const r of roots) slots[r.id]!.reserve(f.count);
    const first = roots.length === 0 ? 0 : slots[0]!.rows;
    const target: Target = { slots, rows: first, at: f.from, end: f.to };
    for (let n = 0; n < f.count; n++) {
      n = this.#decode(target, f.bytes, f.starts, f.ends, n, f.count, careful);
      if (n === f.count) break;
      if (f.starts !== null && f.ends !== null)
        faults.push(this.#explain(f.bytes, f.starts[n]!, f.ends[n]!, n, true));
      else {
        const from = target.at;
        const why = this.#explain(f.bytes, from, f.to, n, false);
        const to = this.#behind(f.bytes, from, f.to);
        if (to < 0) {
          faults.push({ ...why, range: { from, to: f.to } });
          for (let row = n + 1; row < f.count; row++) faults.push({ ...why, row });
          return target.rows - first;
        }
        faults.push({ ...why, range: { from, to } });
        target.at = to;
      }
    }
    if (f.starts === null && target.at !== f.to)
      throw new Failure("files.not_avro", `${f.to - target.at} bytes follow the records of a block`);
    return target.rows - first;
  }

  #generate(): Decode {
    const generated = generate(this.#plan, this.#layout);
    const { spelled, skipped } = generated.pieces;
    const reader = this.#reader;
    const runtime = runtimeOf(this.#layout, this.#options.isUtf8, {
      spell(piece, bytes, p, end) {
        const { plan, depth } = spelled[piece]!;
        return attempt(() => {
          reader.begin(bytes, p, end, runtime.empty);
          runtime.spelled = UTF8.encode(valueJson(reader.read(plan, depth)));
          runtime.empty = reader.empty;
          return reader.at;
        });
      },
      skip(piece, bytes, p, end) {
        const { plan, depth } = skipped[piece]!;
        return attempt(() => {
          reader.begin(bytes, p, end);
          reader.skip(plan, depth);
          return reader.at;
        });
      },
    });
    this.#runtime = runtime;
    return compiled(generated, runtime);
  }

  /** Whether the text added since then is UTF-8 in every row. */
  #isText(slots: readonly ColumnBuilder[], before: readonly number[]): boolean {
    const runtime = this.#runtime!;
    const ascii = (runtime.seen & NOT_ASCII) === 0;
    runtime.seen = 0;
    if (ascii) return true;
    return this.#layout.slots.every((s) => {
      const b = slots[s.id]!;
      return s.type.id !== "utf8" || !(b instanceof BytesBuilder) || this.#isUtf8(b, before[s.id]!);
    });
  }

  /** The bytes as a whole are, and none begins within a character. */
  #isUtf8({ data, offsets, rows }: BytesBuilder, first: number): boolean {
    if (!this.#options.isUtf8(data.subarray(offsets[first]!, offsets[rows]!))) return false;
    for (let r = first; r < rows; r++) {
      const at = offsets[r]!;
      if ((data[at]! & 0xc0) === 0x80 && at < offsets[r + 1]!) return false;
    }
    return true;
  }

  /** Where the value at `from` ends, -1: nobody can tell. What it holds is not looked at. */
  #behind(bytes: Uint8Array, from: number, end: number): number {
    this.#written ??= resolve(this.#writer, this.#writer);
    const written = this.#written;
    return attempt(() => {
      this.#reader.begin(bytes, from, end);
      this.#reader.skip(written, 0);
      return this.#reader.at;
    });
  }

  #explain(bytes: Uint8Array, from: number, to: number, row: number, whole: boolean): DecodeFault {
    try {
      this.#reader.begin(bytes, from, to);
      if (whole) this.#reader.all(this.#plan);
      else this.#reader.read(this.#plan, 0);
    } catch (e) {
      if (!(e instanceof DecodeError)) throw e;
      return { row, code: e.code, path: e.path, reason: e.message };
    }
    throw new Failure("internal.bug", `payload ${row} is refused as columns and read as a Value`);
  }
}

const UTF8 = new TextEncoder();
const NOT_ASCII = 0x80808080 | 0;

function attempt(read: () => number): number {
  try {
    return read();
  } catch (e) {
    if (e instanceof DecodeError) return -1;
    throw e;
  }
}

function compiled({ text, pieces }: Generated, runtime: Runtime): Decode {
  const names = pieces.defaults.flatMap((_, i) => [`K${i}`, `V${i}`]);
  const values = pieces.defaults.flatMap((bytes) => [bytes, runtime.view(bytes)]);
  const make = new Function("R", "L", "E", ...names, text) as (...parts: unknown[]) => Decode;
  return make(runtime, pieces.limits, pieces.symbols, ...values);
}
