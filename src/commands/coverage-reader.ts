/**
 * Reads the newest coverage state beside a sink's files, without taking the store: a running pipeline is not
 * disturbed, and what is shown is one consistent version.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { coverageFolderOf, LocalVersionedStore } from "../adapters/coverage/local.ts";
import type { CoverageState } from "../core/coverage/state.ts";
import { parseState } from "../core/coverage/state-json.ts";
import { Failure } from "../core/failure/failure.ts";

/** Null if nothing was ever covered there. `folder` is the one that holds the versions. */
export async function readCoverage(folder: string): Promise<CoverageState | null> {
  if (!(await isFolder(folder))) return null;
  const newest = await new LocalVersionedStore(folder).read();
  return newest === null ? null : parseState(newest.bytes, newest.name, newest.version);
}

/**
 * The coverage folders of all pipelines and sinks that write under a folder; the folder itself where it is one.
 * Throws inspect.unreadable where there is no such folder.
 */
export async function coverageFoldersIn(root: string): Promise<string[]> {
  if (!(await isFolder(root)))
    throw new Failure("inspect.unreadable", "there is no such folder", { at: root });
  if ((await new LocalVersionedStore(root).read()) !== null) return [root];
  const found: string[] = [];
  for (const pipeline of await namesIn(join(root, "_twg"))) {
    for (const sink of await namesIn(join(root, "_twg", pipeline)))
      found.push(coverageFolderOf(root, pipeline, sink));
  }
  return found;
}

/** Sorted; none where the folder is not there or is no folder. */
async function namesIn(folder: string): Promise<string[]> {
  return (await isFolder(folder)) ? (await readdir(folder)).sort() : [];
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (e) {
    const code = e instanceof Error && "code" in e ? String(e.code) : String(e);
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw new Failure("inspect.unreadable", `cannot read it (${code})`, { at: path });
  }
}
