/**
 * A stand-in program for the tests of the build: the smallest thing that does what twg does with its binary.
 *   main --version | duckdb | crc | worker | env
 */
import { dlopen, FFIType } from "bun:ffi";
import { libduckdbPath, loadRuntime } from "../../../../src/adapters/duckdb/embedded.ts";

const [, , command] = process.argv;
switch (command) {
  case "--version":
    console.log("standin 0.0.0");
    break;
  case "duckdb": {
    const path = libduckdbPath();
    const lib = dlopen(path, { duckdb_library_version: { args: [], returns: FFIType.cstring } });
    console.log(`duckdb ${lib.symbols.duckdb_library_version()} from ${path}`);
    break;
  }
  case "crc": {
    loadRuntime();
    const { crc32c } = await import("@node-rs/crc32");
    console.log(`crc32c ${crc32c("123456789").toString(16)}`);
    break;
  }
  case "worker": {
    const worker = new Worker("./src/lane.ts");
    worker.onerror = (e) => {
      console.log(`worker failed: ${e.message}`);
      process.exit(1);
    };
    worker.onmessage = (e: MessageEvent<string>) => {
      console.log(e.data);
      worker.terminate();
    };
    worker.postMessage("ping");
    break;
  }
  case "env":
    console.log(`PLANTED=${process.env.PLANTED ?? ""}`);
    break;
  default:
    console.log(`unknown command ${command}`);
    process.exit(2);
}
