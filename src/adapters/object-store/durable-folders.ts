/**
 * Folders that survive a power cut. A file is durable only if every folder above it is durable in its parent; whether
 * an earlier process got as far as that before it was killed nobody knows, so each process syncs the whole chain
 * once for every folder it uses.
 */
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf } from "../../core/failure/disk.ts";

/** Folders remembered; beyond that all are forgotten and proven anew. */
const MOST_KNOWN = 10_000;

export class DurableFolders {
  readonly #root: string;
  readonly #known = new Set<string>();

  /** `root`: absolute. Above it only folders that were made here are synced. */
  constructor(root: string) {
    this.#root = root;
  }

  /** mkdir -p, durable. Free for a folder that was made before. */
  async make(path: string): Promise<void> {
    if (!this.#known.has(path)) await this.remake(path);
  }

  /** The same although it is known: for a folder that turned out to be gone. */
  async remake(path: string): Promise<void> {
    const first = await mkdir(path, { recursive: true });
    const top = first !== undefined && first.length < this.#root.length ? first : this.#root;
    for (let p = path; p.length >= top.length && p !== dirname(p); p = dirname(p))
      await syncFolder(dirname(p));
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.add(path);
  }
}

/** Makes the entries of a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } catch (e) {
    // Some user-space and network file systems do not know it for folders and keep names by themselves.
    if (!["EINVAL", "ENOTSUP", "EOPNOTSUPP"].includes(errnoOf(e))) throw e;
  } finally {
    await folder.close();
  }
}
