/**
 * A query whose rows are taken while it runs, chunk by chunk, so that a result of any size needs the memory of one
 * chunk. Chunks are copied out over the Arrow C Data Interface.
 */
import { CString, type Pointer, ptr } from "bun:ffi";
import type { ColumnField, TableBatch } from "../../core/types/table-batch.ts";
import { columnOf, release } from "./arrow-take.ts";
import { engineFailure } from "./engine-failure.ts";
import { type DuckLibrary, RESULT_WORDS } from "./engine-library.ts";

const ARRAY_WORDS = 10;
const NO_REGISTER = 0;

const textAt = (at: number | bigint): string =>
  Number(at) === 0 ? "unknown error" : new CString(Number(at) as Pointer).toString();

/** One pointer that a call writes, or that a call frees through its address. */
class Handle {
  readonly #word: BigUint64Array;

  /** bun:ffi says null for an address of 0. */
  constructor(value: number | bigint | null = null) {
    this.#word = new BigUint64Array([BigInt(value ?? 0)]);
  }

  get value(): number {
    return Number(this.#word[0]);
  }

  get address(): number {
    return ptr(this.#word);
  }
}

/** `fields`: what the result has, its types as DuckDB gives them. The caller knows, or asks with LIMIT 0 (`batches`). */
export function* streamQuery(
  lib: DuckLibrary,
  connection: number,
  sql: string,
  fields: readonly ColumnField[],
): Generator<TableBatch> {
  const statement = new Handle();
  const pending = new Handle();
  const result = new BigUint64Array(RESULT_WORDS);
  try {
    if (lib.duckdb_prepare(connection, ptr(Buffer.from(`${sql}\0`)), statement.address) !== 0)
      throw engineFailure(textAt(lib.duckdb_prepare_error(statement.value)));
    if (lib.duckdb_pending_prepared_streaming(statement.value, pending.address) !== 0)
      throw engineFailure(textAt(lib.duckdb_pending_error(pending.value)));
    if (lib.duckdb_execute_pending(pending.value, ptr(result)) !== 0)
      throw engineFailure(textAt(lib.duckdb_result_error(ptr(result))));
    yield* chunksOf(lib, result, fields);
  } finally {
    lib.duckdb_destroy_result(ptr(result));
    lib.duckdb_destroy_pending(pending.address);
    lib.duckdb_destroy_prepare(statement.address);
  }
}

function* chunksOf(
  lib: DuckLibrary,
  result: BigUint64Array,
  fields: readonly ColumnField[],
): Generator<TableBatch> {
  const options = new Handle(lib.duckdb_result_get_arrow_options(ptr(result)));
  try {
    for (;;) {
      const chunk = new Handle(fetchChunk(lib, result));
      if (chunk.value === 0) {
        const error = lib.duckdb_result_error(ptr(result));
        if (Number(error) !== 0) throw engineFailure(textAt(error));
        return;
      }
      const batch = taken(lib, options, chunk, fields);
      if (batch !== null) yield batch;
    }
  } finally {
    lib.duckdb_destroy_arrow_options(options.address);
  }
}

function fetchChunk(lib: DuckLibrary, result: BigUint64Array): number | bigint {
  if (process.arch !== "x64") return lib.duckdb_fetch_chunk(ptr(result));
  const registers = new Array<number>(6).fill(NO_REGISTER);
  return lib.duckdb_fetch_chunk(...registers, ...result);
}

function taken(
  lib: DuckLibrary,
  options: Handle,
  chunk: Handle,
  fields: readonly ColumnField[],
): TableBatch | null {
  const array = new BigInt64Array(ARRAY_WORDS);
  try {
    const error = new Handle(lib.duckdb_data_chunk_to_arrow(options.value, chunk.value, ptr(array)));
    if (error.value !== 0) {
      const why = textAt(lib.duckdb_error_data_message(error.value));
      lib.duckdb_destroy_error_data(error.address);
      throw engineFailure(why);
    }
    const root = columnOf({ name: "", nullable: false, type: { id: "struct", fields } }, ptr(array));
    return root.length === 0 ? null : { fields, columns: root.children, rows: root.length };
  } finally {
    release(ptr(array), 8);
    lib.duckdb_destroy_data_chunk(chunk.address);
  }
}
