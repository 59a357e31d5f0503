/** The decoder of a lane that is given raw files: row groups in memory, read by DuckDB. */
import { tmpdir } from "node:os";
import { DuckEngine, sqlText } from "../adapters/duckdb/engine.ts";
import { MemoryFile } from "../adapters/duckdb/memory-file.ts";
import type { FrameDecoder } from "../core/ports/lane-parts.ts";
import { unpackGroups } from "../core/recovery/packed-groups.ts";
import { checkRawFields, RawRows, rawRowsQuery } from "../core/recovery/raw-rows.ts";

/** Of the engine: pages of a few columns, and what has to be sorted, which may spill. */
const ENGINE_BYTES = 256 * 1024 * 1024;

interface OpenSet {
  readonly buffer: ArrayBufferLike;
  readonly files: readonly MemoryFile[];
  readonly oneFile: boolean;
}

export function replayDecoder(): FrameDecoder {
  const engine = new DuckEngine({ threads: 1, memoryBytes: ENGINE_BYTES, spill: tmpdir(), allowed: [] });
  let open: OpenSet | null = null;
  const opened = (bytes: Uint8Array): OpenSet => {
    if (open?.buffer === bytes.buffer) return open;
    for (const f of open?.files ?? []) f.close();
    open = null;
    open = openSet(bytes);
    return open;
  };
  return {
    decode: (bytes, { from, next, start, end }, stream, _receivedAt, emit) => {
      const { files, oneFile } = opened(bytes.subarray(start, end));
      const rows = new RawRows(stream, from, emit);
      const list = `[${files.map((f) => sqlText(f.path)).join()}]`;
      const sql = rawRowsQuery(list, stream, { from, next }, oneFile);
      const fields = engine.fieldsOf(sql);
      checkRawFields(fields);
      for (const batch of engine.stream(sql, fields)) rows.add(batch);
      rows.end(next);
    },
  };
}

function openSet(bytes: Uint8Array): OpenSet {
  const { groups, oneFile } = unpackGroups(bytes);
  const files = groups.map((group) => {
    const file = new MemoryFile();
    file.write(group, 0);
    return file;
  });
  return { buffer: bytes.buffer, files, oneFile };
}
