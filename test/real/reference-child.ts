/** A Python process that makes payloads and reads tables: one line of words in, one line of JSON out. */
import { readFileSync } from "node:fs";
import type { Payloads } from "../../src/core/codecs/record-codec.ts";

export class Reference {
  readonly #child;
  readonly #lines;

  constructor(python: string, script: string) {
    this.#child = Bun.spawn([python, script], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    });
    this.#lines = this.#child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  async ask<T>(...words: readonly (string | number)[]): Promise<T> {
    this.#child.stdin.write(`${words.join(" ")}\n`);
    this.#child.stdin.flush();
    let text = "";
    while (!text.endsWith("\n")) {
      const { value, done } = await this.#lines.read();
      if (done) throw new Error(`the reference ended: ${text}`);
      text += value;
    }
    return JSON.parse(text) as T;
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    await this.#child.exited;
  }
}

/** Payloads of a file, each behind its length in 4 bytes, the lowest first. */
export function payloadsOf(file: string): Payloads {
  const bytes = new Uint8Array(readFileSync(file));
  const view = new DataView(bytes.buffer);
  const starts: number[] = [];
  const ends: number[] = [];
  for (let at = 0; at < bytes.length; at = ends.at(-1)!) {
    starts.push(at + 4);
    ends.push(at + 4 + view.getUint32(at, true));
  }
  return { bytes, starts: Int32Array.from(starts), ends: Int32Array.from(ends), count: starts.length };
}
