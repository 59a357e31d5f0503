/** What a command may touch: two text streams and the environment. The process itself belongs to main.ts. */
export interface Cli {
  /** Results. */
  out(text: string): void;
  /** Errors, notes and logs. */
  err(text: string): void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether `out` may carry colour, and likewise `err`. */
  readonly outColour: boolean;
  readonly errColour: boolean;
  readonly errIsTerminal: boolean;
}

/** Of `twg stream`. */
export interface StreamOptions {
  readonly config: string;
  readonly acceptGap: boolean;
  readonly logFormat: "json" | "text";
  /** The lowest level that is written. */
  readonly logLevel: "debug" | "info" | "warn" | "error";
  /** End once everything that was there at the start has landed. */
  readonly untilCaughtUp: boolean;
}

/** `NO_COLOR` (any value but the empty one) and dumb terminals get none. */
export function wantsColour(terminal: boolean, environment: Cli["environment"]): boolean {
  const off = environment.NO_COLOR;
  return terminal && (off === undefined || off === "") && environment.TERM !== "dumb";
}

/** One JSON document per result, so that a pipe into another program needs no options. */
export function outJson(cli: Cli, value: unknown): void {
  cli.out(`${JSON.stringify(value, (_, v) => (typeof v === "bigint" ? v.toString() : v), 2)}\n`);
}
