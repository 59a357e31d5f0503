/**
 * Real processes, a real disk, SIGKILL: a child lands positions and kills itself at every named point of delivery
 * and of settlement; its successor must find a folder from which it can go on. Judged from the files alone.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, unlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LOCAL_WRITE_POINTS } from "../../src/adapters/coverage/local.ts";
import { SETTLE_POINTS } from "../../src/core/coverage/settle.ts";
import { CRASH_POINTS } from "../../src/core/delivery/crash-points.ts";
import { SeededChance } from "../sim/chance.ts";
import { type ChildOptions, STREAMS } from "./child.ts";
import { complaints, endComplaints, stagedIn, stateOf } from "./folder.ts";

const END = 20;

// Many processes start here, on a machine that may be busy: only a hang may take this long.
setDefaultTimeout(60_000);
const folders: string[] = [];
const running = new Set<Child>();

function folder(): string {
  const root = mkdtempSync(join(tmpdir(), "twg-kill-"));
  folders.push(root);
  return root;
}

/** A child with its output line by line. */
class Child {
  readonly #process;
  readonly #lines: AsyncIterator<string>;

  constructor(options: ChildOptions) {
    const child = join(import.meta.dir, "child.ts");
    this.#process = Bun.spawn([process.execPath, child, JSON.stringify(options)], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    });
    this.#lines = linesOf(this.#process.stdout);
    running.add(this);
  }

  /** The next line; null when the output ended. */
  async line(): Promise<string | null> {
    const next = await this.#lines.next();
    return next.done === true ? null : next.value;
  }

  async until(line: string): Promise<void> {
    for (;;) {
      const found = await this.line();
      if (found === line) return;
      if (found === null) throw new Error(`the child ended before it said ${line}`);
    }
  }

  /** The last line, after the process has ended; "killed" if a signal ended it. */
  async end(): Promise<string> {
    let last = "";
    for (let l = await this.line(); l !== null; l = await this.line()) last = l;
    await this.#process.exited;
    running.delete(this);
    return this.#process.signalCode === "SIGKILL" ? "killed" : last;
  }

  signal(name: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void {
    this.#process.kill(name);
  }

  go(): void {
    this.#process.stdin.write("go\n");
    this.#process.stdin.flush();
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

const run = (options: ChildOptions): Promise<string> => new Child(options).end();

afterAll(() => {
  for (const c of running) c.signal("SIGKILL");
  for (const f of folders) rmSync(f, { recursive: true, force: true });
});

describe("kill -9", () => {
  test.each(CRASH_POINTS)("at %s: nothing lost, doubled or stray after the restart", async (crash) => {
    const root = folder();
    expect(await run({ root, end: END, crash, at: 2 })).toBe("killed");
    expect(complaints(root)).toEqual([]);
    expect(await run({ root, end: END })).toBe("done");
    expect(endComplaints(root, STREAMS, END)).toEqual([]);
  });

  test.each(SETTLE_POINTS)(
    "at %s, while settling what a killed one left: the third one ends it",
    async (crash) => {
      const root = folder();
      expect(await run({ root, end: END, crash: "after_intend", at: 0 })).toBe("killed");
      expect(stateOf(root).intents.length).toBeGreaterThan(0);
      if (crash.includes("discard")) {
        // Staged bytes are gone: the intent can only be given up, with what is left of it.
        for (const i of stateOf(root).intents)
          unlinkSync(join(root, "_twg/p/s/staging", i.targets[1]?.staging ?? ""));
      }
      expect(await run({ root, end: END, crash })).toBe("killed");
      expect(complaints(root)).toEqual([]);
      expect(await run({ root, end: END })).toBe("done");
      expect(endComplaints(root, STREAMS, END)).toEqual([]);
    },
  );

  // Writes of a run, in order: enter, claim, then an intent or a cover each.
  const writes = LOCAL_WRITE_POINTS.flatMap((point) => [0, 3].map((at) => [point, at] as const));
  test.each(writes)("at %s of write %d of the coverage state: whole before and after", async (crash, at) => {
    const root = folder();
    expect(await run({ root, end: END, crash, at })).toBe("killed");
    expect(complaints(root)).toEqual([]);
    expect(await run({ root, end: END })).toBe("done");
    expect(endComplaints(root, STREAMS, END)).toEqual([]);
  });

  test("again and again at points by chance, in one folder", async () => {
    const root = folder();
    const chance = new SeededChance(7);
    const points = [
      ...CRASH_POINTS,
      ...LOCAL_WRITE_POINTS,
      "settle_before_publish",
      "settle_after_publish_one",
    ];
    let kills = 0;
    let end = 0;
    for (let i = 0; i < 12; i++) {
      // The log grows meanwhile, so that there is always something to do.
      end += 12;
      const outcome = await run({ root, end, crash: chance.pick(points), at: chance.int(4) });
      if (outcome === "killed") kills++;
      expect(complaints(root)).toEqual([]);
    }
    expect(kills).toBeGreaterThan(5);
    expect(await run({ root, end })).toBe("done");
    expect(endComplaints(root, STREAMS, end)).toEqual([]);
  });
});

describe("two processes", () => {
  test("that start together in one folder: one works, the other names it and ends", async () => {
    const root = folder();
    // Whoever enters waits there, so the other finds it alive.
    const both = [
      new Child({ root, end: END, wait: "opened" }),
      new Child({ root, end: END, wait: "opened" }),
    ];
    const first = await Promise.all(both.map((c) => c.line()));
    expect(first.filter((l) => l === "opened")).toHaveLength(1);
    expect(
      first.filter((l) => l?.startsWith("coverage.owned another process works on this sink: pid ")),
    ).toHaveLength(1);
    const [winner, loser] = first[0] === "opened" ? both : [...both].reverse();
    await loser!.end();
    winner!.go();
    expect(await winner!.end()).toBe("done");
    expect(endComplaints(root, STREAMS, END)).toEqual([]);
  });

  // Stopped before its intent stands: its staged files are strays. After: its intent is settled for it.
  test.each(["sealed", "after_intend", "before_cover"])(
    "one is stopped at %s beyond its lease: the other takes over, the first finds itself fenced",
    async (wait) => {
      const root = folder();
      const first = new Child({ root, end: END, wait, namespace: "pid:[1]", leaseMs: 300 });
      await first.until(`at ${wait}`);
      first.signal("SIGSTOP");
      const second = new Child({ root, end: END, namespace: "pid:[2]", leaseMs: 300 });
      expect(await second.end()).toBe("done");
      expect(endComplaints(root, STREAMS, END)).toEqual([]);
      const state = stateOf(root);
      first.signal("SIGCONT");
      first.go();
      expect(await first.end()).toStartWith("coverage.fenced");
      expect(complaints(root)).toEqual([]);
      expect(stateOf(root)).toEqual(state);
      // What it staged after it was replaced is its own; the next start sweeps it.
      expect(await run({ root, end: END })).toBe("done");
      expect(stagedIn(root)).toEqual([]);
    },
  );
});
