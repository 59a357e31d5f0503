/** Refused records in Parquet files, in a folder or a bucket: counted from the few columns that tell kind and place. */
import { asFailure, Failure } from "../core/failure/failure.ts";
import { type ParquetRow, type ParquetRows, type ParquetSource, withParquetRows } from "./parquet-file.ts";
import { type RejectGroup, RejectGroups } from "./reject-groups.ts";
import { msOf, type RejectSample, type RejectTable, rejectBytes } from "./reject-table.ts";

interface Options {
  /** Of metadata columns. */
  readonly prefix: string;
  /** Samples of each group. */
  readonly samples: number;
}

/** Where a sample is. */
interface Found {
  readonly source: ParquetSource;
  readonly rowGroup: number;
  readonly row: number;
}

/** A file that cannot be read is told and does not hide the others. */
export async function rejectsInFiles(
  sources: readonly ParquetSource[],
  options: Options,
): Promise<RejectTable> {
  const groups = new RejectGroups();
  const failures: Failure[] = [];
  const found = new Map<RejectGroup, Found[]>();
  for (const source of sources) {
    try {
      await withParquetRows(source, (rows) => count(rows, source, options, groups, found));
    } catch (e) {
      failures.push(asFailure(e));
    }
  }
  return {
    ...{ groups, failures, files: sources.length },
    samples: (of) => samplesOf(found, of, options.prefix),
  };
}

const REASONS = ["code", "path"];
const PLACES = ["source_topic", "source_partition", "source_offset", "schema_id"];
const TIMES = ["source_timestamp", "ingest_ts"];

async function count(
  rows: ParquetRows,
  source: ParquetSource,
  { prefix, samples }: Options,
  groups: RejectGroups,
  found: Map<RejectGroup, Found[]>,
): Promise<void> {
  const columns = [...REASONS, ...[...PLACES, ...TIMES].map((c) => prefix + c)];
  const missing = columns.find((c) => !rows.columns.includes(c));
  if (missing !== undefined) {
    const why = `this is no table of rejects: it has no column ${missing}`;
    throw new Failure("inspect.unreadable", why, { at: source.name });
  }
  let first = 0;
  for (const [rowGroup, length] of rows.groups.entries()) {
    for (const [i, row] of (await rows.read(columns, first, first + length)).entries()) {
      const group = groups.add(countOf(row, prefix));
      if (group === null) continue;
      const kept = found.get(group) ?? [];
      found.set(group, kept);
      if (kept.length < samples) kept.push({ source, rowGroup, row: first + i });
    }
    first += length;
  }
}

function countOf(row: ParquetRow, prefix: string) {
  const offset = bigOf(row[`${prefix}source_offset`]);
  const ms = timeOf(row, prefix);
  return {
    code: textOf(row.code),
    topic: textOf(row[`${prefix}source_topic`]),
    schemaId: row[`${prefix}schema_id`] == null ? null : textOf(row[`${prefix}schema_id`]),
    path: textOf(row.path),
    partition: Number(row[`${prefix}source_partition`] ?? 0),
    ...{ records: 1, firstOffset: offset, lastOffset: offset, firstMs: ms, lastMs: ms },
  };
}

/** Of the record; else when it came. */
function timeOf(row: ParquetRow, prefix: string): number | null {
  return msOf(row[`${prefix}source_timestamp`]) ?? msOf(row[`${prefix}ingest_ts`]);
}

/** Row groups that hold a sample are read once each, from the first of their samples to the last. */
async function samplesOf(
  found: ReadonlyMap<RejectGroup, readonly Found[]>,
  of: readonly RejectGroup[],
  prefix: string,
): Promise<Map<RejectGroup, RejectSample[]>> {
  const places = ["source_partition", "source_offset", ...TIMES, "source_key", "source_value"];
  const columns = ["path", "message", ...places.map((c) => prefix + c)];
  const samples = new Map<RejectGroup, RejectSample[]>(of.map((g) => [g, []]));
  const all = of.flatMap((group) => (found.get(group) ?? []).map((f) => ({ ...f, group })));
  for (const [source, inFile] of Map.groupBy(all, (f) => f.source))
    await withParquetRows(source, async (rows) => {
      for (const some of Map.groupBy(inFile, (f) => f.rowGroup).values()) {
        const numbers = some.map((f) => f.row);
        const first = Math.min(...numbers);
        const read = await rows.read(columns, first, Math.max(...numbers) + 1);
        for (const { group, row } of some) samples.get(group)?.push(sampleOf(read[row - first]!, prefix));
      }
    });
  return samples;
}

function sampleOf(row: ParquetRow, prefix: string): RejectSample {
  return {
    partition: Number(row[`${prefix}source_partition`] ?? 0),
    offset: bigOf(row[`${prefix}source_offset`]),
    ms: timeOf(row, prefix),
    path: textOf(row.path),
    message: textOf(row.message),
    key: rejectBytes(row[`${prefix}source_key`]),
    value: rejectBytes(row[`${prefix}source_value`]),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function bigOf(value: unknown): bigint {
  return typeof value === "bigint" ? value : BigInt(typeof value === "number" ? value : -1);
}
