/**
 * Log lines and one live line on the same terminal: the live line is wiped before a log line and drawn again after
 * it. Where there is no terminal the live line does not exist.
 */
import { fitLine } from "../../core/observe/progress-line.ts";
import type { LineWriter } from "./line-writer.ts";

/** Carriage return, then "erase to the end of the line" (ECMA-48 EL). */
const WIPE = "\r\u001b[K";

/** Of a terminal that does not say how wide it is (0, as on a serial line or in a bare pty). */
const DEFAULT_COLUMNS = 80;

export interface Terminal {
  /** Width now; it changes when the window does. 0 or undefined: it is not known. */
  columns(): number | undefined;
}

export class Screen {
  readonly #out: LineWriter;
  readonly #terminal: Terminal | null;
  #live: string | null = null;

  constructor(out: LineWriter, terminal: Terminal | null) {
    this.#out = out;
    this.#terminal = terminal;
  }

  get interactive(): boolean {
    return this.#terminal !== null;
  }

  /** One finished line, without its line feed. */
  line(text: string): void {
    this.#out.write(this.#live === null ? `${text}\n` : `${WIPE}${text}\n${this.#fitted(this.#live)}`);
  }

  /** Draws the live line, or with null removes it. */
  live(text: string | null): void {
    if (this.#terminal === null) return;
    if (text === null && this.#live === null) return;
    this.#live = text;
    this.#out.write(text === null ? WIPE : `${WIPE}${this.#fitted(text)}`);
  }

  #fitted(text: string): string {
    return fitLine(text, this.#terminal?.columns() || DEFAULT_COLUMNS);
  }
}
