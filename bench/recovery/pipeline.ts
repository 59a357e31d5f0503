/** A pipeline that is run by the bench, in a folder of its own, and what is said of a run of it beside another. */

import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckEngine, sqlText } from "../../src/adapters/duckdb/engine.ts";
import { type BenchOptions, type Figure, median, medianSeen, ratioOf, round } from "../figure.ts";
import { ORDER_COLUMNS } from "../orders.ts";
import { pipelineConfig } from "../pipeline-config.ts";
import { type Ran, runProcess } from "../process.ts";
import type { Topic } from "../topics.ts";

/** One pipeline in a folder of its own. */
export class Pipeline {
  readonly folder: string = mkdtempSync(join(tmpdir(), "twg-bench-recovery-"));
  readonly #o: BenchOptions;
  readonly #topic: Pick<Topic, "bootstrap" | "name">;
  readonly #rawOptions: string;

  /** `rawOptions`: of the raw sink, as TOML. */
  constructor(o: BenchOptions, topic: Pick<Topic, "bootstrap" | "name">, rawOptions = "") {
    this.#o = o;
    this.#topic = topic;
    this.#rawOptions = rawOptions;
  }

  /** The file of a pipeline with these sinks beside the raw one. `more`: other sections. */
  async config(name: string, sinks: readonly string[], more = ""): Promise<string> {
    const { folder } = this;
    const schema = join(folder, "orders.json");
    const columns = Object.entries(ORDER_COLUMNS).map(([column, type]) => ({ name: column, type }));
    await Bun.write(schema, JSON.stringify({ columns }));
    const file = join(folder, `${name}.toml`);
    const decode = `[decode]\nformat = "json"\nschema_file = "${schema}"\non_error = "fail"`;
    const decoded = sinks.some((s) => s.includes('"decoded"'));
    const { bootstrap, name: topic } = this.#topic;
    const sections = [...sinks, ...(decoded ? [decode] : []), more].join("\n");
    await Bun.write(
      file,
      pipelineConfig({ folder, bootstrap, topic, raw: this.#rawOptions, more: sections }),
    );
    return file;
  }

  stream(config: string): Promise<Ran> {
    return runProcess([...this.#o.twg, "stream", "-c", config, "--until-caught-up"]);
  }

  recover(config: string): Promise<Ran> {
    return runProcess([...this.#o.twg, "recover", "-c", config]);
  }

  /** Of the raw files. */
  rawBytes(): number {
    return this.#rawFiles().reduce((n, f) => n + statSync(f).size, 0);
  }

  /** When the last raw file got its name, seconds since `begun` (of the wall clock, ms). */
  rawSeconds(begun: number): number {
    return (Math.max(...this.#rawFiles().map((f) => statSync(f).mtimeMs)) - begun) / 1000;
  }

  #rawFiles(): readonly string[] {
    const files = readdirSync(join(this.folder, "raw"), { recursive: true, withFileTypes: true });
    return files
      .filter((f) => f.isFile() && f.name.endsWith(".parquet"))
      .map((f) => join(f.parentPath, f.name));
  }

  clear(...folders: readonly string[]): void {
    for (const f of folders) rmSync(join(this.folder, f), { recursive: true, force: true });
  }

  drop(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Count of the rows of Parquet files in a folder, and a hash of these columns. */
  hash(folder: string, columns: readonly string[]): string {
    const engine = new DuckEngine({ threads: 2, memoryBytes: 1 << 30, spill: null, allowed: [this.folder] });
    try {
      const files = sqlText(`${join(this.folder, folder)}/*.parquet`);
      const sql = `SELECT count(*)::VARCHAR || '/' || sum(hash(${columns.join(", ")})::HUGEINT)::VARCHAR AS h FROM read_parquet(${files})`;
      const [batch] = [...engine.batches(sql)];
      const [column] = batch?.columns ?? [];
      return Buffer.from(column?.data.subarray(0, column.offsets?.[1]) ?? []).toString();
    } finally {
      engine.close();
    }
  }
}

/** Of recovery beside the live pipeline that has its sink and the raw one. */
export function figureOf(
  bench: string,
  n: number,
  { subject, peer }: { readonly subject: readonly Ran[]; readonly peer: readonly Ran[] },
  hash: string,
): Figure {
  if (!hash.startsWith(`${n}/`)) throw new Error(`${bench}: ${hash} of ${n} records`);
  const rate = (runs: readonly Ran[]) => median(runs.map((r) => n / r.seconds));
  const cpu = (runs: readonly Ran[]) => median(runs.map((r) => (r.cpu / n) * 1e6));
  return {
    bench,
    subject: "twg recover, whole process",
    peer: "twg stream of the same records into raw and the same sink",
    unit: "records/s",
    value: Math.round(rate(subject)),
    peer_value: Math.round(rate(peer)),
    ratio: ratioOf(rate(subject), rate(peer)),
    hash,
    n,
    cpu_per_million: round(cpu(subject)),
    peer_cpu_per_million: round(cpu(peer)),
    cpu_ratio: round(cpu(subject) / cpu(peer)),
    rss_mb: medianSeen(subject.map((r) => r.rssMb)),
    peer_rss_mb: medianSeen(peer.map((r) => r.rssMb)),
  };
}
