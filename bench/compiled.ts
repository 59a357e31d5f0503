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

/** In a small run it is the source: those figures mean nothing, and a build takes longer than they do. */
export async function subjectOf(o: BenchOptions, name: string): Promise<Subject> {
  const entry = `bench/subjects/${name}.ts`;
  if (o.small) return { command: [process.execPath, join(root, entry)], remove: () => {} };
  const path = join(root, ".cache/bench", `${name}-${process.pid}`);
  const { outfile } = await buildBinary({ root, entrypoints: [entry], outfile: path });
  return { command: [outfile], remove: () => rmSync(outfile, { force: true }) };
}
