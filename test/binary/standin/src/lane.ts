/** The stand-in's Worker: loads libduckdb on its own thread, as a lane does. */
import { dlopen, FFIType } from "bun:ffi";
import { libduckdbPath } from "../../../../src/adapters/duckdb/embedded.ts";

declare const self: Worker;

self.onmessage = () => {
  const lib = dlopen(libduckdbPath(), { duckdb_library_version: { args: [], returns: FFIType.cstring } });
  postMessage(`worker has duckdb ${lib.symbols.duckdb_library_version()}`);
};
