/**
 * Two-phase objects in a folder. Staged files lie in `<root>/_twg/<pipeline>/<sink>/staging`, on the same file
 * system as what is published, so that publishing is a link and never a copy.
 *
 * What a kill between two system calls leaves, and who mends it:
 *
 *   after              staged  published  seen as    mended by
 *   open, write        partly  no         stray      sweep (no intent names it)
 *   fsync (seal)       yes     no         staged     publish, or discard by whoever settles
 *   link               yes     yes        published  publish again: same file, the staged name goes
 *   unlink             no      yes        published  publish again: folder is made durable again
 *
 * A link never replaces a file, so what somebody else put under a key of ours is left alone and reported.
 */
import { closeSync, fsyncSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { link, mkdir, open, readdir, rename, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Failure } from "../../core/failure/failure.ts";
import type { ObjectStore, StagedObject, Target, TargetState } from "../../core/ports/object-store.ts";
import { codeOf, storeFailure } from "./local-failure.ts";

export interface LocalStoreOptions {
  readonly root: string;
  /** Folder of staged files: `stagingOf(root, pipeline, sink)`. */
  readonly staging: string;
  /** In the names of our staged files: unique to the process and lane. */
  readonly instance: string;
}

const STAGED = ".staged";

export function stagingOf(root: string, pipeline: string, sink: string): string {
  return join(root, "_twg", pipeline, sink, "staging");
}

export class LocalObjectStore implements ObjectStore {
  readonly place: string;
  readonly #o: LocalStoreOptions;
  #serial = 0;

  constructor(options: LocalStoreOptions) {
    this.#o = options;
    this.place = options.root;
  }

  /** Makes the folders and proves that a file can be written, made durable and linked there. */
  async prepare(): Promise<void> {
    const probe = join(this.#o.staging, `probe-${this.#o.instance}`);
    const linked = `${probe}-linked`;
    try {
      await mkdirDurable(this.#o.staging);
      const file = await open(probe, "w");
      await file.writeFile("twg");
      await file.sync();
      await file.close();
      await unlink(linked).catch(() => {});
      await link(probe, linked).catch((e) => {
        if (!noLinks(e)) throw e;
      });
    } catch (e) {
      throw storeFailure(e, "prepare", this.#o.staging);
    } finally {
      await unlink(probe).catch(() => {});
      await unlink(linked).catch(() => {});
    }
  }

  async stage(key: string): Promise<StagedObject> {
    const name = `${this.#o.instance}-${this.#serial++}${STAGED}`;
    const path = join(this.#o.staging, name);
    try {
      await mkdirDurable(this.#o.staging);
      return new StagedFile(key, name, path, openSync(path, "wx", 0o644));
    } catch (e) {
      throw storeFailure(e, "create", path);
    }
  }

  async probe(target: Target): Promise<TargetState> {
    if ((await this.#published(target)) !== null) return "published";
    const staged = await sizeOf(this.#staged(target));
    return staged === target.bytes ? "staged" : "absent";
  }

  async publish(target: Target): Promise<void> {
    const from = this.#staged(target);
    const to = this.#final(target);
    try {
      if ((await this.#published(target)) === null) await this.#show(target, from, to);
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
      for (const name of await readdir(this.#o.staging).catch(noEntries)) {
        if (!name.endsWith(STAGED) || keep.has(name)) continue;
        await unlink(join(this.#o.staging, name)).catch(ignoreAbsent);
        gone.push(name);
      }
    } catch (e) {
      throw storeFailure(e, "sweep", this.#o.staging);
    }
    return gone;
  }

  #staged(target: Target): string {
    return join(this.#o.staging, target.staging);
  }

  #final(target: Target): string {
    return join(this.#o.root, target.key);
  }

  /** Size of the published object; null if there is none. A file of another size is not ours. */
  async #published(target: Target): Promise<number | null> {
    const path = this.#final(target);
    const size = await sizeOf(path);
    if (size !== null && size !== target.bytes) {
      throw new Failure(
        "store.foreign",
        `a file of ${size} bytes stands where one of ${target.bytes} belongs`,
        {
          at: path,
          hint: "Move it away; it is not one that twg wrote",
        },
      );
    }
    return size;
  }

  async #show(target: Target, from: string, to: string): Promise<void> {
    if ((await sizeOf(from)) === null && (await this.#published(target)) === null) {
      throw new Failure("store.absent", "neither the staged nor the published file is there", { at: to });
    }
    await mkdirDurable(dirname(to));
    try {
      await link(from, to);
    } catch (e) {
      if (noLinks(e)) await rename(from, to);
      else if (codeOf(e) === "ENOENT") await this.#vanished(target, to);
      else if (codeOf(e) !== "EEXIST") throw e;
    }
    await this.#published(target);
  }

  /** Somebody else published or discarded between our look and our link. */
  async #vanished(target: Target, to: string): Promise<void> {
    if ((await this.#published(target)) !== null) return;
    throw new Failure("store.absent", "the staged file is gone", { at: to });
  }
}

class StagedFile implements StagedObject {
  readonly key: string;
  readonly #name: string;
  readonly #path: string;
  #fd: number | null;
  #bytes = 0;

  constructor(key: string, name: string, path: string, fd: number) {
    this.key = key;
    this.#name = name;
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
      ftruncateSync(fd, this.#bytes);
      fsyncSync(fd);
      await syncFolder(dirname(this.#path));
      closeSync(fd);
      this.#fd = null;
    } catch (e) {
      // After a failed fsync the kernel may have dropped the pages and a second one would lie: never try again.
      throw new Failure(
        "store.not_durable",
        `the file could not be made durable: ${storeFailure(e, "sync", "").message}`,
        {
          at: this.#path,
          cause: e,
          hint: "Its records were not acknowledged and are read again",
        },
      );
    }
    return { key: this.key, staging: this.#name, bytes: this.#bytes, rows };
  }

  async abort(): Promise<void> {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
    await unlink(this.#path).catch(ignoreAbsent);
  }

  #open(): number {
    if (this.#fd === null)
      throw new Failure("internal.bug", "a staged file is used after its end", { at: this.#path });
    return this.#fd;
  }
}

/** mkdir -p in which every folder that was made is durable in its parent. */
async function mkdirDurable(path: string): Promise<void> {
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

async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch (e) {
    if (codeOf(e) === "ENOENT") return null;
    throw storeFailure(e, "look at", path);
  }
}

function ignoreAbsent(e: unknown): void {
  if (codeOf(e) !== "ENOENT") throw e;
}

function noEntries(e: unknown): string[] {
  ignoreAbsent(e);
  return [];
}

/** Some file systems (FAT, some network and user-space ones) have no links; a rename then does it, unguarded. */
function noLinks(e: unknown): boolean {
  return ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"].includes(codeOf(e));
}
