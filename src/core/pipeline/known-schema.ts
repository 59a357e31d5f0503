/** What is known of a schema that payloads name, and how its fate is told. */
import type { DecodeFault, RecordDecoder } from "../codecs/record-codec.ts";
import { Failure } from "../failure/failure.ts";
import type { Undecodable } from "../ports/lane.ts";
import { recordPlace } from "../records/int64-at.ts";
import type { RawBatch } from "../records/raw-batch.ts";
import type { SchemaRef, SchemaText } from "../schema/resolver.ts";
import type { ColumnBuilder } from "../types/column-builder.ts";
import type { RefusedRecord } from "./derived.ts";

/** A schema that payloads name: how to read it, or why nobody can. */
export interface Known {
  readonly schemaId: string;
  /** It is open to further fields. */
  readonly open: SchemaText | null;
  /** Reasons of refusals that nothing came of. */
  readonly futile: Set<string>;
  readonly decoder: RecordDecoder | null;
  readonly columns: readonly ColumnBuilder[];
  readonly fault: Pick<DecodeFault, "code" | "path" | "reason"> | null;
  /** Columns that name a record, as its contract declares; none: nothing does. */
  readonly naturalKey: readonly string[];
  /** Monotonic ms from which on it is asked for again; null: what is known of it holds. */
  again: number | null;
}

export function refText(ref: SchemaRef): string {
  return ref.by === "id" ? String(ref.id) : ref.by === "guid" ? ref.guid : "";
}

/** The same of no use: it cannot share the table. */
export function unlike({ schemaId, futile, naturalKey }: Known, differences: readonly string[]): Known {
  const reason = `the schema does not fit the table: ${differences.join("; ")}`;
  const fault = { code: "decode.incompatible", path: "", reason } as const;
  return { schemaId, decoder: null, columns: [], fault, open: null, again: null, futile, naturalKey };
}

/** Those of each code, and where the first of them stands. */
export function undecodables(batch: RawBatch, refused: readonly RefusedRecord[]): Undecodable[] {
  const { topic } = batch.stream;
  return [...Map.groupBy(refused, (r) => r.code)].map(([code, all]) => {
    const { row, path } = all[0]!;
    return { code, records: all.length, topic, first: recordPlace(batch, row), path };
  });
}

/** The end of a lane that is to stop at such a record. */
export function undecodable(batch: RawBatch, r: RefusedRecord): Failure {
  const path = r.path === "" ? "" : ` at ${r.path}`;
  return new Failure("decode.failed", `${r.code}${path}: ${r.message}`, {
    at: recordPlace(batch, r.row),
    hint: 'on_error = "reject" of [decode] keeps such records in a sink with receives = "rejected" and goes on',
  });
}
