/**
 * Two-phase objects in a folder. Staged files lie in `<root>/_twg/<pipeline>/<sink>/staging`, on the same file
 * system as what is published, so that publishing is a link and never a copy.
 *
 * What a kill between two system calls leaves, and who mends it:
 *
 *   after              staged  published  seen as    mended by
 *   open, write        partly  no         stray      sweep (no intent names it)
 *   fsync (seal)       yes     no         staged     publish, or discard by whoever settles
 *   link               yes     yes        published  publish again: one file with two names, the staged one goes
 *   fsync of folder    yes     yes        published  the same
 *   unlink             no      yes        published  nothing to do; publish again syncs the folder again
 *
 * A link never replaces a file, so what somebody else put under a key of ours is left alone and reported. Every step
 * bears being done by two processes at once: link lets one win, and the other finds the same file (same inode).
 */
import { closeSync, fsync, ftruncateSync, openSync, writeSync } from "node:fs";
import { link, lstat, open, readdir, rename, unlink } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, normalize, resolve, sep } from "node:path";
import { promisify } from "node:util";
import { errnoOf } from "../../core/failure/disk.ts";
import { Failure } from "../../core/failure/failure.ts";
import type { ObjectStore, StagedObject, Target, TargetState } from "../../core/ports/object-store.ts";
import { DurableFolders, syncFolder } from "./durable-folders.ts";
import { ignoreAbsent, storeFailure } from "./local-failure.ts";

export interface LocalStoreOptions {
  readonly root: string;
  /** Folder of staged files: `stagingOf(root, pipeline, sink)`. */
  readonly staging: string;
  /** In the names of our staged files: unique to the process and lane. */
  readonly instance: string;
}

const STAGED = ".staged";
/** Off the thread: a large file takes the disk seconds, and the lane answers messages meanwhile. */
const syncFile = promisify(fsync);

export function stagingOf(root: string, pipeline: string, sink: string): string {
  return join(root, "_twg", pipeline, sink, "staging");
}

interface Look {
  readonly bytes: number;
  readonly dev: number;
  readonly ino: number;
  readonly regular: boolean;
}

export class LocalObjectStore implements ObjectStore {
  readonly place: string;
  readonly #staging: string;
  readonly #instance: string;
  readonly #folders: DurableFolders;
  #serial = 0;

  constructor(options: LocalStoreOptions) {
    this.place = resolve(options.root);
    this.#staging = resolve(options.staging);
    this.#instance = options.instance;
    this.#folders = new DurableFolders(this.place);
  }

  /** Makes the folders and proves that a file can be written, made durable and linked there. */
  async prepare(): Promise<void> {
    // The suffix lets a sweep remove what a kill in here leaves behind.
    const probe = join(this.#staging, `${this.#instance}-probe${STAGED}`);
    const linked = join(this.#staging, `${this.#instance}-probe-linked${STAGED}`);
    try {
      await this.#folders.make(this.#staging);
      const file = await open(probe, "w");
      try {
        await file.writeFile("twg");
        await file.sync();
      } finally {
        await file.close();
      }
      // Rights or a quota that allow a file and refuse a link show here; no links at all are borne (see `noLinks`).
      await link(probe, linked).catch((e) => {
        if (!noLinks(e)) throw e;
      });
    } catch (e) {
      throw storeFailure(e, "prepare", this.#staging);
    } finally {
      await unlink(probe).catch(() => {});
      await unlink(linked).catch(() => {});
    }
  }

  async stage(key: string): Promise<StagedObject> {
    const name = `${this.#instance}-${this.#serial++}${STAGED}`;
    const path = join(this.#staging, name);
    try {
      return new StagedFile(key, path, await this.#create(path));
    } catch (e) {
      throw storeFailure(e, "create", path);
    }
  }

  async probe(target: Target): Promise<TargetState> {
    const staged = await look(this.#staged(target));
    if (await this.#isPublished(target, staged)) return "published";
    return staged?.bytes === target.bytes ? "staged" : "absent";
  }

  async publish(target: Target): Promise<void> {
    const from = this.#staged(target);
    const to = this.#final(target);
    try {
      const staged = await look(from);
      if (!(await this.#isPublished(target, staged))) await this.#show(target, staged);
      await syncFolder(dirname(to));
      await unlink(from).catch(ignoreAbsent);
    } catch (e) {
      throw storeFailure(e, "publish", to);
    }
  }

  async discard(target: Target): Promise<void> {
    const path = this.#staged(target);
    try {
      await unlink(path).catch(ignoreAbsent);
    } catch (e) {
      throw storeFailure(e, "remove", path);
    }
  }

  async sweep(keep: ReadonlySet<string>): Promise<readonly string[]> {
    const gone: string[] = [];
    try {
      for (const name of await readdir(this.#staging).catch(noEntries)) {
        if (!name.endsWith(STAGED) || keep.has(name)) continue;
        await unlink(join(this.#staging, name)).catch(ignoreAbsent);
        gone.push(name);
      }
    } catch (e) {
      throw storeFailure(e, "sweep", this.#staging);
    }
    return gone;
  }

  async #create(path: string): Promise<number> {
    await this.#folders.make(this.#staging);
    try {
      return openSync(path, "wx", 0o644);
    } catch (e) {
      if (errnoOf(e) !== "ENOENT") throw e;
      // Somebody removed the folder since we made it.
      await this.#folders.remake(this.#staging);
      return openSync(path, "wx", 0o644);
    }
  }

  /** Targets come out of stored state: a name that leads elsewhere is not followed. */
  #staged(target: Target): string {
    if (target.staging !== basename(target.staging) || !target.staging.endsWith(STAGED)) {
      throw outside("staged name", target.staging);
    }
    return join(this.#staging, target.staging);
  }

  #final(target: Target): string {
    const key = normalize(target.key);
    if (target.key === "" || isAbsolute(key) || key.split(sep)[0] === "..") throw outside("key", target.key);
    return join(this.place, key);
  }

  /**
   * Whether our object stands under its key. While the staged name exists it must be the same file; without it the
   * size must agree, since the key carries an id that no other writer has.
   */
  async #isPublished(target: Target, staged: Look | null): Promise<boolean> {
    const path = this.#final(target);
    const there = await look(path);
    if (there === null) return false;
    const same = staged === null || (staged.ino === there.ino && staged.dev === there.dev);
    if (there.regular && there.bytes === target.bytes && same) return true;
    throw new Failure("store.foreign", `something stands where a file of ${target.bytes} bytes belongs`, {
      at: path,
      hint: "Move it away; it is not what twg wrote",
    });
  }

  async #show(target: Target, staged: Look | null): Promise<void> {
    // Of another size it is not what was sealed: as good as gone, and never shown.
    if (staged?.bytes !== target.bytes) throw absent(this.#final(target));
    await this.#folders.make(dirname(this.#final(target)));
    if (await this.#linked(target)) return;
    // ENOENT: the folder was removed since it was made, or the staged file by another process.
    await this.#folders.remake(dirname(this.#final(target)));
    if (await this.#linked(target)) return;
    if (!(await this.#isPublished(target, null))) throw absent(this.#final(target));
  }

  /** False: one of the two names has no place. An existing file is looked at, never replaced. */
  async #linked(target: Target): Promise<boolean> {
    const from = this.#staged(target);
    const to = this.#final(target);
    try {
      await link(from, to);
      return true;
    } catch (e) {
      if (errnoOf(e) === "ENOENT") return false;
      if (errnoOf(e) === "EEXIST") return this.#isPublished(target, await look(from));
      if (!noLinks(e)) throw e;
      if (!(await this.#isPublished(target, await look(from)))) await rename(from, to);
      return true;
    }
  }
}

class StagedFile implements StagedObject {
  readonly key: string;
  readonly #path: string;
  #fd: number | null;
  #bytes = 0;
  #unsynced: Failure | null = null;

  constructor(key: string, path: string, fd: number) {
    this.key = key;
    this.#path = path;
    this.#fd = fd;
  }

  /** Writes at the position reached so far; after a failure the same bytes go to the same place again. */
  async append(bytes: Uint8Array): Promise<void> {
    const fd = this.#open();
    try {
      for (let at = 0; at < bytes.length; ) {
        at += writeSync(fd, bytes, at, bytes.length - at, this.#bytes + at);
      }
      this.#bytes += bytes.length;
    } catch (e) {
      throw storeFailure(e, "write", this.#path);
    }
  }

  async seal(rows: number): Promise<Target> {
    const fd = this.#open();
    try {
      // An append that failed half-way and was not repeated left bytes behind the end.
      ftruncateSync(fd, this.#bytes);
      await this.#sync(fd);
      await syncFolder(dirname(this.#path));
      this.#fd = null;
      closeSync(fd);
    } catch (e) {
      throw storeFailure(e, "finish", this.#path);
    }
    return { key: this.key, staging: basename(this.#path), bytes: this.#bytes, rows };
  }

  async abort(): Promise<void> {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
    await unlink(this.#path).catch(ignoreAbsent);
  }

  /** After a failed fsync the kernel may have dropped the pages and a second one would lie: it is never tried again. */
  async #sync(fd: number): Promise<void> {
    if (this.#unsynced !== null) throw this.#unsynced;
    try {
      await syncFile(fd);
    } catch (e) {
      const text = e instanceof Error ? e.message : String(e);
      this.#unsynced = new Failure("store.not_durable", `the file could not be made durable: ${text}`, {
        at: this.#path,
        cause: e,
        hint: "Its records were not acknowledged and are read again",
      });
      throw this.#unsynced;
    }
  }

  #open(): number {
    if (this.#fd === null)
      throw new Failure("internal.bug", "a staged file is used after its end", { at: this.#path });
    return this.#fd;
  }
}

async function look(path: string): Promise<Look | null> {
  try {
    const s = await lstat(path);
    return { bytes: s.size, dev: s.dev, ino: s.ino, regular: s.isFile() };
  } catch (e) {
    if (errnoOf(e) === "ENOENT") return null;
    throw storeFailure(e, "look at", path);
  }
}

function absent(path: string): Failure {
  return new Failure("store.absent", "neither the staged nor the published file is there", { at: path });
}

function outside(what: string, name: string): Failure {
  return new Failure("internal.bug", `a ${what} leads out of the sink's folder`, { at: name });
}

function noEntries(e: unknown): string[] {
  ignoreAbsent(e);
  return [];
}

/** Some file systems (FAT, some network and user-space ones) have no links; a rename then does it, less guarded. */
function noLinks(e: unknown): boolean {
  return ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"].includes(errnoOf(e));
}
