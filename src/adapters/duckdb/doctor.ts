/** The native libraries' part of `twg doctor`: unpacked, loaded, and each codec checked against vectors. */
import { asFailure } from "../../core/failure/failure.ts";
import { type Checkup, failedBy, ok, warning } from "../../core/ports/doctor.ts";
import { libduckdbPath, loadRuntime } from "./embedded.ts";
import { loadNative } from "./native.ts";

export function nativeCheckup(): Checkup {
  return {
    name: "native",
    at: "libduckdb",
    async run({ report }) {
      let path: string;
      try {
        loadRuntime();
        path = libduckdbPath();
        report(ok("native.library", "libduckdb", path));
      } catch (e) {
        report(failedBy("native.library", "libduckdb", asFailure(e)));
        return;
      }
      const slow = Object.entries(loadNative(path).report.fallback).filter(([, why]) => why !== null);
      const seen = slow.map(([name, why]) => `${name}: ${why}`).join("; ");
      const advice = "They work and are slower. Please report it with this line";
      if (slow.length === 0)
        report(ok("native.codecs", "libduckdb", "crc32c, lz4, snappy, zstd: native, as their vectors say"));
      else report(warning("native.codecs", "libduckdb", seen, advice));
    },
  };
}
