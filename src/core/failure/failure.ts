/**
 * The one failure class. It says what was seen, what is allowed, where, and the likely cause; it never holds a
 * secret. Whatever crosses a thread goes through `toWire` and `fromWire`, since classes do not survive a clone.
 */
import type { FailureKind } from "./code-spec.ts";
import { CODES, type Code } from "./codes.ts";

export interface FailureDetail {
  /** Where: a config path, a topic, partition and offset, a file, an address. */
  readonly at?: string;
  /** The likely cause, or what to try, in one sentence. */
  readonly hint?: string;
  readonly cause?: unknown;
  /** Overrides the retry class of the code for this one case. */
  readonly retry?: boolean;
}

export interface FailureWire {
  readonly code: Code;
  readonly message: string;
  readonly at: string | null;
  readonly hint: string | null;
  readonly retry: boolean;
}

export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: Code;
  readonly at: string | null;
  readonly hint: string | null;
  readonly retry: boolean;

  constructor(code: Code, message: string, detail: FailureDetail = {}) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause });
    this.code = code;
    this.at = detail.at ?? null;
    this.hint = detail.hint ?? null;
    this.retry = detail.retry ?? CODES[code].retry;
  }

  get kind(): FailureKind {
    return CODES[this.code].kind;
  }
}

/**
 * One line: `code: message (at place). hint`. A function, since `line` on an error is taken: JavaScriptCore gives
 * every Error an own property of that name with the number of the source line, which hides a getter.
 */
export function failureLine(f: Omit<FailureWire, "retry">): string {
  const at = f.at === null ? "" : ` (at ${f.at})`;
  const hint = f.hint === null ? "" : `. ${f.hint}`;
  return `${f.code}: ${f.message}${at}${hint}`;
}

export function toWire(f: Failure): FailureWire {
  return { code: f.code, message: f.message, at: f.at, hint: f.hint, retry: f.retry };
}

export function fromWire(w: FailureWire): Failure {
  return new Failure(w.code, w.message, {
    retry: w.retry,
    ...(w.at === null ? {} : { at: w.at }),
    ...(w.hint === null ? {} : { hint: w.hint }),
  });
}

/** Anything thrown, as a Failure. What is not one already is a bug of ours and not retryable. */
export function asFailure(e: unknown, fallback: Code = "internal.bug"): Failure {
  if (e instanceof Failure) return e;
  const message = e instanceof Error ? e.message : String(e);
  return new Failure(fallback, message, { cause: e });
}
