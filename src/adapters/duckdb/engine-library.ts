/** The calls of DuckDB's C API that the engine makes (duckdb.h of 1.5). Pointers are plain numbers. */
import { dlopen, FFIType } from "bun:ffi";
import { libduckdbPath } from "./embedded.ts";

const P = FFIType.ptr;
const I32 = FFIType.i32;
const U64 = FFIType.u64;

/** duckdb_result of duckdb.h. */
export const RESULT_WORDS = 6;

/**
 * `duckdb_result` as an argument. On x86-64 a struct of 48 bytes lies on the stack as it is (System V ABI 3.2.3, class
 * MEMORY): six integers that fill the registers, then its words. On arm64 its address is passed (AAPCS64, B.4).
 */
const RESULT_BY_VALUE: FFIType[] =
  process.arch === "x64" ? Array.from({ length: 6 + RESULT_WORDS }, () => U64) : [P];

const SYMBOLS = {
  duckdb_open: { args: [P, P], returns: I32 },
  duckdb_close: { args: [P], returns: FFIType.void },
  duckdb_connect: { args: [P, P], returns: I32 },
  duckdb_disconnect: { args: [P], returns: FFIType.void },
  duckdb_interrupt: { args: [P], returns: FFIType.void },
  duckdb_query: { args: [P, P, P], returns: I32 },
  duckdb_result_error: { args: [P], returns: P },
  duckdb_rows_changed: { args: [P], returns: U64 },
  duckdb_destroy_result: { args: [P], returns: FFIType.void },
  duckdb_query_arrow: { args: [P, P, P], returns: I32 },
  duckdb_query_arrow_error: { args: [P], returns: P },
  duckdb_query_arrow_schema: { args: [P, P], returns: I32 },
  duckdb_query_arrow_array: { args: [P, P], returns: I32 },
  duckdb_destroy_arrow: { args: [P], returns: FFIType.void },
  duckdb_arrow_array_scan: { args: [P, P, P, P, P], returns: I32 },
  duckdb_destroy_arrow_stream: { args: [P], returns: FFIType.void },
  duckdb_prepare: { args: [P, P, P], returns: I32 },
  duckdb_prepare_error: { args: [P], returns: P },
  duckdb_destroy_prepare: { args: [P], returns: FFIType.void },
  duckdb_pending_prepared_streaming: { args: [P, P], returns: I32 },
  duckdb_pending_error: { args: [P], returns: P },
  duckdb_destroy_pending: { args: [P], returns: FFIType.void },
  duckdb_execute_pending: { args: [P, P], returns: I32 },
  duckdb_fetch_chunk: { args: RESULT_BY_VALUE, returns: P },
  duckdb_destroy_data_chunk: { args: [P], returns: FFIType.void },
  duckdb_result_get_arrow_options: { args: [P], returns: P },
  duckdb_destroy_arrow_options: { args: [P], returns: FFIType.void },
  duckdb_data_chunk_to_arrow: { args: [P, P, P], returns: P },
  duckdb_error_data_message: { args: [P], returns: P },
  duckdb_destroy_error_data: { args: [P], returns: FFIType.void },
  duckdb_library_version: { args: [], returns: P },
} as const;

type Call = (...args: (number | bigint | null)[]) => number | bigint;

export type DuckLibrary = { readonly [K in keyof typeof SYMBOLS]: Call } & {
  /**
   * An address that Arrow's `release` members may hold: they must not be null while lent, and DuckDB calls none of
   * what we lend. If it ever did, this function takes no argument and changes nothing.
   */
  readonly releaseAddress: bigint;
};

let library: DuckLibrary | null = null;

/** Loads libduckdb into the process (see embedded.ts) once a thread. Throws `duckdb.library`. */
export function duckLibrary(): DuckLibrary {
  if (library !== null) return library;
  const { symbols } = dlopen(libduckdbPath(), SYMBOLS);
  const calls = symbols as unknown as Record<keyof typeof SYMBOLS, Call>;
  const { ptr } = symbols.duckdb_library_version as unknown as { readonly ptr: bigint | number };
  library = { ...calls, releaseAddress: BigInt(ptr) };
  return library;
}
