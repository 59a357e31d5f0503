/** Which kinds of batches a topic really holds, from the brokers' own files: a test that wants zstd must have zstd. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { logFolder, type Served } from "./real-kafka.ts";

const CODECS = ["none", "gzip", "snappy", "lz4", "zstd"] as const;
const HEADER_BYTES = 61;
const LOG_OVERHEAD = 12;
const ATTRIBUTES_AT = 21;

export interface BatchOnDisk {
  readonly partition: number;
  readonly baseOffset: bigint;
  readonly codec: string;
  readonly transactional: boolean;
  readonly control: boolean;
  readonly logAppendTime: boolean;
  readonly count: number;
}

/** All batches of a topic, each partition as one of its replicas keeps it. */
export function batchesOnDisk(served: Served, topic: string, partitions: number): BatchOnDisk[] {
  const out: BatchOnDisk[] = [];
  for (let partition = 0; partition < partitions; partition++) {
    const folder = served.plain
      .map((_, i) => join(logFolder(served, i + 1), `${topic}-${partition}`))
      .find((f) => readdir(f).length > 0);
    if (folder === undefined) throw new Error(`no node keeps ${topic}-${partition}`);
    for (const name of readdir(folder)
      .filter((n) => n.endsWith(".log"))
      .sort()) {
      out.push(...batchesOf(readFileSync(join(folder, name)), partition));
    }
  }
  return out;
}

function readdir(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function batchesOf(log: Buffer, partition: number): BatchOnDisk[] {
  const out: BatchOnDisk[] = [];
  for (let at = 0; at + HEADER_BYTES <= log.length; ) {
    const length = log.readInt32BE(at + 8);
    if (length <= 0) break;
    const attributes = log.readInt16BE(at + ATTRIBUTES_AT);
    out.push({
      partition,
      baseOffset: log.readBigInt64BE(at),
      codec: CODECS[attributes & 7] ?? `codec ${attributes & 7}`,
      transactional: (attributes & 16) !== 0,
      control: (attributes & 32) !== 0,
      logAppendTime: (attributes & 8) !== 0,
      count: log.readInt32BE(at + HEADER_BYTES - 4),
    });
    at += LOG_OVERHEAD + length;
  }
  return out;
}

export interface Kinds {
  readonly codecs: readonly string[];
  readonly transactional: boolean;
  readonly control: boolean;
}

/** Codecs of the batches that hold records, sorted. */
export function codecsOnDisk(served: Served, topic: string, partitions: number): Kinds {
  const batches = batchesOnDisk(served, topic, partitions);
  const data = batches.filter((b) => !b.control && b.count > 0);
  return {
    codecs: [...new Set(data.map((b) => b.codec))].sort(),
    transactional: data.some((b) => b.transactional),
    control: batches.some((b) => b.control),
  };
}
