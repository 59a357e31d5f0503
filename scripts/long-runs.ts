/** Long commands in a small size, so that they cannot rot; each is one test of the whole run. */
export interface LongRun {
  /** Of its log, and in scripts/served-seconds.json. */
  readonly name: string;
  readonly script: string;
  readonly args: readonly string[];
  /** Fields that must be 0 in every JSON line. */
  readonly zero: readonly string[];
}
export const LONG_RUNS: readonly LongRun[] = [
  {
    name: "sim",
    script: "sim",
    args: ["--scenario", "raw", "--seeds", "100", "--json"],
    zero: ["failed"],
  },
  {
    name: "fuzz",
    script: "fuzz",
    args: ["--cases", "8000", "--json"],
    zero: ["crashes", "hangs"],
  },
  {
    name: "torture-parquet",
    script: "torture",
    args: ["--sink", "parquet", "--kills", "8", "--seed", "1", "--json"],
    zero: ["lost", "doubled", "orphans"],
  },
  {
    name: "torture-s3",
    script: "torture",
    args: ["--sink", "s3", "--proxy", "0.05", "--kills", "5", "--seed", "2", "--json"],
    zero: ["lost", "doubled", "orphans"],
  },
  {
    name: "torture-postgres",
    script: "torture",
    args: ["--sink", "postgres", "--kills", "6", "--records", "20000", "--seed", "2", "--json"],
    zero: ["lost", "doubled", "orphans"],
  },
  {
    name: "torture-kafka",
    script: "torture",
    args: ["--sink", "kafka", "--kills", "2", "--records", "3000", "--seed", "3", "--json"],
    zero: ["lost", "doubled", "orphans", "differences"],
  },
  {
    name: "torture-groups",
    script: "torture",
    args: ["--scenario", "groups", "--members", "3", "--minutes", "0.2", "--seed", "1", "--json"],
    zero: ["lost", "doubled", "orphans", "stuck", "intruders", "died", "differences"],
  },
  {
    name: "torture-batch",
    script: "torture",
    args: ["--sink", "batch", "--destination", "postgres", "--kills", "4", "--records", "20000", "--json"],
    zero: ["lost", "doubled", "orphans", "differing_rejects"],
  },
  { name: "bench", script: "bench", args: ["--small", "--json"], zero: [] },
];
