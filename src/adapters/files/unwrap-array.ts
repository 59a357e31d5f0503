/** One JSON array of objects as lines, one a row: brackets and commas of the outermost level become line ends. */
import { Failure } from "../../core/failure/failure.ts";

const LF = 10;
const isBlank = (c: number): boolean => c === 32 || c === 9 || c === 10 || c === 13;

class Unwrapping {
  #depth = 0;
  #inString = false;
  #escaped = false;
  done = false;

  /** Rewrites the bytes in place; gives the offset of the first that does not belong, -1: none. */
  rewrite(b: Uint8Array): number {
    for (let i = 0; i < b.length; i++) {
      const c = b[i]!;
      if (this.#inString) this.#within(c);
      else if (isBlank(c)) b[i] = 32;
      else if (this.done || (this.#depth === 0 && c !== 91)) return i;
      else b[i] = this.#mark(c);
    }
    return -1;
  }

  #within(c: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (c === 92) this.#escaped = true;
    else if (c === 34) this.#inString = false;
  }

  #mark(c: number): number {
    if (c === 34) this.#inString = true;
    else if (c === 91 || c === 123) {
      this.#depth++;
      return this.#depth === 1 ? 32 : c;
    } else if (c === 93 || c === 125) {
      this.#depth--;
      this.done = this.#depth === 0;
      return this.done ? LF : c;
    } else if (c === 44 && this.#depth === 1) return LF;
    return c;
  }
}

export async function* unwrapArray(
  chunks: AsyncIterable<Uint8Array>,
  path: string,
): AsyncGenerator<Uint8Array> {
  const state = new Unwrapping();
  let at = 0;
  for await (const chunk of chunks) {
    const bytes = chunk.slice();
    const stray = state.rewrite(bytes);
    if (stray >= 0)
      throw new Failure("files.not_json", `byte ${at + stray} does not belong to one array of objects`, {
        at: path,
        hint: "For an object a line use --format ndjson",
      });
    at += chunk.length;
    yield bytes;
  }
  if (!state.done)
    throw new Failure("files.not_json", "the array has no end: the file is cut short", { at: path });
}
