/**
 * DuckDB as an engine over columns: one database in memory and one connection, used by one thread. Every call blocks
 * the thread, so callers give it bounded work (some 250 ms) and live in a lane. It reads and writes nothing but files
 * in memory and what `allowed` names, installs nothing, and no query can change that.
 */
import { CString, type Pointer, ptr } from "bun:ffi";
import type { TableBatch } from "../../core/types/table-batch.ts";
import { LentBatch } from "./arrow-lend.ts";
import { columnOf, fieldOf, release } from "./arrow-take.ts";
import { engineFailure } from "./engine-failure.ts";
import { type DuckLibrary, duckLibrary } from "./engine-library.ts";
import { MEMORY_FOLDER } from "./memory-file.ts";
import { streamQuery } from "./stream-query.ts";

export interface EngineOptions {
  readonly threads: number;
  readonly memoryBytes: number;
  /** Where it may spill; null: it may not, and fails with duckdb.out_of_memory instead. */
  readonly spill: string | null;
  /** Folders it may read and write besides files in memory. */
  readonly allowed: readonly string[];
}

/** sizeof(duckdb_result) of duckdb.h, with room to spare. */
const RESULT_BYTES = 64;
const SCHEMA_WORDS = 9;
const ARRAY_WORDS = 10;

export function sqlText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

export function sqlName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export class DuckEngine {
  readonly #lib: DuckLibrary;
  readonly #db: BigUint64Array;
  readonly #ownsDatabase: boolean;
  readonly #con = new BigUint64Array(1);
  #lends = 0;

  /**
   * Throws duckdb.library, or duckdb.query for options that it refuses. `beside`: another connection to the database of
   * that engine, which is closed after this one; the options are that one's.
   */
  constructor(options: EngineOptions | { readonly beside: DuckEngine }) {
    this.#lib = duckLibrary();
    this.#ownsDatabase = !("beside" in options);
    this.#db = "beside" in options ? options.beside.#db : new BigUint64Array(1);
    if (this.#ownsDatabase && this.#lib.duckdb_open(null, ptr(this.#db)) !== 0)
      throw engineFailure("the database cannot be opened");
    if (this.#lib.duckdb_connect(Number(this.#db[0]), ptr(this.#con)) !== 0)
      throw engineFailure("the database takes no connection");
    if ("beside" in options) return;
    const folders = [MEMORY_FOLDER, ...options.allowed].map(sqlText).join(", ");
    for (const setting of [
      `threads = ${options.threads}`,
      `memory_limit = '${options.memoryBytes}B'`,
      `temp_directory = ${sqlText(options.spill ?? "")}`,
      "autoinstall_known_extensions = false",
      "autoload_known_extensions = false",
      "TimeZone = 'UTC'",
      // It knows files by name and time; files in memory share both.
      "enable_external_file_cache = false",
      `allowed_directories = [${folders}]`,
      "enable_external_access = false",
      "lock_configuration = true",
    ]) {
      this.run(`SET ${setting}`);
    }
  }

  /** Address of the connection: `interruptEngine` of any thread ends the query that runs on it. */
  get connection(): number {
    return Number(this.#con[0]);
  }

  /** Runs one statement; gives the rows that it changed. Throws duckdb.* with DuckDB's words. */
  run(sql: string): number {
    const result = new Uint8Array(RESULT_BYTES);
    const statement = Buffer.from(`${sql}\0`);
    try {
      if (this.#lib.duckdb_query(this.connection, ptr(statement), ptr(result)) !== 0)
        throw engineFailure(errorText(this.#lib.duckdb_result_error(ptr(result))));
      return Number(this.#lib.duckdb_rows_changed(ptr(result)));
    } finally {
      this.#lib.duckdb_destroy_result(ptr(result));
    }
  }

  /**
   * Rows of a query in batches of some 2,000 rows, copied out of native memory. DuckDB holds the whole result while
   * they are taken: bound it in the query.
   */
  *batches(sql: string): Generator<TableBatch> {
    const result = new BigUint64Array(1);
    const statement = Buffer.from(`${sql}\0`);
    const handle = (): number => Number(result[0]);
    try {
      if (this.#lib.duckdb_query_arrow(this.connection, ptr(statement), ptr(result)) !== 0)
        throw engineFailure(errorText(this.#lib.duckdb_query_arrow_error(handle())));
      const fields = this.#fields(handle());
      for (;;) {
        const batch = this.#next(handle(), fields);
        if (batch === null) return;
        yield batch;
      }
    } finally {
      this.#lib.duckdb_destroy_arrow(ptr(result));
    }
  }

  /** Rows of a query as they are made, in batches of some 2,000: DuckDB holds but what it works on. */
  stream(sql: string, fields: TableBatch["fields"]): Generator<TableBatch> {
    return streamQuery(this.#lib, this.connection, sql, fields);
  }

  /** Columns of a query and their types, before it is run. */
  fieldsOf(sql: string): TableBatch["fields"] {
    const result = new BigUint64Array(1);
    const statement = Buffer.from(`SELECT * FROM (${sql}) LIMIT 0\0`);
    try {
      if (this.#lib.duckdb_query_arrow(this.connection, ptr(statement), ptr(result)) !== 0)
        throw engineFailure(errorText(this.#lib.duckdb_query_arrow_error(Number(result[0]))));
      return this.#fields(Number(result[0]));
    } finally {
      this.#lib.duckdb_destroy_arrow(ptr(result));
    }
  }

  #fields(result: number): TableBatch["fields"] {
    const schema = new BigInt64Array(SCHEMA_WORDS);
    const at = new BigUint64Array([BigInt(ptr(schema))]);
    if (this.#lib.duckdb_query_arrow_schema(result, ptr(at)) !== 0)
      throw engineFailure(errorText(this.#lib.duckdb_query_arrow_error(result)));
    const { type } = fieldOf(ptr(schema));
    release(ptr(schema), 7);
    return type.id === "struct" ? type.fields : [];
  }

  #next(result: number, fields: TableBatch["fields"]): TableBatch | null {
    const array = new BigInt64Array(ARRAY_WORDS);
    const at = new BigUint64Array([BigInt(ptr(array))]);
    if (this.#lib.duckdb_query_arrow_array(result, ptr(at)) !== 0)
      throw engineFailure(errorText(this.#lib.duckdb_query_arrow_error(result)));
    // At the end DuckDB leaves the struct as it was.
    if (array[8] === 0n) return null;
    try {
      const root = columnOf({ name: "", nullable: false, type: { id: "struct", fields } }, ptr(array));
      return root.length === 0 ? null : { fields, columns: root.children, rows: root.length };
    } finally {
      release(ptr(array), 8);
    }
  }

  /** Calls `use` with the name of a view of the batch. Its arrays must not change meanwhile. */
  lend<T>(batch: TableBatch, use: (view: string) => T): T {
    const lent = new LentBatch(batch, this.#lib.releaseAddress);
    const view = `lent_${this.#lends++}`;
    const stream = new BigUint64Array(1);
    const name = Buffer.from(`${view}\0`);
    const { schema, array } = lent;
    if (this.#lib.duckdb_arrow_array_scan(this.connection, ptr(name), schema, array, ptr(stream)) !== 0)
      throw engineFailure("a batch of columns was not taken");
    try {
      return use(view);
    } finally {
      this.run(`DROP VIEW IF EXISTS ${view}`);
      this.#lib.duckdb_destroy_arrow_stream(ptr(stream));
      // Last: everything above may follow the addresses.
      lent.held();
    }
  }

  close(): void {
    this.#lib.duckdb_disconnect(ptr(this.#con));
    if (this.#ownsDatabase) this.#lib.duckdb_close(ptr(this.#db));
  }
}

/** Ends the query that runs on the connection of an engine, of whatever thread. The engine must not be closed yet. */
export function interruptEngine(connection: number): void {
  duckLibrary().duckdb_interrupt(connection);
}

function errorText(at: number | bigint): string {
  return Number(at) === 0 ? "unknown error" : new CString(Number(at) as Pointer).toString();
}
