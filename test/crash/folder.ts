/** Reads a pipeline's folder as an outsider does, without any code that is under test. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface Entry {
  readonly id: string;
  readonly targets: readonly { readonly key: string }[];
  readonly spans: readonly [string, string, string][];
}

interface State {
  readonly owners: readonly { readonly instance: string }[];
  readonly streams: readonly { readonly stream: string; readonly covered: readonly [string, string][] }[];
  readonly intents: readonly {
    readonly targets: readonly { readonly key: string; readonly staging: string }[];
  }[];
  readonly index: readonly Entry[];
  readonly segments: readonly { readonly name: string }[];
}

export function stateOf(root: string): State {
  const folder = join(root, "_twg/p/s/coverage");
  const newest = readdirSync(folder)
    .filter((n) => /^coverage-\d{12}\.json$/.test(n))
    .sort()
    .at(-1);
  // Killed within the first write: nothing is stored, so nothing may be published or told.
  if (newest === undefined) return { owners: [], streams: [], intents: [], index: [], segments: [] };
  return JSON.parse(readFileSync(join(folder, newest), "utf8")) as State;
}

export function stagedIn(root: string): string[] {
  return readdirSync(join(root, "_twg/p/s/staging"));
}

export function published(root: string): Map<string, string[]> {
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".txt"));
  return new Map(files.map((f) => [f, readFileSync(join(root, f), "utf8").split("\n")]));
}

/**
 * What is wrong at any moment, also right after a kill: something told that is not covered, covered that is in no
 * file or in two, a published file that neither the index nor an open intent names.
 */
export function complaints(root: string): string[] {
  const out: string[] = [];
  const state = stateOf(root);
  const files = published(root);
  const intended = new Set(state.intents.flatMap((i) => i.targets.map((t) => t.key)));
  const indexed = state.index.flatMap((e) => e.targets.map((t) => t.key));
  if (state.segments.length > 0) out.push("the story is too long for this reader: the index has segments");
  if (new Set(indexed).size !== indexed.length) out.push("a file is in the index twice");
  for (const f of files.keys()) if (!intended.has(f) && !indexed.includes(f)) out.push(`${f} is in no index`);
  for (const key of indexed) if (!files.has(key)) out.push(`${key} is indexed and not there`);
  const landed = indexed.flatMap((key) => files.get(key) ?? []);
  if (new Set(landed).size !== landed.length) out.push("a position landed twice");
  return [...out, ...coverageComplaints(state, landed), ...toldComplaints(root, state)];
}

function coverageComplaints(state: State, landed: readonly string[]): string[] {
  const out: string[] = [];
  const there = new Set(landed);
  for (const { stream, covered } of state.streams) {
    let n = 0;
    for (const [from, next] of covered) {
      for (let p = BigInt(from); p < BigInt(next); p++, n++) {
        if (!there.has(`${stream}@${p}`)) out.push(`${stream}@${p} is covered and in no file`);
      }
    }
    const have = landed.filter((r) => r.startsWith(`${stream}@`)).length;
    if (have !== n) out.push(`${stream} has ${have} landed positions, ${n} covered ones`);
  }
  return out;
}

function toldComplaints(root: string, state: State): string[] {
  const file = join(root, "told");
  const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  return lines.filter((line) => {
    const [stream, next] = line.split(" ");
    const covered = state.streams.find((s) => s.stream === stream)?.covered[0];
    return covered === undefined || BigInt(covered[1]) < BigInt(next ?? "0");
  });
}

/** And at the end: everything is covered from 0 to `end`, no intent is open, nothing staged or unfinished is left. */
export function endComplaints(root: string, streams: readonly string[], end: number): string[] {
  const out = complaints(root);
  const state = stateOf(root);
  for (const stream of streams) {
    const covered = state.streams.find((s) => s.stream === stream)?.covered.join(" ");
    if (covered !== `0,${end}`) out.push(`${stream} is covered at ${covered}`);
  }
  if (state.intents.length > 0) out.push(`${state.intents.length} intents are open`);
  if (state.owners.length > 0) out.push(`${state.owners.length} owners are left`);
  const strays = [
    ...stagedIn(root),
    ...readdirSync(join(root, "_twg/p/s/coverage")).filter((n) => n.endsWith("unfinished")),
  ];
  if (strays.length > 0) out.push(`strays: ${strays}`);
  return out;
}
