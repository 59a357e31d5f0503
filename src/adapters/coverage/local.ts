/**
 * The versioned object of a sink's coverage in a local folder: `coverage-000000000012.json` is version 12. A version
 * is written whole under another name, made durable, and linked to its number; a link that exists means lost.
 *
 * Why a stale writer cannot win unseen. A writer that read version n, slept, and links n + 1 after others have
 * written and removed n + 1 .. m succeeds with its link. So after every link the folder is listed: if a higher
 * version is there, the link proves nothing, and the answer is "unknown"; the caller then reads the highest
 * version, whose ring of writers' tags tells whether ours is in its history. A link that is the highest is on top
 * of the version that was read: n + 1 can be linked once only while n is the highest, and n is never removed
 * before n + 1 and KEPT more exist. Readers take the highest version, so a late n + 1 below m is never read.
 *
 * The listing itself is sound: a folder of so few names is read in one system call, which the kernel does not
 * interleave with links and removals; and even one that saw only a part would have to miss all of the KEPT newest
 * versions to take a stale one for the highest.
 */
import { link, mkdir, open, readdir, readFile, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { MAX_STATE_BYTES } from "../../core/coverage/state.ts";
import { type DiskTrouble, diskTrouble, errnoOf } from "../../core/failure/disk.ts";
import { Failure } from "../../core/failure/failure.ts";
import type { Versioned, VersionedStore, WriteOutcome } from "../../core/ports/versioned-store.ts";

/** Old versions that stay for people who want to look back. */
const KEPT = 8;
/** Probes at the start that may be spoilt by others before the file system is to blame. */
const PROBES = 5;
const SEGMENT = /^index-(.+)\.json$/;
const UNFINISHED = ".unfinished";

export function coverageFolderOf(root: string, pipeline: string, sink: string): string {
  return join(root, "_twg", pipeline, sink, "coverage");
}

/** Of what was learned of schemas. */
export function schemaFolderOf(root: string, pipeline: string, sink: string): string {
  return join(root, "_twg", pipeline, sink, "schemas");
}

/** Where the schema of the sink's table lies, as an object of its own (core/coverage/live-table.ts). */
export function tableFolderOf(root: string, pipeline: string, sink: string): string {
  return join(root, "_twg", pipeline, sink, "table");
}

/** Of the book of duplicates (core/coverage/dedup-book.ts), beside raw's coverage. */
export function dedupFolderOf(root: string, pipeline: string, sink: string): string {
  return join(root, "_twg", pipeline, sink, "dedup");
}

/** Of the book of plans (core/coverage/plan-book.ts), beside raw's coverage. */
export function planFolderOf(root: string, pipeline: string, sink: string): string {
  return join(root, "_twg", pipeline, sink, "plans");
}

/** Between two of them lies one durable event of a write; a test ends the process there. */
export const LOCAL_WRITE_POINTS = ["coverage_written", "coverage_linked", "coverage_won"] as const;

type LocalWritePoint = (typeof LOCAL_WRITE_POINTS)[number];

export type LocalWriteHook = (point: LocalWritePoint) => void | Promise<void>;

type BookName = "coverage" | "table" | "dedup" | "plans";

export class LocalVersionedStore implements VersionedStore {
  readonly place: string;
  readonly #hook: LocalWriteHook | undefined;
  readonly #object: BookName;
  readonly #name: RegExp;

  /**
   * `folder`: of `coverageFolderOf` and its like. `hook` is passed at each point of a write. `object`: what its
   * versions are named after.
   */
  constructor(folder: string, hook?: LocalWriteHook, object: BookName = "coverage") {
    this.place = folder;
    this.#hook = hook;
    this.#object = object;
    this.#name = new RegExp(`^${object}-(\\d{12})\\.json$`);
  }

  #nameOf(version: number): string {
    return `${this.#object}-${String(version).padStart(12, "0")}.json`;
  }

  async prepare(): Promise<void> {
    try {
      await makeDurable(this.place);
      for (let tries = 1; !(await this.#probe()); tries++) if (tries === PROBES) throw noLinks(this.place);
    } catch (e) {
      throw coverageFailure(e, this.place);
    }
  }

  /** True if a link refuses a name that is taken. A sweep of another process in the midst of it spoils a probe. */
  async #probe(): Promise<boolean> {
    const probe = join(this.place, `probe-${crypto.randomUUID()}${UNFINISHED}`);
    const linked = `${probe}-linked${UNFINISHED}`;
    try {
      await writeDurable(probe, new Uint8Array([10]));
      return (await linkNew(probe, linked)) && !(await linkNew(probe, linked));
    } catch (e) {
      if (errnoOf(e) !== "ENOENT") throw e;
      return false;
    } finally {
      await unlink(probe).catch(() => {});
      await unlink(linked).catch(() => {});
    }
  }

  async read(): Promise<Versioned | null> {
    try {
      for (let missing: number | null = null; ; ) {
        const version = await this.#highest();
        if (version === null) return null;
        const name = join(this.place, this.#nameOf(version));
        const bytes = await readWhole(name);
        if (bytes === null) {
          // Removed between list and read: a newer one is there. The same one again was never a file (a link that
          // leads nowhere), or the file system is ill.
          if (missing === version) throw new Error(`${name} is listed and cannot be opened`);
          missing = version;
          continue;
        }
        // Whoever linked it may have died before the folder was durable.
        await syncFolder(this.place);
        return { version, bytes, name };
      }
    } catch (e) {
      throw coverageFailure(e, this.place);
    }
  }

  async write(expected: number | null, bytes: Uint8Array, tag: string): Promise<WriteOutcome> {
    const version = (expected ?? 0) + 1;
    const unfinished = join(this.place, `${tag}${UNFINISHED}`);
    let linked = false;
    try {
      await writeDurable(unfinished, bytes);
      await this.#hook?.("coverage_written");
      try {
        if (!(await linkNew(unfinished, join(this.place, this.#nameOf(version))))) return "lost";
      } catch (e) {
        // Swept: another process has entered since, by a write that ours would have had to follow.
        if (errnoOf(e) === "ENOENT" && (await isThere(this.place))) return "lost";
        throw e;
      }
      linked = true;
      await this.#hook?.("coverage_linked");
      await syncFolder(this.place);
      if ((await this.#highest()) !== version) return "unknown";
      await this.#removeOld(version);
      await this.#hook?.("coverage_won");
      return "won";
    } catch (e) {
      if (linked) return "unknown";
      throw coverageFailure(e, this.place);
    } finally {
      await unlink(unfinished).catch(() => {});
    }
  }

  async putSegment(name: string, bytes: Uint8Array): Promise<void> {
    const path = join(this.place, `index-${name}.json`);
    // Others may write the same one at the same moment.
    const unfinished = `${path}-${crypto.randomUUID()}${UNFINISHED}`;
    try {
      await writeDurable(unfinished, bytes);
      await rename(unfinished, path);
      await syncFolder(this.place);
    } catch (e) {
      await unlink(unfinished).catch(() => {});
      // Somebody has written it meanwhile, and swept ours.
      if (errnoOf(e) !== "ENOENT" || !(await isThere(path))) throw coverageFailure(e, path);
      await syncFolder(this.place).catch((e) => {
        throw coverageFailure(e, path);
      });
    }
    await this.#sweepWrites(`${basename(path)}-`);
  }

  /** Of a segment that is there: what others left of writing it, and what those who write it now can do without. */
  async #sweepWrites(prefix: string): Promise<void> {
    for (const name of await readdir(this.place).catch(() => []))
      if (name.startsWith(prefix) && name.endsWith(UNFINISHED))
        await unlink(join(this.place, name)).catch(() => {});
  }

  async getSegment(name: string): Promise<Uint8Array | null> {
    const path = join(this.place, `index-${name}.json`);
    try {
      return await readFile(path);
    } catch (e) {
      if (errnoOf(e) === "ENOENT") return null;
      throw coverageFailure(e, path);
    }
  }

  async sweep(keep: ReadonlySet<string> | null): Promise<void> {
    try {
      for (const name of await readdir(this.place)) {
        const segment = SEGMENT.exec(name)?.[1];
        const stray = name.endsWith(UNFINISHED) || (segment !== undefined && keep?.has(segment) === false);
        if (stray) await unlink(join(this.place, name)).catch(() => {});
      }
    } catch (e) {
      throw coverageFailure(e, this.place);
    }
  }

  async #versions(): Promise<number[]> {
    const names = await readdir(this.place).catch((e) => {
      if (errnoOf(e) === "ENOENT") return [];
      throw e;
    });
    return names.flatMap((n) => this.#name.exec(n)?.[1] ?? []).map(Number);
  }

  async #highest(): Promise<number | null> {
    const all = await this.#versions();
    return all.length === 0 ? null : Math.max(...all);
  }

  async #removeOld(current: number): Promise<void> {
    for (const v of await this.#versions()) {
      if (v < current - KEPT) await unlink(join(this.place, this.#nameOf(v))).catch(() => {});
    }
  }
}

/** False if the name is taken. Throws coverage.no_links where the file system has none. */
async function linkNew(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (e) {
    if (errnoOf(e) === "EEXIST") return false;
    // EPERM is what Linux says for file systems without hard links.
    if (["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(errnoOf(e))) throw noLinks(dirname(to), e);
    throw e;
  }
}

function noLinks(at: string, cause?: unknown): Failure {
  return new Failure("coverage.no_links", "the file system has no hard links that refuse an existing name", {
    at,
    hint: "Put the sink's path on a local file system such as ext4 or xfs",
    cause,
  });
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Null if there is no such file. One beyond any sane size is not read into memory. */
async function readWhole(path: string): Promise<Uint8Array | null> {
  try {
    // One byte over the limit is enough for the parser to refuse it by name.
    if ((await stat(path)).size > MAX_STATE_BYTES) return new Uint8Array(MAX_STATE_BYTES + 1);
    return await readFile(path);
  } catch (e) {
    if (errnoOf(e) === "ENOENT") return null;
    throw e;
  }
}

async function writeDurable(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, "w", 0o644);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function makeDurable(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  for (let p = path; ; p = dirname(p)) {
    await syncFolder(dirname(p));
    if (p === first || p === dirname(p)) return;
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

const DENIED: ReadonlySet<DiskTrouble> = new Set(["denied", "read_only"]);

function coverageFailure(e: unknown, place: string): Failure {
  if (e instanceof Failure) return e;
  const seen = diskTrouble(e);
  const text = e instanceof Error ? e.message : String(e);
  if (seen?.trouble === "full") {
    return new Failure("coverage.full", `the coverage state cannot be written: ${seen.text}`, {
      at: place,
      hint: "Free space: nothing is lost, writing goes on by itself",
      cause: e,
    });
  }
  if (seen !== null && (DENIED.has(seen.trouble) || errnoOf(e) === "ENOTDIR")) {
    return new Failure(
      "coverage.denied",
      `the coverage folder cannot be used: ${seen.text} (${errnoOf(e)})`,
      {
        at: place,
        hint: "Set the sink's `path` to a folder that the user of twg can write",
        cause: e,
      },
    );
  }
  return new Failure("coverage.unavailable", `the coverage folder cannot be used: ${text}`, {
    at: place,
    cause: e,
  });
}
