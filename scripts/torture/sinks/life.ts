/**
 * One process of a run with several sinks, live ingest or recovery: what it logged that the judge needs, and how it
 * ended. The whole log is kept in a file.
 */
import { join } from "node:path";
import { kill, type Started, start } from "../process.ts";

/** A position that a process began to read at, or went back to. */
export interface Asked {
  readonly partition: number;
  readonly position: number;
  /** Wall clock of this machine, ms. */
  readonly at: number;
}

interface LogLine {
  readonly ts: string;
  readonly event: string;
  readonly message: string;
  readonly fields: {
    readonly partition?: number;
    readonly position?: number | string;
    readonly marks?: readonly { readonly partition: number; readonly next: number | string }[];
    readonly failure?: { readonly code: string };
  };
}

export interface Ended {
  /** Null: by a signal. */
  readonly code: number | null;
  readonly signal: string | null;
  /** Code of the failure that ended it. */
  readonly failure: string | null;
}

export class TwgLife {
  readonly name: string;
  readonly asked: Asked[] = [];
  /** What it acknowledged to the source. */
  readonly acknowledged: Asked[] = [];
  /** Partitions that it reads now. */
  readonly reads = new Set<number>();
  /** It was stopped for a while: what it does when it wakes is of the time before. */
  stopped = false;
  /** By us, and not at a point of its own. */
  killed = false;
  /** Its sinks were open: from there on outages are waited out. */
  up = false;
  #failure: string | null = null;
  readonly #started: Started;
  readonly #file: string;

  constructor(folder: string, name: string, command: readonly string[], environment: Record<string, string>) {
    this.name = name;
    this.#file = join(folder, `${name}.log`);
    const log = Bun.file(this.#file).writer();
    log.write(`${command.join(" ")} ${JSON.stringify(environment)}\n`);
    this.#started = start(command, environment, (line) => {
      log.write(`${line}\n`);
      this.#took(line);
    });
    void this.#started.process.exited.then(() => Bun.sleep(100)).then(() => log.end());
  }

  get alive(): boolean {
    const { exitCode, signalCode } = this.#started.process;
    return exitCode === null && signalCode === null;
  }

  signal(signal: NodeJS.Signals): void {
    if (this.alive) process.kill(this.#started.pid, signal);
  }

  /** True if it ended within `ms`. */
  async endsWithin(ms: number): Promise<boolean> {
    let timer: Timer | undefined;
    const over = new Promise<boolean>((go) => {
      timer = setTimeout(() => go(false), ms);
    });
    const ended = this.#started.process.exited.then(() => true);
    return await Promise.race([ended, over]).finally(() => clearTimeout(timer));
  }

  async ended(): Promise<Ended> {
    const code = await this.#started.process.exited;
    // What it wrote last is read after its end.
    await Bun.sleep(20);
    const { signalCode } = this.#started.process;
    return {
      code: signalCode === null ? code : null,
      signal: signalCode === null ? null : String(signalCode),
      failure: this.#failure,
    };
  }

  async kill(signal: "SIGKILL" | "SIGTERM"): Promise<Ended> {
    this.killed ||= this.alive && signal === "SIGKILL";
    await kill(this.#started, signal);
    return this.ended();
  }

  log(): string {
    return `${this.#file}\n${this.#started.log().slice(-3_000)}`;
  }

  #took(text: string): void {
    const told = /^(?:error|warn): ([a-z0-9_]+\.[a-z0-9_]+)/.exec(text);
    if (told !== null && text.startsWith("error")) this.#failure = told[1] ?? null;
    let line: LogLine;
    try {
      line = JSON.parse(text) as LogLine;
    } catch {
      return;
    }
    const { partition = -1, position, marks = [], failure } = line.fields;
    const at = Date.parse(line.ts);
    switch (line.event) {
      case "pipeline.started":
        this.up = true;
        return;
      case "stream.begun":
        this.reads.add(partition);
        this.asked.push({ partition, position: Number(position), at });
        return;
      case "stream.rewound":
        this.asked.push({ partition, position: Number(position), at });
        return;
      case "stream.ended":
        this.reads.delete(partition);
        return;
      case "source.acknowledged":
        for (const m of marks)
          this.acknowledged.push({ partition: m.partition, position: Number(m.next), at });
        return;
      case "failure":
        this.#failure = failure?.code ?? "unknown";
        return;
    }
  }
}
