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
  readonly intents: readonly {
    readonly targets: readonly { readonly key: string }[];
    readonly spans: readonly (readonly [stream: string, ...unknown[]])[];
  }[];
}

/** The newest state as plain JSON: the judge does not use the reader that it judges. */
export function newestState(coverage: SharedObject): StateJson | null {
  const newest = Math.max(0, ...coverage.versions.keys());
  const bytes = coverage.versions.get(newest);
  if (bytes === undefined) return null;
  let state = STATES.get(bytes);
  if (state === undefined) {
    state = JSON.parse(new TextDecoder().decode(bytes)) as StateJson;
    STATES.set(bytes, state);
  }
  return state;
}

/** Each is asked for many times, and none changes. */
const STATES = new WeakMap<Uint8Array, StateJson>();

/** Complaint if a commit of `next` on the partition is ahead of coverage, of whichever incarnation of the topic. */
export function commitAhead(
  coverage: SharedObject,
  topic: string,
  partition: number,
  next: bigint,
): string | null {
  const isOfIt = (stream: string) => {
    const parts = stream.split("/");
    return parts[2] === topic && parts[4] === String(partition);
  };
  const streams = newestState(coverage)?.streams.filter((s) => isOfIt(s.stream)) ?? [];
  const upTo = streams
    .map((s) => BigInt(s.covered[0]?.[1] ?? 0))
    .reduce((most, next) => (next > most ? next : most), 0n);
  return next <= upTo
    ? null
    : `offset ${next} of ${topic}/${partition} was committed, coverage reaches ${upTo}`;
}

export interface Judgement {
  /** Members that are not alone leave staged objects of dead ones where they are. */
  readonly leftovers: boolean;
  /** The pipeline stopped for a reason that people must decide about: what it did not read is not lost. */
  readonly stopped: boolean;
}

export async function judge(
  oracles: readonly Oracle[],
  folder: SimFolder,
  coverage: SharedObject,
  { leftovers, stopped }: Judgement,
): Promise<string[]> {
  const complaints: string[] = [];
  // Values are unique, positions are not: those of a topic that is made anew begin at 0 again.
  const seen = new Set<string>();
  for (const [key, bytes] of folder.published) {
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
    const columns = ["_twg_source_topic", "_twg_source_partition", "_twg_source_offset", "_twg_source_value"];
    for (const row of await parquetReadObjects({ file, columns, utf8: false })) {
      const topic = row._twg_source_topic;
      const oracle = oracles.find((o) => o.topic === (typeof topic === "string" ? topic : text(topic)));
      if (oracle === undefined) {
        complaints.push(`${key}: a row of topic ${topic}`);
        continue;
      }
      const partition = Number(row._twg_source_partition);
      const offset = row._twg_source_offset as bigint;
      const value = new TextDecoder().decode(row._twg_source_value as Uint8Array);
      const want = oracle.expected[partition]?.get(offset);
      const was = oracle.gone.get(value) === `${partition}@${offset}`;
      if (want !== value && !was)
        complaints.push(`${key}: ${partition}@${offset} is ${value}, expected ${want}`);
      if (seen.has(value)) complaints.push(`${key}: ${value} of ${partition}@${offset} is there twice`);
      seen.add(value);
    }
  }
  for (const { topic, expected } of oracles) {
    for (const [p, records] of expected.entries()) {
      const lost = [...records].flatMap(([offset, value]) => (seen.has(value) ? [] : [offset]));
      if (lost.length > 0 && !stopped)
        complaints.push(`partition ${topic}/${p}: ${lost.length} records lost, first ${lost[0]}`);
    }
  }
  if (folder.staged.size > 0 && !leftovers && !stopped)
    complaints.push(`${folder.staged.size} staged objects are left`);
  const deleted = new Set(oracles.filter((o) => o.deleted).map((o) => o.topic));
  complaints.push(...unnamed(folder, coverage, deleted));
  return complaints;
}

const text = (bytes: unknown): string => new TextDecoder().decode(bytes as Uint8Array);

/** An intent of a topic that was deleted while its owner was dead stays open: nobody claims those streams any more. */
function unnamed(folder: SimFolder, coverage: SharedObject, deleted: ReadonlySet<string>): string[] {
  const state = newestState(coverage);
  const named = new Set(state?.index.flatMap((e) => e.targets.map((t) => t.key)));
  const isLeft = (stream: string) => deleted.has(stream.split("/")[2] ?? "");
  for (const { targets, spans } of state?.intents ?? [])
    if (spans.every(([stream]) => isLeft(stream))) for (const t of targets) named.add(t.key);
  for (const bytes of coverage.segments.values()) {
    const segment = JSON.parse(new TextDecoder().decode(bytes)) as { entries: StateJson["index"] };
    for (const e of segment.entries) for (const t of e.targets) named.add(t.key);
  }
  return [...folder.published.keys()].filter((k) => !named.has(k)).map((k) => `${k} is in no index`);
}
