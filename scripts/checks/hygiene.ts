/** What must not lie in the repository, whatever kind of file it is. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { type Check, readText, repositoryFiles } from "./check.ts";

const MAX_BYTES = 1 << 20;
const TEXT =
  /\.(ts|js|cjs|mjs|json|jsonc|md|sh|toml|ya?ml|py|go|java|c|xml|service|txt|lock|sql|avsc|proto)$|(^|\/)[^./]+$/;
/** Texts of others, kept as they are. */
const VERBATIM = /^LICENSE-|^bun\.lock$|\/(golden|fixtures)\//;

/** Hosts that a text may name besides loopback, names without a dot and names reserved for examples. */
const HOSTS = new Set([
  "bun.sh",
  "bun.com",
  "cwiki.apache.org",
  "datatracker.ietf.org",
  "duckdb.org",
  "gcc.gnu.org",
  "github.com",
  "json-schema.org",
  "kafka.apache.org",
  "keepachangelog.com",
  "kubernetes.io",
  "maven.apache.org",
  "parquet.apache.org",
  "protobuf.dev",
  "semver.org",
  "spdx.org",
  "www.apache.org",
  "www.rfc-editor.org",
  "www.w3.org",
]);

interface Smell {
  readonly pattern: RegExp;
  readonly what: string;
}

// Written with classes, so that this file does not find itself.
const SMELLS: readonly Smell[] = [
  { pattern: /(?<![\w.$}/])\/(?:[w]ork|[r]oot|[h]ome\/\w+)\//, what: "a path of one machine" },
  { pattern: /\b(?:[T]ODO|[F]IXME|[X]XX|[H]ACK)\b/, what: "an unfinished note: finish it or file an issue" },
  { pattern: /^(?:[<]{7}|[>]{7}|[=]{7})( |$)/, what: "a merge conflict" },
  { pattern: /[ \t]+$/, what: "white space at the end of a line" },
  { pattern: /\r$/, what: "a carriage return" },
];

export const hygiene: Check = {
  name: "repository hygiene",
  async run(repo) {
    const problems: string[] = [];
    for (const file of await repositoryFiles(repo)) {
      const { size, mode } = statSync(join(repo, file));
      if (size > MAX_BYTES) problems.push(`${file}: ${size} bytes: too large for the repository`);
      else if (TEXT.test(file) && !VERBATIM.test(file)) {
        const text = await readText(repo, file);
        problems.push(...textProblems(file, text));
        if (text.startsWith("#!") && (mode & 0o111) === 0)
          problems.push(`${file}: has a #! line but is not executable`);
      }
    }
    return { problems };
  },
};

export function textProblems(file: string, text: string): string[] {
  const problems: string[] = [];
  text.split("\n").forEach((line, i) => {
    const at = `${file}:${i + 1}`;
    for (const { pattern, what } of SMELLS) if (pattern.test(line)) problems.push(`${at}: ${what}`);
    for (const host of hostsIn(line))
      if (!isAllowedHost(host)) problems.push(`${at}: names the host ${host}`);
  });
  if (text !== "" && !text.endsWith("\n")) problems.push(`${file}: no line break at its end`);
  return problems;
}

function hostsIn(line: string): string[] {
  return [...line.matchAll(/\bhttps?:\/\/(?:[^\s/@"'`]*@)?(\[[^\]]*\]|[^\s/:"'`<>)\\,;]+)/g)].map((m) =>
    m[1]!.toLowerCase(),
  );
}

function isAllowedHost(host: string): boolean {
  if (HOSTS.has(host) || !host.includes(".")) return true; // no dot: a compose or cluster name, or a placeholder
  if (/^127\.|^0\.0\.0\.0$|^\[/.test(host) || /[${}*]/.test(host)) return true;
  return /(^|\.)(example|example\.com|example\.org|example\.net|test|invalid|local|internal|localhost)\.?$/.test(
    host,
  );
}
