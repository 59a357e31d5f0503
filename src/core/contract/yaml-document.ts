/** A YAML (or JSON) document with the lines of its parts. A key twice is an error: the later one would win silently. */
import { isCollection, isNode, isScalar, LineCounter, parseAllDocuments } from "yaml";
import { Failure } from "../failure/failure.ts";

/** Anchors that are followed; more are a way to make much of little. */
const MAX_ALIASES = 100;

export interface YamlDocument {
  readonly root: unknown;
  /** As it is written there, so that 1.10 stays that; null: it is no scalar, or not there. */
  textOf(path: readonly (string | number)[]): string | null;
  /** Line of what is there, or of the nearest part around it; from 1. */
  lineOf(path: readonly (string | number)[]): number;
}

/** Throws files.schema. `at`: the file. */
export function parseYaml(text: string, at: string): YamlDocument {
  const bad = (why: string, cause?: unknown) => new Failure("files.schema", why, { at, cause });
  const lines = new LineCounter();
  try {
    const documents = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
    const [document, ...more] = "empty" in documents ? [] : documents;
    if (document === undefined) throw bad("the document is empty");
    if (more.length > 0) throw bad(`it holds ${more.length + 1} documents, one is wanted`);
    const [error] = document.errors;
    if (error !== undefined)
      throw bad(`line ${lines.linePos(error.pos[0]).line}: it is no YAML: ${error.message}`, error);
    const root: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
    const textOf = (path: readonly (string | number)[]): string | null => {
      const node = document.getIn(path, true);
      return isScalar(node) ? (node.source ?? String(node.value)) : null;
    };
    const lineOf = (path: readonly (string | number)[]): number => {
      for (let n = path.length; n > 0; n--) {
        const node = document.getIn(path.slice(0, n), true);
        if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
      }
      const { contents } = document;
      return isCollection(contents) && contents.range ? lines.linePos(contents.range[0]).line : 1;
    };
    return { root, textOf, lineOf };
  } catch (e) {
    if (e instanceof Failure) throw e;
    // Too many aliases, or nesting without end.
    throw bad(`it cannot be read: ${e instanceof Error ? e.message : String(e)}`, e);
  }
}
