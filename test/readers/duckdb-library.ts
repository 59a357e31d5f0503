/**
 * SQL through the libduckdb that ships, as a second opinion on our files: a few calls of its C API over bun:ffi,
 * every value as text. The database lives in memory, may read nothing but the folder given, and cannot be
 * reconfigured by a query.
 */
import { CString, dlopen, FFIType, type Pointer, ptr } from "bun:ffi";

const P = FFIType.ptr;
const U64 = FFIType.u64;
const SYMBOLS = {
  duckdb_open: { args: [P, P], returns: FFIType.i32 },
  duckdb_close: { args: [P], returns: FFIType.void },
  duckdb_connect: { args: [P, P], returns: FFIType.i32 },
  duckdb_disconnect: { args: [P], returns: FFIType.void },
  duckdb_query: { args: [P, P, P], returns: FFIType.i32 },
  duckdb_result_error: { args: [P], returns: P },
  duckdb_destroy_result: { args: [P], returns: FFIType.void },
  duckdb_row_count: { args: [P], returns: U64 },
  duckdb_column_count: { args: [P], returns: U64 },
  duckdb_value_varchar: { args: [P, U64, U64], returns: P },
  duckdb_free: { args: [P], returns: FFIType.void },
} as const;

/** sizeof(duckdb_result) of duckdb.h, with room to spare. */
const RESULT_BYTES = 64;

export interface Engine {
  /** All rows; a cell is the text that DuckDB casts it to, or null. */
  query(sql: string): (string | null)[][];
  close(): void;
}

const text = (s: string) => Buffer.from(`${s}\0`);

export function openEngine(libPath: string, folder: string): Engine {
  const { symbols: d } = dlopen(libPath, SYMBOLS);
  const db = new BigUint64Array(1);
  const con = new BigUint64Array(1);
  if (d.duckdb_open(null, ptr(db)) !== 0) throw new Error("duckdb_open failed");
  if (d.duckdb_connect(Number(db[0]) as Pointer, ptr(con)) !== 0) throw new Error("duckdb_connect failed");

  function run(sql: string): (string | null)[][] {
    const result = new Uint8Array(RESULT_BYTES);
    const statement = text(sql);
    try {
      if (d.duckdb_query(Number(con[0]) as Pointer, ptr(statement), ptr(result)) !== 0) {
        const why = d.duckdb_result_error(ptr(result));
        throw new Error(why === null ? "duckdb_query failed" : new CString(why).toString());
      }
      return cells(result);
    } finally {
      d.duckdb_destroy_result(ptr(result));
    }
  }

  function cells(result: Uint8Array): (string | null)[][] {
    const rows = Number(d.duckdb_row_count(ptr(result)));
    const columns = Number(d.duckdb_column_count(ptr(result)));
    return Array.from({ length: rows }, (_, r) =>
      Array.from({ length: columns }, (_, c) => {
        const at = d.duckdb_value_varchar(ptr(result), BigInt(c), BigInt(r));
        if (at === null) return null;
        const value = new CString(at).toString();
        d.duckdb_free(at);
        return value;
      }),
    );
  }

  for (const setting of [
    "threads = 1",
    "memory_limit = '512MB'",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    `allowed_directories = ['${folder.replaceAll("'", "''")}']`,
    "enable_external_access = false",
    "lock_configuration = true",
  ]) {
    run(`SET ${setting}`);
  }
  return {
    // Lists and structs have no text in this API; a cast in the query gives them one.
    query: (sql) => run(`SELECT COLUMNS(*)::VARCHAR FROM (${sql})`),
    close() {
      d.duckdb_disconnect(ptr(con));
      d.duckdb_close(ptr(db));
    },
  };
}
