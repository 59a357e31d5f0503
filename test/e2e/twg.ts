/** Running `twg` as its users do: a process, a configuration file, what it prints, how it ends. Each is known by its pid. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { tidyAfterTests, tidyAtEnd } from "../tidy.ts";
import { abandonFeeders } from "./feeder.ts";
import { ALICE, BOB, type Served } from "./real-kafka.ts";
import { until } from "./until.ts";

const REPO = resolve(import.meta.dir, "../..");
const PROGRAM =
  process.env.TWG_BINARY === undefined
    ? [process.execPath, join(REPO, "src/main.ts")]
    : [process.env.TWG_BINARY];

/** Nothing that twg prints may ever hold one of these. */
export const SECRETS: Set<string> = new Set([ALICE.password, BOB.password]);

export interface LogLine {
  readonly ts: string;
  readonly level: string;
  readonly event: string;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  /** Of the failure that ended it; null if none did. */
  readonly failure: { readonly code: string; readonly line: string } | null;
  readonly output: string;
}

const folders: string[] = [];
const running = new Set<Twg>();

// What a test that failed left running must not take the time of those behind it.
tidyAfterTests(async () => {
  for (const t of running) t.kill("SIGKILL");
  await Promise.all([abandonFeeders(), ...[...running].map((t) => t.ended())]);
});
tidyAtEnd(() => {
  for (const f of folders.splice(0)) rmSync(f, { recursive: true, force: true });
});

/** A folder that goes at the end of the run. */
export function workFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "twg-e2e-"));
  folders.push(folder);
  return folder;
}

export interface PipelineSpec {
  readonly served: Pick<Served, "plain">;
  readonly topics: readonly string[];
  /** In place of them. */
  readonly topicsPattern?: string;
  /** Lines of TOML that are added to a section. */
  readonly pipeline?: string;
  readonly source?: string;
  readonly sink?: string;
  readonly observability?: string;
  readonly more?: string;
  /** Default: the plain listeners. */
  readonly bootstrap?: readonly string[];
  readonly group?: string;
  /** Path of the sink; default: `lake/{topic}` in the work folder. */
  readonly path?: string;
}

export interface Pipeline {
  readonly folder: string;
  readonly lake: string;
  readonly config: string;
}

/** Writes the configuration of a pipeline into a folder of its own. Rolls often, so that tests need not wait. */
export function pipeline(spec: PipelineSpec, folder: string = workFolder()): Pipeline {
  const lake = join(folder, "lake");
  const config = join(folder, "twg.toml");
  const list = (values: readonly string[]) => JSON.stringify(values);
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    config,
    `[pipeline]
name = "e2e"
state_dir = "${join(folder, "state")}"
${spec.pipeline ?? ""}

[source]
type = "kafka"
bootstrap = ${list(spec.bootstrap ?? spec.served.plain)}
${spec.topicsPattern === undefined ? `topics = ${list(spec.topics)}` : `topics_pattern = ${JSON.stringify(spec.topicsPattern)}`}
${spec.group === undefined ? "" : `group = "${spec.group}"`}
${spec.source ?? ""}

[[sink]]
name = "raw"
type = "parquet"
path = "${spec.path ?? `${lake}/{topic}`}"
${spec.sink ?? 'roll_interval_ms = "300ms"'}

[observability]
${spec.observability ?? 'listen = "off"'}
${spec.more ?? ""}
`,
  );
  return { folder, lake, config };
}

export class Twg {
  readonly pid: number;
  readonly #process: Bun.Subprocess<"ignore", "pipe", "pipe">;
  readonly #read: Promise<unknown>;
  #output = "";
  #unparsed = "";
  readonly log: LogLine[] = [];
  /** Lines of standard error that are no JSON object: there must be none with --log-format json. */
  readonly strays: string[] = [];

  /** `before`: a program that becomes twg (`exec`), so that the pid stays. */
  constructor(
    args: readonly string[],
    environment: Record<string, string> = {},
    before: readonly string[] = [],
  ) {
    this.#process = Bun.spawn([...before, ...PROGRAM, ...args], {
      cwd: REPO,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      env: { ...process.env, ...environment },
    });
    this.pid = this.#process.pid;
    this.#read = Promise.all([
      this.#consume(this.#process.stdout, () => {}),
      this.#consume(this.#process.stderr, (text) => this.#lines(text)),
    ]);
    running.add(this);
  }

  async #consume(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      const text = decoder.decode(chunk, { stream: true });
      this.#output += text;
      take(text);
    }
  }

  #lines(text: string): void {
    this.#unparsed += text;
    for (let end = this.#unparsed.indexOf("\n"); end >= 0; end = this.#unparsed.indexOf("\n")) {
      const line = this.#unparsed.slice(0, end);
      this.#unparsed = this.#unparsed.slice(end + 1);
      try {
        this.log.push(JSON.parse(line) as LogLine);
      } catch {
        this.strays.push(line);
      }
    }
  }

  get output(): string {
    return this.#output;
  }

  get isRunning(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** The first log line of an event, now or when it comes. Fails if the process ends before. */
  async saw(
    event: string,
    fits: (line: LogLine) => boolean = () => true,
    from = 0,
    limitMs?: number,
  ): Promise<LogLine> {
    const look = () => {
      const line = this.log.slice(from).find((l) => l.event === event && fits(l));
      if (line === undefined && !this.isRunning) throw new Error(`twg ended (${this.#process.exitCode})`);
      return line;
    };
    try {
      return await until(`event ${event} of process ${this.pid}`, look, limitMs);
    } catch (e) {
      throw new Error(`${e}, without ${event}; what it said last:\n${this.output.slice(-3000)}`);
    }
  }

  count(event: string): number {
    return this.log.filter((l) => l.event === event).length;
  }

  kill(signal: NodeJS.Signals): void {
    if (this.isRunning) process.kill(this.pid, signal);
  }

  /** Waits for its end. Secrets in what it printed are an error of every test. */
  async ended(): Promise<Ended> {
    const code = await this.#process.exited;
    await this.#read;
    running.delete(this);
    for (const secret of SECRETS) {
      if (this.#output.includes(secret)) throw new Error(`a secret was printed:\n${this.#output}`);
    }
    const signal = this.#process.signalCode as string | null;
    return {
      code: signal === null ? Number(code) : null,
      signal,
      failure: this.#failure(),
      output: this.#output,
    };
  }

  #failure(): Ended["failure"] {
    const line = this.log.findLast((l) => l.event === "failure");
    if (line !== undefined) {
      const { code } = line.fields.failure as { code: string };
      return { code, line: line.message };
    }
    const told = this.strays.map((l) => /^error: ([a-z_]+\.[a-z_]+)/.exec(l)).find((m) => m !== null);
    return told === null || told === undefined ? null : { code: told[1] ?? "", line: told.input };
  }
}

export interface StreamFlags {
  readonly untilCaughtUp?: boolean;
  readonly more?: readonly string[];
  readonly environment?: Record<string, string>;
  /** A program that becomes twg. */
  readonly before?: readonly string[];
}

/** `twg stream` with JSON logs of every level. */
export function stream(p: Pipeline, flags: StreamFlags = {}): Twg {
  const caughtUp = flags.untilCaughtUp === true ? ["--until-caught-up"] : [];
  const args = ["stream", "-c", p.config, "--log-format", "json", "--log-level", "debug"];
  return new Twg([...args, ...caughtUp, ...(flags.more ?? [])], flags.environment, flags.before);
}

/** Runs until everything that is there has landed; anything but exit 0 fails. */
export async function catchUp(p: Pipeline, flags: StreamFlags = {}): Promise<Ended> {
  const ended = await stream(p, { ...flags, untilCaughtUp: true }).ended();
  if (ended.code !== 0)
    throw new Error(`twg ended with ${ended.code ?? ended.signal}:\n${ended.output.slice(-4000)}`);
  return ended;
}

/** Another subcommand, to its end. */
export function command(args: readonly string[], environment: Record<string, string> = {}): Promise<Ended> {
  return new Twg(args, environment).ended();
}
