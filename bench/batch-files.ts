/**
 * CSV and newline-delimited JSON to Parquet, beside DuckDB's own COPY of the same file with the same compression. The
 * peer is the Python package (TWG_PYTHON), which also hashes both results; without it there is neither peer nor figure.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BenchOptions, type Figure, inTurn, median, ratioOf, round, sameHash } from "./figure.ts";
import { runProcess } from "./process.ts";

const MAKE = `
import duckdb, sys
c = duckdb.connect(); c.execute("set threads = 2")
q = """select i as id, 'customer-' || (i * 7919 % 100000) as customer, timestamp '2026-01-01' + interval (i * 7) millisecond as at,
 (i * 37 % 1000000) / 100.0 as amount, i % 100 as qty, i % 2 = 0 as paid, case when i % 10 = 0 then null else 'note ' || (i % 1000) end as note,
 date '2026-01-01' + (i % 365)::int as due, md5(i::varchar) as tag, 'Some, text "quoted" ' || i as quoted from range({n}) t(i)"""
c.execute(f"copy ({q.format(n=sys.argv[2])}) to '{sys.argv[1]}.csv' (header)")
c.execute(f"copy ({q.format(n=sys.argv[2])}) to '{sys.argv[1]}.ndjson' (format json)")
`;
const COPY = `
import duckdb, sys
c = duckdb.connect(); c.execute("set threads = 2")
f = "read_csv" if sys.argv[1].endswith("csv") else "read_ndjson"
c.execute(f"copy (select * from {f}('{sys.argv[1]}')) to '{sys.argv[2]}' (format parquet, codec 'zstd', compression_level 1, parquet_version v2)")
`;
const HASH = `
import duckdb, sys
print(duckdb.sql(f"select bit_xor(hash(id, customer, \\"at\\"::timestamp, amount, qty, paid, note, due, tag, quoted)) || '/' || count(*) from '{sys.argv[1]}'").fetchall()[0][0])
`;

async function* files(kind: "csv" | "ndjson", o: BenchOptions): AsyncGenerator<Figure> {
  const python = process.env["TWG_PYTHON"];
  if (python === undefined) {
    o.say(`SKIP ${kind}-to-parquet: TWG_PYTHON names no interpreter with duckdb`);
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), "twg-bench-"));
  try {
    const rows = o.small ? 20_000 : 4_000_000;
    await runProcess([python, "-c", MAKE, join(folder, "in"), String(rows)]);
    const input = join(folder, `in.${kind}`);
    const megabytes = statSync(input).size / 1e6;
    const hashOf = async (path: string) => (await runProcess([python, "-c", HASH, path])).stdout.trim();
    const hashes: string[] = [];
    let turn = 0;
    const runs = await inTurn(
      o.rounds,
      async () => {
        const out = join(folder, `out-${turn++}`);
        const ran = await runProcess([...o.twg, "batch", input, "--to", out, "--json"]);
        hashes.push(await hashOf(`${out}/*.parquet`));
        return ran;
      },
      async () => {
        const out = join(folder, `peer-${turn}.parquet`);
        const ran = await runProcess([python, "-c", COPY, input, out]);
        hashes.push(await hashOf(out));
        return ran;
      },
    );
    const value = megabytes / median(runs.subject.map((r) => r.seconds));
    const peer = megabytes / median(runs.peer.map((r) => r.seconds));
    const cpu = (list: readonly { readonly cpu: number }[]) => (median(list.map((r) => r.cpu)) / rows) * 1e6;
    yield {
      bench: `${kind}-to-parquet`,
      subject: "twg batch",
      peer: "DuckDB COPY",
      unit: "MB/s",
      value: round(value),
      peer_value: round(peer),
      ratio: ratioOf(value, peer),
      hash: sameHash(`${kind}-to-parquet`, hashes),
      n: rows,
      cpu_per_million: round(cpu(runs.subject)),
      peer_cpu_per_million: round(cpu(runs.peer)),
      rss_mb: Math.max(...runs.subject.map((r) => r.rssMb ?? 0)),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export const csvToParquet = (o: BenchOptions) => files("csv", o);
export const ndjsonToParquet = (o: BenchOptions) => files("ndjson", o);
