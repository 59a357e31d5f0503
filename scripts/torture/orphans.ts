/**
 * Files of ours that should not be there after a clean end: staged or unfinished ones, and Parquet files that the
 * coverage does not name. The coverage is read as plain JSON, not by our own reader.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface Entry {
  readonly targets: readonly { readonly key: string }[];
}

/** Highest version of every sink's coverage under the folder, by where its keys are relative to. */
function indexedKeys(lake: string): Set<string> {
  const keys = new Set<string>();
  const files = readdirSync(lake, { recursive: true, encoding: "utf8" });
  const folders = new Set(files.flatMap((f) => /^(.*\/coverage)\/coverage-\d+\.json$/.exec(f)?.[1] ?? []));
  for (const folder of folders) {
    const root = folder.slice(0, Math.max(0, folder.indexOf("_twg") - 1));
    const names = readdirSync(join(lake, folder));
    const newest = names
      .filter((n) => /^coverage-\d+\.json$/.test(n))
      .sort()
      .at(-1);
    const segments = names.filter((n) => n.startsWith("index-"));
    for (const name of [newest, ...segments]) {
      if (name === undefined) continue;
      const body = JSON.parse(readFileSync(join(lake, folder, name), "utf8")) as {
        index?: Entry[];
        entries?: Entry[];
      };
      for (const e of body.index ?? body.entries ?? [])
        for (const t of e.targets) keys.add(join(root, t.key));
    }
  }
  return keys;
}

export function orphansIn(lake: string): string[] {
  const keys = indexedKeys(lake);
  const files = readdirSync(lake, { recursive: true, encoding: "utf8" });
  return files.filter((f) => {
    if (/\/(staging)\//.test(f) || f.endsWith(".unfinished")) return true;
    return f.endsWith(".parquet") && !keys.has(f);
  });
}

/** How many processes landed something, by the names of the files: kills that hit nobody at work prove nothing. */
export function writersIn(lake: string): number {
  const files = readdirSync(lake, { recursive: true, encoding: "utf8" });
  return new Set(files.flatMap((f) => /-([0-9a-f]{8,})[^/]*\.parquet$/.exec(f)?.[1] ?? [])).size;
}
