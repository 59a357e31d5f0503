/** Kafka to raw Parquet with the whole of `twg stream`, and what an independent reader finds in the files. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Glob } from "bun";
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import type { BenchOptions } from "./figure.ts";
import { type Ran, runProcess } from "./process.ts";
import type { Topic } from "./topics.ts";

export interface Landing {
  readonly ran: Ran;
  readonly rows: number;
  readonly fileBytes: number;
  /** Sum of the CRC-32 of all values; null: not asked for. */
  readonly hash: string | null;
}

export interface LandingOptions {
  /** Of the `start` setting: TOML. */
  readonly start: string;
  readonly hashed: boolean;
}

/** Reads the topic to its end, all settings as they are by default. */
export async function land(o: BenchOptions, topic: Topic, options: LandingOptions): Promise<Landing> {
  const folder = mkdtempSync(join(tmpdir(), "twg-bench-"));
  const lake = join(folder, "lake");
  const config = join(folder, "bench.toml");
  await Bun.write(
    config,
    `[pipeline]
name = "bench"
state_dir = "${join(folder, "state")}"

[source]
type = "kafka"
bootstrap = ["${topic.bootstrap}"]
topics = ["${topic.name}"]
start = ${options.start}

[[sink]]
name = "raw"
type = "parquet"
path = "${lake}/{topic}"

[observability]
listen = "off"
`,
  );
  try {
    const ran = await runProcess([...o.twg, "stream", "-c", config, "--until-caught-up"]);
    return { ran, ...(await read(lake, options.hashed)) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function read(lake: string, hashed: boolean) {
  let rows = 0;
  let fileBytes = 0;
  let sum = 0n;
  for await (const path of new Glob("**/*.parquet").scan({ cwd: lake, absolute: true })) {
    const file = await asyncBufferFromFile(path);
    const metadata = await parquetMetadataAsync(file);
    fileBytes += file.byteLength;
    rows += Number(metadata.num_rows);
    if (hashed) sum += await hashOf(file, metadata);
  }
  return { rows, fileBytes, hash: hashed ? sum.toString(16).padStart(16, "0") : null };
}

type File = Awaited<ReturnType<typeof asyncBufferFromFile>>;
type Metadata = Awaited<ReturnType<typeof parquetMetadataAsync>>;

async function hashOf(file: File, metadata: Metadata): Promise<bigint> {
  let sum = 0n;
  const columns = ["_twg_source_value"];
  for (let rowStart = 0, group = 0; group < metadata.row_groups.length; group++) {
    const rowEnd = rowStart + Number(metadata.row_groups[group]!.num_rows);
    const options = { file, metadata, columns, rowStart, rowEnd, compressors, utf8: false };
    for (const row of await parquetReadObjects(options)) {
      sum += BigInt(Bun.hash.crc32(row["_twg_source_value"] as Uint8Array));
    }
    rowStart = rowEnd;
  }
  return sum;
}
