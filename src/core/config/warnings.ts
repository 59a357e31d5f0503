/** What a configuration that is valid would still surprise its owner with. It runs all the same. */
import type { CheckedConfig } from "./check.ts";
import { formatBytes } from "./option-types.ts";
import { type ConfigPath, orderProblems, type Problem, pathText } from "./problem.ts";
import { Secret } from "./secret.ts";
import { batchSpec, RAW_BATCH_BYTES, RAW_BATCH_RECORDS } from "./sections.ts";

/** Options that may hold a reference to a secret and whose value is none. */
const PUBLIC: ReadonlySet<string> = new Set(["username", "ca", "cert"]);

export function warningsOf(config: CheckedConfig): Problem[] {
  const literals = [
    ...literalsIn(config.source, ["source"]),
    ...config.sinks.flatMap((sink, i) => literalsIn(sink, ["sink", i])),
    ...literalsIn(config.observability, ["observability"]),
    ...literalsIn(config.decode, ["decode"]),
  ];
  const say = (code: Problem["code"], path: ConfigPath, seen: string, allowed: string, hint: string) => ({
    code,
    file: config.file,
    line: config.lineOf(path),
    path: pathText(path),
    seen,
    allowed,
    hint,
  });
  return orderProblems([
    ...literals.map((path) =>
      say(
        "config.literal_secret",
        path,
        "a secret in the file itself (not shown)",
        'a reference { secret = "name" }',
        "whoever may read the file knows it",
      ),
    ),
    ...idle(config).map(([key, seen, allowed, hint]) =>
      say("config.no_effect", ["batch", key], seen, allowed, hint),
    ),
  ]);
}

function literalsIn(value: unknown, path: ConfigPath): ConfigPath[] {
  if (value instanceof Secret) return PUBLIC.has(String(path.at(-1))) ? [] : [path];
  if (typeof value !== "object" || value === null) return [];
  const entries: Iterable<[string | number, unknown]> = Array.isArray(value)
    ? value.entries()
    : Object.entries(value);
  return [...entries].flatMap(([key, child]) => literalsIn(child, [...path, key]));
}

/** Settings of `[batch]` that the file makes, other than the default, and that change nothing. */
function idle({ batch, written }: CheckedConfig): (readonly [string, string, string, string])[] {
  const all = [
    [
      "max_wait_ms",
      true,
      `${batch.max_wait_ms}`,
      "to leave it out",
      "raw records wait for nothing in this version",
    ],
    [
      "max_records",
      batch.max_records > RAW_BATCH_RECORDS,
      `${batch.max_records}`,
      `up to ${RAW_BATCH_RECORDS}`,
      `a raw batch has at most ${RAW_BATCH_RECORDS} records`,
    ],
    [
      "max_bytes",
      batch.max_bytes > RAW_BATCH_BYTES,
      formatBytes(batch.max_bytes),
      `up to ${formatBytes(RAW_BATCH_BYTES)}`,
      `a raw batch is emitted at ${formatBytes(RAW_BATCH_BYTES)}`,
    ],
  ] as const;
  const defaults = batchSpec.parse({});
  return all.flatMap(([key, without, seen, allowed, hint]) => {
    const chosen = written.has(`batch.${key}`) && batch[key] !== defaults[key];
    return without && chosen ? [[key, seen, allowed, hint] as const] : [];
  });
}
