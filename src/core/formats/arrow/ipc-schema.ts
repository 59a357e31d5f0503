/**
 * The schema of an Arrow IPC file, stream or single message (columnar format, "Serialization and IPC"): the first message,
 * which is all that is read.
 *
 *   file     "ARROW1", two bytes, then a stream      message   ff ff ff ff, int32 length, flatbuffer of that length
 *            (before 0.15 a message began with its length)
 */
import { Failure } from "../../failure/failure.ts";
import type { ArrowField, ArrowType, Unit } from "./fields.ts";
import { FlatTable } from "./flat-table.ts";

const MAGIC = [0x41, 0x52, 0x52, 0x4f, 0x57, 0x31];
const BEGIN = 8;
const CONTINUATION = 0xffffffff;
const SCHEMA_HEADER = 1;
const BIG_ENDIAN = 1;
const MAX_DEPTH = 64;
/** Fields may share their bytes, so that few of those could be any number of these. */
const MAX_FIELDS = 20_000;
const UNITS: readonly Unit[] = ["s", "ms", "us", "ns"];

/** Whether bytes look like one of the three: a magic word or a message. */
export function isArrowIpc(bytes: Uint8Array): boolean {
  return startsFile(bytes) || (bytes.length >= 8 && [0, 1, 2, 3].every((i) => bytes[i] === 0xff));
}

const startsFile = (bytes: Uint8Array): boolean => MAGIC.every((b, i) => bytes[i] === b);

/** Throws files.schema. `at`: the file. */
export function arrowFieldsOfIpc(bytes: Uint8Array, at: string): ArrowField[] {
  const bad = (why: string, cause?: unknown) =>
    new Failure("files.schema", `the Arrow file cannot be read: ${why}`, { at, cause });
  try {
    const message = FlatTable.root(firstMessage(bytes, startsFile(bytes) ? BEGIN : 0));
    const schema = message.byte(1) === SCHEMA_HEADER ? message.table(2) : null;
    if (schema === null) throw bad("its first message is no schema");
    if (schema.short(0, 0) === BIG_ENDIAN) throw bad("it is written big endian");
    const left = { fields: MAX_FIELDS };
    return schema.tables(1).map((f) => fieldOf(f, 0, left));
  } catch (e) {
    if (e instanceof Failure) throw e;
    if (e instanceof RangeError || e instanceof TypeError) throw bad("its schema is damaged or cut short", e);
    throw e;
  }
}

function firstMessage(bytes: Uint8Array, begin: number): Uint8Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const from = view.getUint32(begin, true) === CONTINUATION ? begin + 4 : begin;
  const length = view.getInt32(from, true);
  if (length <= 0 || length > bytes.length - from - 4) throw new RangeError("a message that is not there");
  return bytes.subarray(from + 4, from + 4 + length);
}

/** Places of Field's members in Schema.fbs. */
const FIELD = { name: 0, nullable: 1, typeId: 2, type: 3, children: 5, metadata: 6 } as const;

function fieldOf(f: FlatTable, depth: number, left: { fields: number }): ArrowField {
  if (depth > MAX_DEPTH || --left.fields < 0) throw new RangeError("fields nest without end");
  const metadata = new Map(f.tables(FIELD.metadata).map((pair) => [pair.text(0), pair.text(1)]));
  return {
    name: f.text(FIELD.name) ?? "",
    nullable: f.byte(FIELD.nullable) !== 0,
    type: typeOf(f.byte(FIELD.typeId), f.table(FIELD.type)),
    children: f.tables(FIELD.children).map((c) => fieldOf(c, depth + 1, left)),
    extension: metadata.get("ARROW:extension:name") ?? null,
  };
}

/** By the numbers of Schema.fbs's union Type. */
const PLAIN: ReadonlyMap<number, ArrowType> = new Map<number, ArrowType>([
  [1, { name: "null" }],
  [4, { name: "binary" }],
  [5, { name: "utf8" }],
  [6, { name: "bool" }],
  [8, { name: "date" }],
  [12, { name: "list" }],
  [13, { name: "struct" }],
  [14, { name: "other", called: "a union" }],
  [16, { name: "list" }],
  [17, { name: "map" }],
  [18, { name: "other", called: "a duration" }],
  [19, { name: "binary" }],
  [20, { name: "utf8" }],
  [21, { name: "list" }],
  [22, { name: "runs" }],
  [23, { name: "binary" }],
  [24, { name: "utf8" }],
  [25, { name: "list" }],
  [26, { name: "list" }],
]);

function typeOf(id: number, t: FlatTable | null): ArrowType {
  const plain = PLAIN.get(id);
  if (plain !== undefined) return plain;
  if (t === null) return { name: "other", called: `type ${id}` };
  switch (id) {
    case 2:
      return { name: "int", bits: known(t.int(0, 0), INTS), signed: t.byte(1) !== 0 };
    case 3:
      return { name: "float", bits: known(16 << t.short(0, 0), FLOATS) };
    case 7:
      return { name: "decimal", precision: t.int(0, 0), scale: t.int(1, 0) };
    case 9:
      return { name: "time", unit: unitOf(t.short(0, 1)) };
    case 10:
      return { name: "timestamp", unit: unitOf(t.short(0, 0)), zone: t.text(1) };
    case 11:
      return t.short(0, 0) === 2
        ? { name: "months" }
        : { name: "other", called: "an interval of months or days" };
    case 15:
      return { name: "fixed", bytes: t.int(0, 0) };
    default:
      return { name: "other", called: `type ${id}` };
  }
}

const INTS = [8, 16, 32, 64];
const FLOATS = [16, 32, 64];

function known(bits: number, allowed: readonly number[]): number {
  if (allowed.includes(bits)) return bits;
  throw new RangeError(`a number of ${bits} bits`);
}

function unitOf(n: number): Unit {
  const unit = UNITS[n];
  if (unit === undefined) throw new RangeError(`a unit of ${n}`);
  return unit;
}
