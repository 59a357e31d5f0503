/**
 * One member of a group under torture: a twg process, what its log says that it reads, and how it ended. Only counts
 * are kept of the log, since a run may take long.
 */
import { join } from "node:path";
import { kill, type Started, start } from "./process.ts";

export type Protocol = "classic" | "consumer";

export interface MemberSpec {
  readonly serial: number;
  readonly protocol: Protocol;
  readonly instanceId: string | null;
}

/** What is configured alike for all members of a run. */
export interface GroupConfig {
  readonly folder: string;
  readonly twg: readonly string[];
  readonly bootstrap: string;
  readonly topic: string;
  readonly group: string;
  /** TOML: the `[[sink]]` section. */
  readonly sink: string;
  readonly sessionMs: number;
}

interface LogLine {
  readonly event: string;
  readonly message: string;
  readonly fields: { readonly partition?: number; readonly failure?: { readonly code: string } };
}

/** Why a member may end by itself: another process took its name. */
const FENCED = new Set(["kafka.instance_fenced", "coverage.fenced"]);

export class GroupTortureMember {
  readonly spec: MemberSpec;
  readonly #started: Started;
  /** Partitions that it reads now. */
  readonly reads = new Set<number>();
  /** How often it began each. */
  readonly begun = new Map<number, number>();
  readonly counts = { rewinds: 0, losses: 0, covered: 0, refused: 0 };
  /** Code of the failure that ended it. */
  failure: string | null = null;
  stopped = false;
  /** Nobody asked it to end, and nobody killed it. */
  endedByItself = false;
  #asked = false;
  #up = false;

  constructor(spec: MemberSpec, config: GroupConfig, path: string, untilCaughtUp = false) {
    this.spec = spec;
    const flags = untilCaughtUp ? ["--until-caught-up"] : [];
    const args = ["stream", "-c", path, "--log-format", "json", "--log-level", "debug", ...flags];
    const log = Bun.file(join(config.folder, `member-${spec.serial}.log`)).writer();
    this.#started = start([...config.twg, ...args], {}, (line) => {
      log.write(`${line}\n`);
      this.#took(line);
    });
    void this.exited.then(() => log.end());
    void this.exited.then(() => {
      this.endedByItself = !this.#asked;
    });
  }

  static async start(
    spec: MemberSpec,
    config: GroupConfig,
    untilCaughtUp = false,
  ): Promise<GroupTortureMember> {
    const path = join(config.folder, `member-${spec.serial}.toml`);
    await Bun.write(path, toml(spec, config));
    return new GroupTortureMember(spec, config, path, untilCaughtUp);
  }

  get name(): string {
    const { serial, protocol, instanceId } = this.spec;
    return `member ${serial} (${protocol}${instanceId === null ? "" : `, ${instanceId}`}, pid ${this.#started.pid})`;
  }

  get alive(): boolean {
    const { exitCode, signalCode } = this.#started.process;
    return exitCode === null && signalCode === null;
  }

  /** Whether it got so far that a signal is its to handle. */
  get up(): boolean {
    return this.#up;
  }

  /** Ended since another process took its name, as it should. */
  get fenced(): boolean {
    return !this.alive && this.failure !== null && FENCED.has(this.failure);
  }

  log(): string {
    return this.#started.log();
  }

  get exited(): Promise<number> {
    return this.#started.process.exited;
  }

  /** Nothing of it runs until `wake`; the kernel keeps its sockets open. */
  hang(): void {
    this.stopped = true;
    this.#signal("SIGSTOP");
  }

  wake(): void {
    this.stopped = false;
    this.#signal("SIGCONT");
  }

  async kill(): Promise<void> {
    this.#asked = true;
    await kill(this.#started, "SIGKILL");
  }

  /** Its exit code. */
  async leave(): Promise<number> {
    this.#asked ||= this.alive;
    this.wake();
    return kill(this.#started, "SIGTERM");
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.alive) process.kill(this.#started.pid, signal);
  }

  #took(text: string): void {
    let line: LogLine;
    try {
      line = JSON.parse(text) as LogLine;
    } catch {
      return;
    }
    this.#up = true;
    const { partition = -1, failure } = line.fields;
    switch (line.event) {
      case "stream.begun":
        this.reads.add(partition);
        this.begun.set(partition, (this.begun.get(partition) ?? 0) + 1);
        return;
      case "stream.ended":
        this.reads.delete(partition);
        return;
      case "stream.rewound":
        this.counts.rewinds++;
        return;
      case "group.told":
        if (line.message.includes("partitions are lost")) this.counts.losses++;
        return;
      case "set.covered":
        this.counts.covered++;
        return;
      case "set.refused":
        this.counts.refused++;
        return;
      case "failure":
        this.failure = failure?.code ?? "unknown";
        return;
    }
  }
}

function toml({ serial, protocol, instanceId }: MemberSpec, c: GroupConfig): string {
  return `[pipeline]
name = "torture"
state_dir = "${join(c.folder, `state-${serial}`)}"
max_bytes = "8MiB"
lanes = 1

[source]
type = "kafka"
bootstrap = ${JSON.stringify(c.bootstrap.split(","))}
topics = ["${c.topic}"]
group = "${c.group}"
group_protocol = "${protocol}"
${instanceId === null ? "" : `group_instance_id = "${instanceId}"`}
session_timeout_ms = ${c.sessionMs}
metadata_refresh_ms = "2s"
fetch_max_bytes = "256KiB"
partition_max_bytes = "64KiB"

[[sink]]
name = "raw"
${c.sink}

[observability]
listen = "off"
`;
}
