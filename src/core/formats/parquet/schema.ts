/** The Parquet schema of raw files, derived from the list of metadata columns. */
import {
  METADATA_COLUMNS,
  type MetadataColumn,
  type MetadataType,
  metadataName,
} from "../../records/metadata-columns.ts";
import type { ThriftWriter } from "./thrift.ts";

/** parquet.thrift: Type, FieldRepetitionType, ConvertedType. */
export const TYPE = { boolean: 0, int32: 1, int64: 2, byteArray: 6, fixed: 7 } as const;
const REPETITION = { required: 0, optional: 1, repeated: 2 } as const;
const CONVERTED = { utf8: 0, list: 3, timestampMillis: 9 } as const;
const LOGICAL = { string: 1, list: 3, timestamp: 8 } as const;
const UNIT_MILLIS = 1;

const PHYSICAL: Readonly<Record<Exclude<MetadataType, "headers">, number>> = {
  string: TYPE.byteArray,
  bytes: TYPE.byteArray,
  bytes16: TYPE.fixed,
  int32: TYPE.int32,
  int64: TYPE.int64,
  boolean: TYPE.boolean,
  timestamp_ms: TYPE.int64,
};

/** A leaf in file order: what a column chunk's metadata repeats. */
export interface LeafSpec {
  readonly column: MetadataColumn;
  readonly path: readonly string[];
  readonly physical: number;
}

/** Names of the levels of a list (parquet-format LogicalTypes.md, Lists), and of our header entries. */
const LIST = ["list", "element"] as const;

export function leavesOf(prefix: string): readonly LeafSpec[] {
  return METADATA_COLUMNS.flatMap((column) => {
    const name = metadataName(prefix, column);
    if (column.type !== "headers") return [{ column, path: [name], physical: PHYSICAL[column.type] }];
    return ["key", "value"].map((leaf) => ({
      column,
      path: [name, ...LIST, leaf],
      physical: TYPE.byteArray,
    }));
  });
}

/** The root, then every column depth first. Returns the number of elements. */
export function writeSchema(w: ThriftWriter, prefix: string): number {
  w.open().string(4, "twg_raw").i32(5, METADATA_COLUMNS.length).close();
  let n = 1;
  for (const column of METADATA_COLUMNS) {
    const name = metadataName(prefix, column);
    if (column.type === "headers") n += writeHeaders(w, name, column.nullable);
    else n += writeLeaf(w, name, column.type, column.nullable);
  }
  return n;
}

function writeLeaf(
  w: ThriftWriter,
  name: string,
  type: Exclude<MetadataType, "headers">,
  nullable: boolean,
): number {
  w.open().i32(1, PHYSICAL[type]);
  if (type === "bytes16") w.i32(2, 16);
  w.i32(3, nullable ? REPETITION.optional : REPETITION.required).string(4, name);
  if (type === "string") w.i32(6, CONVERTED.utf8).open(10).empty(LOGICAL.string).close();
  if (type === "timestamp_ms") {
    w.i32(6, CONVERTED.timestampMillis).open(10).open(LOGICAL.timestamp);
    w.bool(1, true).open(2).empty(UNIT_MILLIS).close().close().close();
  }
  w.close();
  return 1;
}

/** Header keys carry no text annotation: Kafka does not check that they are UTF-8, and bytes must survive. */
function writeHeaders(w: ThriftWriter, name: string, nullable: boolean): number {
  const repetition = nullable ? REPETITION.optional : REPETITION.required;
  w.open().i32(3, repetition).string(4, name).i32(5, 1).i32(6, CONVERTED.list);
  w.open(10).empty(LOGICAL.list).close().close();
  w.open().i32(3, REPETITION.repeated).string(4, LIST[0]).i32(5, 1).close();
  w.open().i32(3, REPETITION.required).string(4, LIST[1]).i32(5, 2).close();
  writeLeaf(w, "key", "bytes", false);
  writeLeaf(w, "value", "bytes", true);
  return 5;
}
