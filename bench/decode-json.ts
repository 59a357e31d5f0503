/**
 * JSON orders of 247 bytes, nested, to typed columns on one core, nothing written: payloads in memory beside DuckDB's
 * reader of the same lines from a file in memory with the same types (the Python package of TWG_PYTHON, one thread).
 */

import { isUtf8 } from "node:buffer";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jsonRecords } from "../src/core/codecs/json/compile.ts";
import { builderOf, type ColumnBuilder } from "../src/core/types/column-builder.ts";
import type { ColumnField } from "../src/core/types/table-batch.ts";
import { parseType } from "../src/core/types/type-text.ts";
import {
  type BenchOptions,
  cpuSeconds,
  type Figure,
  inTurn,
  median,
  ratioOf,
  round,
  sameHash,
} from "./figure.ts";
import { orderJson } from "./orders.ts";
import { runProcess } from "./process.ts";

const COLUMNS: Readonly<Record<string, string>> = {
  id: "bigint",
  customer: "varchar",
  ts: "timestamptz",
  amount: "decimal(18,2)",
  country: "varchar",
  items: "list<struct<sku varchar, qty int32, price decimal(18,2)>>",
  flags: "struct<gift boolean, express boolean>",
};
/** The same types as DuckDB writes them. */
const PEER_COLUMNS = `{id: 'BIGINT', customer: 'VARCHAR', ts: 'TIMESTAMPTZ', amount: 'DECIMAL(18,2)', country: 'VARCHAR',
 items: 'STRUCT(sku VARCHAR, qty INTEGER, price DECIMAL(18,2))[]', flags: 'STRUCT(gift BOOLEAN, express BOOLEAN)'}`;
const PEER = `
import duckdb, resource, sys, time
c = duckdb.connect(); c.execute("set threads = 1"); c.execute("set timezone = 'UTC'")
q = f"""create or replace temp table t as select * from read_json('{sys.argv[1]}', format = 'newline_delimited', columns = ${PEER_COLUMNS.replaceAll("{", "{{").replaceAll("}", "}}").replaceAll("\n", " ")})"""
best = None
for _ in range(int(sys.argv[2])):
    u0 = resource.getrusage(resource.RUSAGE_SELF); t0 = time.monotonic()
    c.execute(q)
    t = time.monotonic() - t0; u1 = resource.getrusage(resource.RUSAGE_SELF)
    cpu = u1.ru_utime + u1.ru_stime - u0.ru_utime - u0.ru_stime
    if best is None or t < best[0]: best = (t, cpu)
n, ids, items, cents = c.execute("select count(*), sum(id), sum(len(items)), sum(amount * 100)::bigint from t").fetchone()
print(best[0], best[1], f"{n}/{ids}/{items}/{cents}")
`;

const PASSES = 5;

interface Timed {
  readonly seconds: number;
  readonly cpu: number;
  readonly hash: string;
}

function fieldsOf(): ColumnField[] {
  return Object.entries(COLUMNS).map(([name, text]) => {
    const type = parseType(text);
    if (typeof type === "string") throw new Error(type);
    return { name, type, nullable: true };
  });
}

/** What the columns add up to. */
function summed(columns: readonly ColumnBuilder[], rows: number): string {
  const [id, , , amount, , items] = columns.map((c) => c.finish());
  const ids = new BigInt64Array(id!.data.buffer, 0, rows).reduce((a, b) => a + b, 0n);
  const halves = new BigInt64Array(amount!.data.buffer, 0, 2 * rows);
  let cents = 0n;
  for (let i = 0; i < rows; i++) cents += halves[2 * i]!;
  return `${rows}/${ids}/${items!.offsets![rows]}/${cents}`;
}

export async function* decodeJson(o: BenchOptions): AsyncGenerator<Figure> {
  const n = o.small ? 5_000 : 200_000;
  const passes = o.small ? 1 : PASSES;
  const text = Array.from({ length: n }, (_, i) => `${orderJson(i)}\n`).join("");
  const bytes = new TextEncoder().encode(text);
  const starts = new Int32Array(n);
  const ends = new Int32Array(n);
  for (let i = 0, at = 0; i < n; i++) {
    starts[i] = at;
    ends[i] = bytes.indexOf(10, at);
    at = ends[i]! + 1;
  }
  const fields = fieldsOf();
  const decoder = jsonRecords(fields, { unknown: "reject", reserved: null, maxBytes: 1 << 20, isUtf8 });
  const columns = fields.map((f) => builderOf(f.type));
  const subject = async (): Promise<Timed> => {
    let best: Timed | null = null;
    for (let pass = 0; pass < passes; pass++) {
      for (const c of columns) c.reset();
      const cpu = cpuSeconds();
      const begun = performance.now();
      const rows = decoder.decode({ bytes, starts, ends, count: n }, columns, (f) => {
        throw new Error(`${f.code} ${f.path}: ${f.reason}`);
      });
      const seconds = (performance.now() - begun) / 1000;
      const spent = cpuSeconds() - cpu;
      if (best === null || seconds < best.seconds)
        best = { seconds, cpu: spent, hash: summed(columns, rows) };
    }
    return best!;
  };
  const folder = mkdtempSync(join(tmpdir(), "twg-bench-"));
  try {
    const file = join(folder, "orders.ndjson");
    writeFileSync(file, bytes);
    const runs = await inTurn(o.rounds, subject, peerOf(file, passes, o));
    const per = (t: readonly Timed[], of: (t: Timed) => number) => (median(t.map(of)) / n) * 1e6;
    const value = 1e6 / per(runs.subject, (t) => t.seconds);
    const peer = runs.peer.length === 0 ? null : 1e6 / per(runs.peer, (t) => t.seconds);
    yield {
      bench: "decode-json",
      subject: "jsonRecords, one thread",
      peer: peer === null ? null : "DuckDB read_json, one thread",
      unit: "records/s",
      value: round(value),
      peer_value: peer === null ? null : round(peer),
      ratio: ratioOf(value, peer),
      hash: sameHash(
        "decode-json",
        [...runs.subject, ...runs.peer].map((t) => t.hash),
      ),
      n,
      cpu_per_million: round(per(runs.subject, (t) => t.cpu)),
      peer_cpu_per_million: peer === null ? null : round(per(runs.peer, (t) => t.cpu)),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function peerOf(file: string, passes: number, o: BenchOptions): (() => Promise<Timed>) | null {
  const python = process.env["TWG_PYTHON"];
  if (python === undefined) {
    o.say("SKIP DuckDB: TWG_PYTHON names no interpreter with duckdb, so figures have no peer");
    return null;
  }
  return async () => {
    const [seconds, cpu, hash] = (await runProcess([python, "-c", PEER, file, String(passes)])).stdout
      .trim()
      .split(" ");
    return { seconds: Number(seconds), cpu: Number(cpu), hash: hash ?? "" };
  };
}
