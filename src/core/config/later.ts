/**
 * Names of the design that this version cannot run. They are refused by name, with the reason: an option that is
 * silently ignored would be a promise that nobody keeps.
 */

export const LATER_SECTIONS: ReadonlyMap<string, string> = new Map([
  [
    "contract",
    "rules of data contracts are not in this version; their columns are: name the file as `schema_file` of [decode]",
  ],
  ["dq", "data quality rules are not in this version"],
  ["transform", "SQL transforms are not in this version"],
  ["sub_transform", "SQL transforms are not in this version"],
  ["dlq", "dead letters are not in this version: raw records are never rejected"],
  ["catalog", "table catalogs are not in this version"],
]);

/** Options of sections that exist, by path without indexes. */
export const LATER_OPTIONS: ReadonlyMap<string, string> = new Map([
  ["observability.otlp", "telemetry by OTLP is not in this version; /metrics is"],
]);

export const LATER_SOURCES: readonly string[] = ["pulsar", "flight", "arrow_ipc", "delta_sharing"];
export const LATER_SINKS: readonly string[] = ["iceberg", "flight", "arrow_ipc", "zerobus", "delta"];

/** Values of `receives` that need later lanes. */
export const LATER_RECEIVES =
  "this version has raw, decoded and rejected records (no audit and no transforms yet)";
