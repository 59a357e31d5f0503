/**
 * What must be true. While the world runs: no offset is committed to the broker above what the coverage object says
 * and the published files hold. At the end: every expected record is in the published files exactly once, nothing
 * else is, nothing is staged, and the coverage names every file.
 */
import { parquetReadObjects } from "hyparquet";
import type { SharedObject } from "../../src/adapters/coverage/memory.ts";
import type { Oracle } from "./oracle.ts";
import type { SimFolder } from "./store.ts";

interface StateJson {
  readonly streams: readonly {
    readonly stream: string;
    readonly covered: readonly (readonly [string, string])[];
  }[];
  readonly index: readonly { readonly targets: readonly { readonly key: string }[] }[];
}

/** The newest state as plain JSON: the judge does not use the reader that it judges. */
export function newestState(coverage: SharedObject): StateJson | null {
  const newest = Math.max(0, ...coverage.versions.keys());
  const bytes = coverage.versions.get(newest);
  return bytes === undefined ? null : (JSON.parse(new TextDecoder().decode(bytes)) as StateJson);
}

/** Complaint if a commit of `next` on the partition is ahead of coverage. */
export function commitAhead(coverage: SharedObject, partition: number, next: bigint): string | null {
  const stream = newestState(coverage)?.streams.find((s) => s.stream.endsWith(`/${partition}`));
  const covered = stream?.covered[0];
  const upTo = covered === undefined ? 0n : BigInt(covered[1]);
  return next <= upTo
    ? null
    : `offset ${next} of partition ${partition} was committed, coverage reaches ${upTo}`;
}

/** `leftovers`: members that are not alone leave staged objects of dead ones where they are. */
export async function judge(
  oracle: Oracle,
  folder: SimFolder,
  coverage: SharedObject,
  leftovers = false,
): Promise<string[]> {
  const complaints: string[] = [];
  const seen = oracle.expected.map(() => new Set<bigint>());
  for (const [key, bytes] of folder.published) {
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
    const columns = ["_twg_source_partition", "_twg_source_offset", "_twg_source_value"];
    for (const row of await parquetReadObjects({ file, columns, utf8: false })) {
      const partition = Number(row._twg_source_partition);
      const offset = row._twg_source_offset as bigint;
      const value = new TextDecoder().decode(row._twg_source_value as Uint8Array);
      const want = oracle.expected[partition]?.get(offset);
      if (want !== value) complaints.push(`${key}: ${partition}@${offset} is ${value}, expected ${want}`);
      if (seen[partition]?.has(offset)) complaints.push(`${key}: ${partition}@${offset} is there twice`);
      seen[partition]?.add(offset);
    }
  }
  for (const [p, expected] of oracle.expected.entries()) {
    const lost = [...expected.keys()].filter((o) => !seen[p]!.has(o));
    if (lost.length > 0) complaints.push(`partition ${p}: ${lost.length} records lost, first ${lost[0]}`);
  }
  if (folder.staged.size > 0 && !leftovers) complaints.push(`${folder.staged.size} staged objects are left`);
  complaints.push(...unnamed(folder, coverage));
  return complaints;
}

function unnamed(folder: SimFolder, coverage: SharedObject): string[] {
  const state = newestState(coverage);
  const named = new Set(state?.index.flatMap((e) => e.targets.map((t) => t.key)));
  for (const bytes of coverage.segments.values()) {
    const segment = JSON.parse(new TextDecoder().decode(bytes)) as { entries: StateJson["index"] };
    for (const e of segment.entries) for (const t of e.targets) named.add(t.key);
  }
  return [...folder.published.keys()].filter((k) => !named.has(k)).map((k) => `${k} is in no index`);
}
