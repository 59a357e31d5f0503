/**
 * Recovery, beside what it is measured by: the same records live, and what the sink alone takes. All on one machine, in
 * turn, rows compared by a hash of their columns.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckEngine, sqlText } from "../src/adapters/duckdb/engine.ts";
import {
  type BenchOptions,
  type Figure,
  inTurn,
  median,
  medianSeen,
  ratioOf,
  round,
  sameHash,
} from "./figure.ts";
import { ORDER_COLUMNS } from "./orders.ts";
import { type Ran, runProcess } from "./process.ts";
import { type Topic, topicOf } from "./topics.ts";

/** One pipeline in a folder of its own. */
class Pipeline {
  readonly folder: string = mkdtempSync(join(tmpdir(), "twg-bench-recovery-"));
  readonly #o: BenchOptions;
  readonly #topic: Pick<Topic, "bootstrap" | "name">;

  constructor(o: BenchOptions, topic: Pick<Topic, "bootstrap" | "name">) {
    this.#o = o;
    this.#topic = topic;
  }

  /** The file of a pipeline with these sinks beside the raw one. `more`: other sections. */
  async config(name: string, sinks: readonly string[], more = ""): Promise<string> {
    const { folder } = this;
    const schema = join(folder, "orders.json");
    const columns = Object.entries(ORDER_COLUMNS).map(([column, type]) => ({ name: column, type }));
    await Bun.write(schema, JSON.stringify({ columns }));
    const file = join(folder, `${name}.toml`);
    await Bun.write(
      file,
      `[pipeline]
name = "bench"
state_dir = "${folder}/state"
[source]
type = "kafka"
bootstrap = ["${this.#topic.bootstrap}"]
topics = ["${this.#topic.name}"]
start = "earliest"
[[sink]]
name = "raw"
type = "parquet"
role = "primary_raw"
path = "${folder}/raw"
${sinks.join("\n")}
${sinks.some((s) => s.includes('"decoded"')) ? `[decode]\nformat = "json"\nschema_file = "${schema}"\non_error = "fail"` : ""}
${more.includes("[observability]") ? "" : '[observability]\nlisten = "off"'}
${more}
`,
    );
    return file;
  }

  stream(config: string): Promise<Ran> {
    return runProcess([...this.#o.twg, "stream", "-c", config, "--until-caught-up"]);
  }

  recover(config: string): Promise<Ran> {
    return runProcess([...this.#o.twg, "recover", "-c", config]);
  }

  clear(...folders: readonly string[]): void {
    for (const f of folders) rmSync(join(this.folder, f), { recursive: true, force: true });
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

export async function* recovery(o: BenchOptions): AsyncGenerator<Figure> {
  const topic = await topicOf(o, "orders", "none", o.small ? 20_000 : 2_000_000);
  if (topic === null) return;
  try {
    yield* intoParquet(o, topic);
  } finally {
    await topic.release();
  }
}

const TYPED = `[[sink]]
name = "side"
type = "parquet"
receives = "decoded"
path = "FOLDER/side"`;
const COPY = TYPED.replace("decoded", "raw");
/** What is stamped by who writes is left out. */
const KEPT = ["_twg_source_partition", "_twg_source_offset", "_twg_record_id"];

async function* intoParquet(o: BenchOptions, topic: Topic): AsyncGenerator<Figure> {
  for (const [what, sink, columns] of [
    ["typed Parquet", TYPED, [...Object.keys(ORDER_COLUMNS), ...KEPT.slice(0, 2)]],
    ["raw Parquet", COPY, [...KEPT, "_twg_source_value"]],
  ] as const) {
    const live = new Pipeline(o, topic);
    const late = new Pipeline(o, topic);
    try {
      const side = (p: Pipeline) => sink.replace("FOLDER", p.folder);
      const hashes: string[] = [];
      await late.stream(await late.config("raw", []));
      const [both, filled] = [
        await live.config("both", [side(live)]),
        await late.config("both", [side(late)]),
      ];
      const runs = await inTurn(
        o.rounds,
        async () => {
          late.clear("side");
          const ran = await late.recover(filled);
          hashes.push(late.hash("side", columns));
          return ran;
        },
        async () => {
          live.clear("side", "raw", "state");
          const ran = await live.stream(both);
          hashes.push(live.hash("side", columns));
          return ran;
        },
      );
      yield figureOf(`recovery into ${what}`, topic.records, runs, sameHash(what, hashes));
    } finally {
      for (const p of [live, late]) rmSync(p.folder, { recursive: true, force: true });
    }
  }
}

/** Of recovery beside the live pipeline that has its sink and the raw one. */
function figureOf(
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
