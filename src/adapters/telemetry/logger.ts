/**
 * Events as log lines on stderr: JSON, one object a line, or text for people. A warning that repeats within half a
 * minute is counted instead of written; the count comes with the next one, or by itself when the time is over. What a
 * warning itself counts is summed meanwhile, so the numbers of all lines are the whole.
 * Errors are never left out.
 */

import { summed } from "../../core/observe/event-sums.ts";
import { atLeast, ENDS, eventRow, eventText, type Level, type TwgEvent } from "../../core/observe/events.ts";
import type { Clock } from "../../core/time/clock.ts";

export type LogFormat = "json" | "text";

export interface LoggerOptions {
  readonly clock: Clock;
  readonly format: LogFormat;
  /** The lowest level that is written. */
  readonly level: Level;
  /** Text only: ANSI colours by level. */
  readonly color: boolean;
  readonly write: (line: string) => void;
  /** Told of every line that was left out. */
  readonly suppressed?: () => void;
}

export const REPEAT_WINDOW_MS = 30_000;
/** Kinds of warning remembered at a time; beyond it the oldest one is forgotten. */
const MAX_REMEMBERED = 1_000;

const COLORS: Readonly<Record<Level, string>> = { debug: "2", info: "36", warn: "33", error: "31" };

interface Repeat {
  readonly since: number;
  count: number;
  last: TwgEvent;
}

export class Logger {
  readonly #o: LoggerOptions;
  readonly #repeats = new Map<string, Repeat>();

  constructor(options: LoggerOptions) {
    this.#o = options;
  }

  log(event: TwgEvent): void {
    this.#flushEnded(event);
    const { level } = eventRow(event);
    if (level === null || !atLeast(level, this.#o.level)) return;
    if (level !== "warn") {
      this.#write(level, event, 0);
      return;
    }
    this.tick();
    const key = sameness(event);
    const repeat = this.#repeats.get(key);
    if (repeat !== undefined) {
      repeat.last = repeat.count === 0 ? event : summed(repeat.last, event);
      repeat.count++;
      this.#o.suppressed?.();
      return;
    }
    this.#remember(key, event);
    this.#write(level, event, 0);
  }

  /** Writes the counts of warnings whose time is over. Called every second or so. */
  tick(): void {
    const now = this.#o.clock.monotonic();
    // Insertion order is the order of `since`, so the first young one ends the search.
    for (const [key, repeat] of this.#repeats) {
      if (now - repeat.since < REPEAT_WINDOW_MS) return;
      this.#repeats.delete(key);
      if (repeat.count === 0) continue;
      this.#write("warn", repeat.last, repeat.count);
      this.#remember(key, repeat.last);
    }
  }

  /** At the end: no count is lost. */
  close(): void {
    for (const repeat of this.#repeats.values())
      if (repeat.count > 0) this.#write("warn", repeat.last, repeat.count);
    this.#repeats.clear();
  }

  /** Before it is said that something works again, how often it was said that it does not. */
  #flushEnded(event: TwgEvent): void {
    const ended = ENDS[event.e];
    if (ended === undefined || this.#repeats.size === 0) return;
    for (const [key, repeat] of this.#repeats) {
      const { last } = repeat;
      if (last.e !== ended || ("sink" in last && "sink" in event && last.sink !== event.sink)) continue;
      this.#repeats.delete(key);
      if (repeat.count > 0) this.#write("warn", last, repeat.count);
    }
  }

  #remember(key: string, event: TwgEvent): void {
    if (this.#repeats.size >= MAX_REMEMBERED) {
      const oldest = this.#repeats.entries().next().value;
      if (oldest !== undefined) {
        this.#repeats.delete(oldest[0]);
        if (oldest[1].count > 0) this.#write("warn", oldest[1].last, oldest[1].count);
      }
    }
    this.#repeats.set(key, { since: this.#o.clock.monotonic(), count: 0, last: event });
  }

  #write(level: Level, event: TwgEvent, repeated: number): void {
    const ts = new Date(this.#o.clock.now()).toISOString();
    this.#o.write(
      this.#o.format === "json"
        ? jsonLine(ts, level, event, repeated)
        : this.#textLine(ts, level, event, repeated),
    );
  }

  #textLine(ts: string, level: Level, event: TwgEvent, repeated: number): string {
    const tag = level.toUpperCase().padEnd(5);
    const shown = this.#o.color ? `\u001b[${COLORS[level]}m${tag}\u001b[0m` : tag;
    const again = repeated === 0 ? "" : ` [repeated ${repeated} ${repeated === 1 ? "time" : "times"}]`;
    return `${ts} ${shown} ${printable(eventText(event))}${again}`;
  }
}

/** Two warnings are the same if the kind, the code and the place are; numbers such as durations do not count. */
function sameness(event: TwgEvent): string {
  const parts: string[] = [event.e];
  if ("failure" in event && event.failure !== null) parts.push(event.failure.code, event.failure.at ?? "");
  for (const [name, value] of Object.entries(event)) {
    if (PLACES.has(name)) parts.push(`${name}=${value}`);
  }
  return parts.join("|");
}

const PLACES: ReadonlySet<string> = new Set([
  "topic",
  "partition",
  "lane",
  "sink",
  "code",
  "scope",
  "reason",
  "address",
  "why",
]);

function jsonLine(ts: string, level: Level, event: TwgEvent, repeated: number): string {
  const { e, ...fields } = event;
  const head = { ts, level, event: e, message: eventText(event) };
  return JSON.stringify({ ...head, fields, ...(repeated === 0 ? {} : { repeated }) }, plainJson);
}

/** Positions are 64 bits wide and JSON numbers are not, so they are written as decimal strings. */
export function plainJson(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

/** What a broker or a server said must not move the cursor or forge a line. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the purpose
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (c) => {
    if (c === "\n") return "\\n";
    return `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
