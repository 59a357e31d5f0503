/**
 * Writes what is made from the sources and checked in: the JSON Schema and the reference pages.
 * `bun scripts/generate.ts` writes, `--check` only says what is out of date (exit 1).
 */
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { generatedFiles } from "./reference-pages.ts";

const root = join(import.meta.dir, "..");
const check = process.argv.includes("--check");
let stale = 0;
for (const [path, text] of generatedFiles()) {
  const target = join(root, path);
  const file = Bun.file(target);
  if ((await file.exists()) && (await file.text()) === text) continue;
  stale++;
  console.log(`${check ? "out of date" : "written"}: ${path}`);
  if (check) continue;
  await mkdir(dirname(target), { recursive: true });
  await Bun.write(target, text);
}
if (check && stale > 0) process.exit(1);
