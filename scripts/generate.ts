/**
 * Writes what is made from the sources and checked in: the JSON Schema, the reference pages and the modules of wasm/.
 * `bun scripts/generate.ts` writes, `--check` only says what is out of date (exit 1).
 */
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { generatedFiles } from "./reference-pages.ts";
import { wasmModules } from "./wasm-modules.ts";

const root = join(import.meta.dir, "..");
const check = process.argv.includes("--check");
let stale = 0;
const files = generatedFiles();
for (const [path, text] of await wasmModules()) files.set(path, text);
for (const [path, text] of files) {
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
