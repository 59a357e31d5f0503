/**
 * Options of the long runs: one table says what there is, what holds without it and what it means; `--help` prints it, and
 * what is not in it ends the command with one line and exit code 2.
 */
import { type ParseArgsOptionDescriptor, parseArgs } from "node:util";

interface Flag extends ParseArgsOptionDescriptor {
  /** What it does, in a line. */
  readonly text: string;
  /** What stands for its value in the help; a boolean has none. */
  readonly value?: string;
  /** What holds without it, where that is no fixed value. */
  readonly otherwise?: string;
}

interface Command<T extends Readonly<Record<string, Flag>>> {
  /** Its name in package.json. */
  readonly name: string;
  /** What it does, in a line. */
  readonly does: string;
  readonly flags: T;
  /** How words that are no option are called in the help; without it none are taken. */
  readonly words?: string;
  /** Command lines with what they are for. */
  readonly examples: readonly (readonly [line: string, what: string])[];
  /** Where more is said, or what is printed at the end. */
  readonly more: string;
}

type Options<T> = { args: string[]; options: T & { help: typeof HELP }; allowPositionals: true };
type Parsed<T extends Readonly<Record<string, Flag>>> = ReturnType<typeof parseArgs<Options<T>>>;

const HELP = { type: "boolean", text: "this text" } as const;

/** The options of a call. Does not return where help was asked for (exit code 0) or an option is wrong (2). */
export function flagsOf<const T extends Readonly<Record<string, Flag>>>(
  command: Command<T>,
  args: readonly string[] = process.argv.slice(2),
): Parsed<T> {
  const parsed = parse(command, args);
  if (typeof parsed === "string") {
    console.error(`${command.name}: ${parsed}; bun run ${command.name} --help says what there is`);
    process.exit(2);
  }
  if ("help" in parsed.values && parsed.values.help === true) {
    console.log(helpOf(command));
    process.exit(0);
  }
  return parsed;
}

/** What was given, or what is wrong with it. */
function parse<const T extends Readonly<Record<string, Flag>>>(
  command: Command<T>,
  args: readonly string[],
): Parsed<T> | string {
  try {
    const options = { ...command.flags, help: HELP };
    const parsed = parseArgs<Options<T>>({ args: [...args], options, allowPositionals: true });
    const [word] = parsed.positionals;
    if (word !== undefined && command.words === undefined) return `it takes options only, not '${word}'`;
    return parsed;
  } catch (e) {
    // Node's own text, without its advice on how to pass such a word all the same.
    const { message } = e as Error;
    return message.replace(/\.( .*)?$/s, "").replace(/^[A-Z]/, (c) => c.toLowerCase());
  }
}

/** The whole text of `--help`. */
export function helpOf<T extends Readonly<Record<string, Flag>>>(command: Command<T>): string {
  const shown = Object.entries<Flag>({ ...command.flags, help: HELP }).map(([name, flag]) => ({
    left: `--${name}${flag.type === "string" ? ` ${flag.value ?? "VALUE"}` : ""}`,
    right: `${flag.text}${defaultOf(flag)}`,
  }));
  const width = Math.max(...shown.map((s) => s.left.length));
  const words = command.words === undefined ? "" : ` [${command.words}]`;
  const lines = [
    command.does,
    "",
    `Usage: bun run ${command.name}${words} [OPTION...]`,
    "",
    "Options:",
    ...shown.map((s) => `  ${s.left.padEnd(width)}  ${s.right}`),
    "",
    "Examples:",
    ...command.examples.flatMap(([line, what]) => [`  # ${what}`, `  ${line}`]),
    "",
    command.more,
  ];
  return lines.join("\n");
}

function defaultOf({ type, default: fixed, otherwise }: Flag): string {
  if (otherwise !== undefined) return ` (without it: ${otherwise})`;
  return type === "boolean" || fixed === undefined ? "" : ` (default ${fixed})`;
}
