/** A program of bench/subjects as it stands beside compiled peers: compiled as `twg` is. */
import { rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { buildBinary } from "../scripts/build-binary.ts";
import type { BenchOptions } from "./figure.ts";

const root = resolve(import.meta.dir, "..");

export interface Subject {
  readonly command: readonly string[];
  remove(): void;
}

/**
 * In a small run it is the source: those figures mean nothing, and a build takes longer than they do. `workers`: programs of
 * its Workers, which it carries along.
 */
export async function subjectOf(
  o: BenchOptions,
  name: string,
  workers: readonly string[] = [],
): Promise<Subject> {
  const [entry = "", ...others] = [name, ...workers].map((n) => `bench/subjects/${n}.ts`);
  if (o.small) return { command: [process.execPath, join(root, entry)], remove: () => {} };
  const path = join(root, ".cache/bench", `${name}-${process.pid}`);
  const { outfile } = await buildBinary({ root, entrypoints: [entry, ...others], outfile: path });
  return { command: [outfile], remove: () => rmSync(outfile, { force: true }) };
}
