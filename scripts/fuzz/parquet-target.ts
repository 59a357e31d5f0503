/**
 * Damaged Parquet files through everything that reads them: footer, plan, pages, the engine, values. Each is read with as
 * many rows as it says, or refused with a code of its kind; the native engine must live.
 */
import { readdirSync, readFileSync } from "node:fs";
import { DuckEngine } from "../../src/adapters/duckdb/engine.ts";
import { BLOCK_BYTES, blockCheck } from "../../src/adapters/files/blocks.ts";
import { ParquetRanges } from "../../src/commands/batch-parquet.ts";
import { planParquet } from "../../src/commands/batch-plan-stored.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import { rangesOf } from "../../src/core/pipeline/batch-files.ts";
import { RowTable } from "../../src/core/pipeline/row-table.ts";
import type { FileWork } from "../../src/core/ports/batch-lane.ts";
import type { FileBytes } from "../../src/core/ports/file-bytes.ts";
import { type Draw, damage, draws, pick } from "./draws.ts";
import type { FuzzTarget } from "./target.ts";

const CORPUS = new URL("../../test/golden/files/", import.meta.url);
const ALLOWED =
  /^files\.(not_parquet|parquet_feature|parquet_type|schema|count)$|^duckdb\.(out_of_memory|io)$/;
const TAIL_BYTES = 8;
const ENGINE_BYTES = 64 << 20;

let files: readonly Uint8Array[] | null = null;
let engine: DuckEngine | null = null;

function corpus(): readonly Uint8Array[] {
  const names = readdirSync(CORPUS).filter((n) => n.endsWith(".parquet"));
  files ??= names
    .sort()
    .map((n) => new Uint8Array(readFileSync(new URL(n, CORPUS))))
    .filter((f) => f.length > 200);
  return files;
}

function engineOf(): DuckEngine {
  engine ??= new DuckEngine({ threads: 1, memoryBytes: ENGINE_BYTES, spill: null, allowed: [] });
  return engine;
}

/** The footer alone, under a right length and magic; the pages alone; or anything. */
function damaged(file: Uint8Array, draw: Draw): Uint8Array {
  const at = file.length - TAIL_BYTES;
  const length = new DataView(file.buffer, file.byteOffset).getUint32(at, true);
  const begin = at - length;
  if (begin < 4 || draw(8) === 0) return damage(file, draw);
  if (draw(3) === 0) return Buffer.concat([damage(file.subarray(0, begin), draw), file.subarray(begin)]);
  const footer = damage(file.subarray(begin, at), draw);
  const tail = file.slice(at);
  new DataView(tail.buffer).setUint32(0, footer.length, true);
  return Buffer.concat([file.subarray(0, begin), footer, tail]);
}

async function run(n: number): Promise<boolean> {
  const draw = draws(n);
  const bytes = damaged(pick(draw, corpus()), draw);
  const open = (): FileBytes => ({
    size: bytes.length,
    read: async (from, to) => bytes.slice(from, to),
    close: () => {},
  });
  const place = { name: "f", path: "f", revision: null, bytes: bytes.length };
  try {
    const { layout, columns } = await planParquet(place, open);
    const work: FileWork = { ...place, file: 0, compression: "none", encoding: "utf-8", layout };
    const schema = { fields: columns.map((c) => c.field) };
    const table = new RowTable(
      { schema, metadata: "none", prefix: "_twg_", pipeline: "", ranked: false },
      () => 0,
      () => {},
    );
    const checks = BigUint64Array.from({ length: Math.ceil(bytes.length / BLOCK_BYTES) }, (_, i) =>
      blockCheck(bytes.subarray(i * BLOCK_BYTES, (i + 1) * BLOCK_BYTES)),
    );
    const reader = new ParquetRanges({ engine: engineOf, open });
    for (const range of rangesOf(work) ?? []) {
      const found = await reader.read({ work, checks }, range, [], table, async () => table.clear());
      if (found !== range.rows) throw new Failure("files.count", "as the lane says it");
    }
    return false;
  } catch (e) {
    if (e instanceof Failure && ALLOWED.test(e.code)) return true;
    throw e;
  }
}

export const parquetTarget: FuzzTarget = { name: "parquet", run };
