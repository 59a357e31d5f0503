/**
 * Finds and reads the newest coverage state beside a sink's files, without taking the store: a running pipeline is
 * not disturbed, and what is shown is one consistent version.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { type CoverageState, MAX_STATE_BYTES } from "../core/coverage/state.ts";
import { parseState } from "../core/coverage/state-json.ts";
import { Failure } from "../core/failure/failure.ts";

const VERSION_FILE = /^v(\d{6,16})\.json$/;
/** A version that a running pipeline removes between listing and reading is looked for again. */
const ATTEMPTS = 5;

/** Null if nothing was ever covered there. `folder` is the one that holds the versions. */
export async function readCoverage(folder: string): Promise<CoverageState | null> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const newest = await newestVersion(folder);
    if (newest === null) return null;
    const bytes = await bytesOf(newest.file);
    if (bytes !== null) return parseState(bytes, newest.file, newest.version);
  }
  throw new Failure("inspect.unreadable", "the coverage changed too fast to be read", { at: folder });
}

export function coverageFolder(root: string, pipeline: string, sink: string): string {
  return join(root, "_twg", pipeline, sink, "coverage");
}

/**
 * The coverage folders of all pipelines and sinks that write under a folder; the folder itself where it is one.
 * Throws inspect.unreadable where there is no such folder.
 */
export async function coverageFoldersIn(root: string): Promise<string[]> {
  if ((await newestVersion(root)) !== null) return [root];
  if (!(await isFolder(root)))
    throw new Failure("inspect.unreadable", "there is no such folder", { at: root });
  const found: string[] = [];
  for (const pipeline of await namesIn(join(root, "_twg"))) {
    for (const sink of await namesIn(join(root, "_twg", pipeline))) {
      const folder = coverageFolder(root, pipeline, sink);
      if ((await newestVersion(folder)) !== null) found.push(folder);
    }
  }
  return found;
}

interface VersionFile {
  readonly file: string;
  readonly version: number;
}

async function newestVersion(folder: string): Promise<VersionFile | null> {
  const versions = (await namesIn(folder)).flatMap((name) => {
    const digits = VERSION_FILE.exec(name)?.[1];
    return digits === undefined ? [] : [{ file: join(folder, name), version: Number(digits) }];
  });
  return versions.length === 0 ? null : versions.reduce((a, b) => (a.version >= b.version ? a : b));
}

/** Sorted; none where the folder is not there or is no folder. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (e) {
    if (codeOf(e) === "ENOENT" || codeOf(e) === "ENOTDIR") return [];
    throw new Failure("inspect.unreadable", `cannot read it (${codeOf(e)})`, { at: folder });
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (info) => info.isDirectory(),
    () => false,
  );
}

/** Null if the file is gone. */
async function bytesOf(file: string): Promise<Uint8Array | null> {
  try {
    const { size } = await stat(file);
    if (size <= MAX_STATE_BYTES) return await readFile(file);
  } catch (e) {
    if (codeOf(e) === "ENOENT") return null;
    throw new Failure("inspect.unreadable", `cannot read it (${codeOf(e)})`, { at: file });
  }
  throw new Failure("inspect.unreadable", `larger than ${MAX_STATE_BYTES} bytes`, { at: file });
}

function codeOf(e: unknown): string {
  return e instanceof Error && "code" in e ? String(e.code) : String(e);
}
