/** Raw files for recovery: the pieces of a set of files, read one at a time by ranges, from a folder or a bucket. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemoryFile } from "../adapters/duckdb/memory-file.ts";
import { fallbackCodecs } from "../adapters/duckdb/native-fallback.ts";
import { openLocalFile } from "../adapters/files/file-bytes.ts";
import { parquetFooter } from "../adapters/files/parquet-footer.ts";
import { openObject } from "../adapters/object-store/s3-input.ts";
import { rootOf } from "../adapters/parquet/template.ts";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import type { IndexEntry, IndexedFile } from "../core/coverage/state.ts";
import { asFailure, Failure } from "../core/failure/failure.ts";
import { notParquet } from "../core/formats/parquet/read-footer.ts";
import type { FileBytes } from "../core/ports/file-bytes.ts";
import { type Span, type StreamKey, streamParts } from "../core/records/stream.ts";
import { orDamage, type TurnPositions, turnPositions } from "../core/recovery/group-runs.ts";
import { packPaths } from "../core/recovery/packed-groups.ts";
import type { FilledPiece, OpenedSet, PieceTurn, SetPiece } from "../core/recovery/replay-pieces.ts";
import type { ReadSet } from "../core/recovery/replay-source.ts";
import { openBucket } from "./bucket-reader.ts";
import type { SinkOf } from "./config-file.ts";
import { type GroupPlace, groupsOf, readGroup, readScanned } from "./raw-groups.ts";

/** Groups that are looked at at a time: of a bucket each is a request. */
const LOOKS = 8;
/** Turns of streams in a group above which they are told by stream only: each becomes a frame. */
const MOST_TURNS = 4096;
/** Of the path of a file without a name. */
const PATH_BYTES = 64;

/** Opens a raw file by its key. */
type OpenRaw = (key: string) => Promise<FileBytes>;

export function rawSets(sink: SinkOf<"parquet">): ReadSet {
  return readSets(opener(sink), sink.metadata_prefix);
}

/** `prefix`: of the metadata columns. */
export function readSets(open: OpenRaw, prefix: string): ReadSet {
  return (set) => new SetReader(set, open, prefix).opened();
}

function opener(sink: SinkOf<"parquet">): OpenRaw {
  const root = rootOf(sink.path);
  if (!isBucketUrl(root))
    return async (key) => openLocalFile({ path: join(root, key), revision: null, bytes: 0 });
  const objects = openBucket(root, sink.s3);
  return async (key) => {
    const head = await objects.head(key);
    if (head === null) throw new Failure("store.absent", "there is no such object", { at: key });
    return openObject(objects, key, { path: `${objects.place}/${key}`, ...head });
  };
}

/** A row group as a file of its own. */
export interface RawGroup {
  readonly bytes: Uint8Array;
  /** Rows of a topic's other lives are among them. */
  readonly twoLives: boolean;
  /** The positions of the stream that was asked for are known to rise in it. */
  readonly rises: boolean;
}

/** Row groups of a set that hold records of the range, one by one. Throws as `rawSets` does. */
export async function* rawGroups(
  sink: SinkOf<"parquet">,
  set: IndexEntry,
  span: Span,
): AsyncGenerator<RawGroup> {
  yield* new SetReader(set, opener(sink), sink.metadata_prefix).each(span);
}

class SetReader {
  readonly #set: IndexEntry;
  readonly #open: OpenRaw;
  readonly #prefix: string;
  /** One at a time. */
  #file: { readonly key: string; readonly bytes: FileBytes } | null = null;

  constructor(set: IndexEntry, open: OpenRaw, prefix: string) {
    this.#set = set;
    this.#open = open;
    this.#prefix = prefix;
  }

  async opened(): Promise<OpenedSet> {
    try {
      const groups: GroupPlace[] = [];
      for (const target of this.#set.targets) groups.push(...(await this.#groups(target)));
      return { pieces: await this.#pieces(groups), close: () => this.#close() };
    } catch (e) {
      this.#close();
      throw e;
    }
  }

  async *each(span: Span): AsyncGenerator<RawGroup> {
    const twoLives = this.#streams() === null;
    try {
      for (const target of this.#set.targets)
        for (const group of await this.#groups(target)) {
          const [turns] = await this.#looked([group]);
          const own = turns?.filter((t) => isOf(t, span)) ?? null;
          if (own !== null && !own.some((t) => t.first < span.next && t.last >= span.from)) continue;
          const bytes = new Uint8Array(group.bytes);
          await this.#read(group, bytes);
          yield {
            bytes,
            twoLives,
            rises: own?.every((t, i) => i === 0 || own[i - 1]!.last < t.first) === true,
          };
        }
    } finally {
      this.#close();
    }
  }

  async #pieces(groups: readonly GroupPlace[]): Promise<readonly SetPiece[]> {
    const streams = this.#streams();
    const twoLives = streams === null;
    if (!twoLives) {
      const turns = await this.#turns(groups, streams);
      if (turns !== null) return groups.map((g, i) => this.#piece(g, turns[i]!));
    }
    return groups.length === 0 ? [] : [this.#scratch(groups, twoLives)];
  }

  /** Of topic and partition. Null: two of them are of the same. */
  #streams(): ReadonlyMap<string, StreamKey> | null {
    const streams = new Map<string, StreamKey>();
    for (const { stream } of this.#set.spans) {
      const { topic, partition } = streamParts(stream);
      const known = streams.get(`${topic}/${partition}`);
      if (known !== undefined && known !== stream) return null;
      streams.set(`${topic}/${partition}`, stream);
    }
    return streams;
  }

  /** Of each group. Null: they are not known, or those of a stream do not rise from group to group. */
  async #turns(
    groups: readonly GroupPlace[],
    streams: ReadonlyMap<string, StreamKey>,
  ): Promise<readonly (readonly PieceTurn[])[] | null> {
    const all: (readonly PieceTurn[])[] = [];
    const ends = new Map<StreamKey, bigint>();
    for (let from = 0; from < groups.length; from += LOOKS) {
      const looked = await this.#looked(groups.slice(from, from + LOOKS));
      for (const found of looked) {
        const turns = found === null ? null : risingTurns(found, streams, ends);
        if (turns === null) return null;
        all.push(turns);
      }
    }
    return all;
  }

  /** Those of one file side by side. */
  async #looked(groups: readonly GroupPlace[]): Promise<readonly (readonly TurnPositions[] | null)[]> {
    const looked: (readonly TurnPositions[] | null)[] = [];
    for (const [key, of] of Map.groupBy(groups, (g) => g.key)) {
      const file = await this.#fileOf(key);
      const read = of.map(async (g) => {
        const { bytes, chunks } = await readScanned(file, g);
        return orDamage(
          () => turnPositions(bytes, g.footer, chunks, fallbackCodecs),
          (why) => notParquet(why, key),
        );
      });
      looked.push(...(await this.#told(key, Promise.all(read))));
    }
    return looked;
  }

  async #groups({ key, rows }: IndexedFile): Promise<readonly GroupPlace[]> {
    const file = await this.#fileOf(key);
    const footer = await this.#told(key, parquetFooter(file, key));
    return groupsOf(footer, key, rows, this.#prefix);
  }

  #piece(group: GroupPlace, turns: readonly PieceTurn[]): SetPiece {
    return {
      ...{ form: "group", twoLives: false, turns, bytes: group.bytes },
      fill: async (body) => {
        await this.#read(group, body);
        return { bytes: group.bytes, release: null };
      },
    };
  }

  /** All of them in files on the disk of the temporary folder, so that memory is one group. */
  #scratch(groups: readonly GroupPlace[], twoLives: boolean): SetPiece {
    const fill = async (body: Uint8Array): Promise<FilledPiece> => {
      const files: MemoryFile[] = [];
      const release = () => {
        for (const f of files.splice(0)) f.close();
      };
      try {
        for (const g of groups) {
          const bytes = new Uint8Array(g.bytes);
          await this.#read(g, bytes);
          const file = new MemoryFile(tmpdir());
          files.push(file);
          file.write(bytes, 0);
        }
        const paths = packPaths(files.map((f) => f.path));
        body.set(paths);
        return { bytes: paths.length, release };
      } catch (e) {
        release();
        throw e;
      }
    };
    return { form: "files", twoLives, turns: null, bytes: PATH_BYTES * groups.length, fill };
  }

  async #read(group: GroupPlace, body: Uint8Array): Promise<void> {
    const file = await this.#fileOf(group.key);
    await this.#told(group.key, readGroup(file, group, body));
  }

  async #fileOf(key: string): Promise<FileBytes> {
    if (this.#file?.key === key) return this.#file.bytes;
    this.#close();
    const bytes = await this.#told(key, this.#open(key));
    this.#file = { key, bytes };
    return bytes;
  }

  async #told<T>(key: string, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (e) {
      throw missing(asFailure(e), this.#set, key);
    }
  }

  #close(): void {
    this.#file?.bytes.close();
    this.#file = null;
  }
}

function isOf(turn: TurnPositions, { stream }: Span): boolean {
  const { topic, partition } = streamParts(stream);
  return turn.topic === topic && turn.partition === partition;
}

/** `ends`: the last position of each stream so far. */
function risingTurns(
  found: readonly TurnPositions[],
  streams: ReadonlyMap<string, StreamKey>,
  ends: Map<StreamKey, bigint>,
): readonly PieceTurn[] | null {
  const turns: PieceTurn[] = [];
  for (const { topic, partition, first, last } of found) {
    const stream = streams.get(`${topic}/${partition}`);
    if (stream === undefined) continue;
    if (first <= (ends.get(stream) ?? -1n)) return null;
    ends.set(stream, last);
    turns.push({ stream, first, last });
  }
  return turns.length > MOST_TURNS ? byStream(turns) : turns;
}

function byStream(turns: readonly PieceTurn[]): readonly PieceTurn[] {
  const joined = new Map<StreamKey, PieceTurn>();
  for (const t of turns) joined.set(t.stream, { ...t, first: joined.get(t.stream)?.first ?? t.first });
  return [...joined.values()];
}

const GONE: ReadonlySet<string> = new Set(["files.unreadable", "store.absent", "files.changed"]);

function missing(failure: Failure, { spans }: IndexEntry, key: string): Failure {
  if (!GONE.has(failure.code)) return failure;
  const held = spans.map((s) => `${s.stream} [${s.from}, ${s.next})`);
  const shown =
    held.length > 3 ? `${held.slice(0, 3).join(", ")} and ${held.length - 3} more` : held.join(", ");
  return new Failure("recovery.raw_missing", `it cannot be read (${failure.message}); it held ${shown}`, {
    at: key,
    cause: failure,
  });
}
