/** Links between the project's own documents lead somewhere, anchors included. */
import { existsSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { type Check, readText, repositoryFiles } from "./check.ts";

export const docsLinks: Check = {
  name: "links in documents",
  async run(repo) {
    const documents = (await repositoryFiles(repo)).filter((f) => f.endsWith(".md"));
    const texts = new Map<string, string>();
    for (const d of documents) texts.set(d, await readText(repo, d));
    const problems = [...texts].flatMap(([file, text]) =>
      linkProblems(file, text, (p) => existsSync(join(repo, p)), texts),
    );
    return { problems };
  },
};

export function linkProblems(
  file: string,
  text: string,
  exists: (path: string) => boolean,
  documents: ReadonlyMap<string, string>,
): string[] {
  const problems: string[] = [];
  for (const [target, line] of links(text)) {
    if (/^[a-z]+:/.test(target)) continue;
    const [path, anchor] = target.split("#") as [string, string | undefined];
    const full = path === "" ? file : normalize(join(dirname(file), path));
    const at = `${file}:${line}`;
    if (full.startsWith("..")) problems.push(`${at}: ${target} leads out of the repository`);
    else if (!exists(full)) problems.push(`${at}: ${target} leads nowhere`);
    else if (anchor !== undefined && !anchors(documents.get(full) ?? "").has(anchor))
      problems.push(`${at}: ${target}: there is no such heading`);
  }
  return problems;
}

function* links(text: string): Generator<[target: string, line: number]> {
  let fenced = false;
  for (const [i, line] of text.split("\n").entries()) {
    if (line.trimStart().startsWith("```")) fenced = !fenced;
    if (fenced) continue;
    for (const m of line.replace(/`[^`]*`/g, "").matchAll(/\]\(([^)\s]+)\)/g)) yield [m[1]!, i + 1];
  }
}

/** As common renderers make them: lower case, punctuation dropped, spaces to hyphens. */
function anchors(text: string): Set<string> {
  const headings = [...text.matchAll(/^#{1,6}\s+(.*)$/gm)].map((m) => m[1]!);
  return new Set(
    headings.map((h) =>
      h
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .trim()
        .replace(/ /g, "-"),
    ),
  );
}
