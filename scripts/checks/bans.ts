/**
 * Constructs that the linter has no rule for. Read from the syntax tree, so a comment may name them and a type
 * import still counts.
 */
import ts from "typescript";
import { type Check, readText, repositoryFiles } from "./check.ts";

interface Ban {
  /** Dotted expression or bare call, as written. */
  readonly expression: string;
  readonly why: string;
}

const EVERYWHERE: readonly Ban[] = [
  { expression: "Bun.zstdDecompressSync", why: "it has no cap on its output: 6 KB can become 200 MB" },
  { expression: "Bun.zstdDecompress", why: "it has no cap on its output: 6 KB can become 200 MB" },
  { expression: "Bun.S3Client", why: "it drops If-None-Match silently and overwrites" },
  { expression: "Bun.s3", why: "it drops If-None-Match silently and overwrites" },
];

/** src/core has no clock, chance, timers, environment or I/O of its own: the simulation brings them. */
const PURE = "src/core/";
const IN_CORE: readonly Ban[] = [
  { expression: "Math.random", why: "chance comes through core/time/chance" },
  { expression: "crypto.randomUUID", why: "chance comes through core/time/chance" },
  { expression: "crypto.getRandomValues", why: "chance comes through core/time/chance" },
  { expression: "Date.now", why: "time comes through core/time/clock" },
  { expression: "performance.now", why: "time comes through core/time/clock" },
  { expression: "setTimeout", why: "timers come through core/time/clock" },
  { expression: "setInterval", why: "timers come through core/time/clock" },
  { expression: "setImmediate", why: "timers come through core/time/clock" },
  { expression: "process", why: "the environment comes in as an argument" },
  { expression: "fetch", why: "the network comes through a port" },
  { expression: "Bun", why: "I/O comes through a port" },
  { expression: "Worker", why: "lanes are hosted by an adapter" },
];

export const bans: Check = {
  name: "banned constructs",
  async run(repo) {
    const files = (await repositoryFiles(repo)).filter((f) => f.startsWith("src/") && f.endsWith(".ts"));
    const problems = await Promise.all(files.map(async (f) => bansIn(f, await readText(repo, f))));
    return { problems: problems.flat() };
  },
};

/** The banned things in one file, as `file:line: what: why`. */
export function bansIn(file: string, text: string): string[] {
  const pure = file.startsWith(PURE);
  const banned = new Map([...EVERYWHERE, ...(pure ? IN_CORE : [])].map((b) => [b.expression, b.why]));
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.ESNext, true);
  const problems: string[] = [];
  const report = (node: ts.Node, what: string, why: string) => {
    const { line } = tree.getLineAndCharacterOfPosition(node.getStart(tree));
    problems.push(`${file}:${line + 1}: ${what}: ${why}`);
  };
  const visit = (node: ts.Node): void => {
    const module = importedModule(node);
    if (pure && module !== null && /^(node:|bun:|bun$)/.test(module))
      report(node, module, "core does no I/O");
    const name = expressionName(node);
    const why = name === null ? undefined : banned.get(name);
    if (name !== null && why !== undefined) report(node, name, why);
    else ts.forEachChild(node, visit);
  };
  visit(tree);
  if (pure && text.includes("new Date()"))
    problems.push(`${file}: new Date(): time comes through core/time/clock`);
  return problems;
}

function importedModule(node: ts.Node): string | null {
  if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier !== undefined)
    return ts.isStringLiteral(node.moduleSpecifier) ? node.moduleSpecifier.text : null;
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    const [target] = node.arguments;
    return target !== undefined && ts.isStringLiteral(target) ? target.text : null;
  }
  return null;
}

/** `a.b` for a property access on a global name, `a` for a global name that is used, null for all else. */
function expressionName(node: ts.Node): string | null {
  if (ts.isPropertyAccessExpression(node) && ts.isIdentifier(node.expression))
    return `${node.expression.text}.${node.name.text}`;
  if (!ts.isIdentifier(node)) return null;
  const parent = node.parent;
  const called = (ts.isCallExpression(parent) || ts.isNewExpression(parent)) && parent.expression === node;
  const read = ts.isPropertyAccessExpression(parent) && parent.expression === node;
  return called || read ? node.text : null;
}
