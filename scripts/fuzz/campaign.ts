/**
 * Runs a target in a child process, since a parser that loops cannot be stopped from inside and a native crash takes
 * the process. The child says how far it is; where it dies or stops, the cases since its last word are run again one
 * by one to find the culprit, and the campaign goes on behind it.
 */
import type { Subprocess } from "bun";

export interface Campaign {
  readonly target: string;
  readonly cases: number;
  readonly crashes: number;
  readonly hangs: number;
  readonly refused: number;
  /** Largest resident memory of a child, MB. */
  readonly peakMb: number;
}

export interface CampaignOptions {
  readonly target: string;
  readonly first: number;
  readonly cases: number;
  /** No word from the child for this long is a hang. */
  readonly hangMs: number;
  /** More resident memory than this is a crash. */
  readonly maxMb: number;
  readonly complain: (line: string) => void;
}

/** What a child writes, a line each. */
export type Word =
  /** All cases before `at` are done. */
  | { readonly at: number; readonly refused: number; readonly mb: number }
  /** Case `bad` threw what must not be thrown. */
  | { readonly bad: number; readonly why: string };

/** Cases between two words of a child in a hurry. */
const STRIDE = 500;

interface Leg {
  /** First case that is not done. */
  readonly at: number;
  readonly end: "done" | "died" | "hung" | "grew";
}

class Tally {
  crashes = 0;
  /** Cases that threw; a leg that is run again finds them again. */
  readonly bad = new Set<number>();
  hangs = 0;
  refused = 0;
  peakMb = 0;
}

export async function campaign(o: CampaignOptions): Promise<Campaign> {
  const tally = new Tally();
  const last = o.first + o.cases;
  for (let at = o.first; at < last; ) {
    const fast = await leg(o, at, last, STRIDE, tally);
    at = fast.at;
    if (fast.end === "done") break;
    if (fast.end === "grew") {
      // Memory that grows over many cases is nobody's in particular.
      tally.crashes++;
      o.complain(`${o.target}: more than ${o.maxMb} MB before case ${at}`);
      continue;
    }
    // The culprit is one of the next STRIDE cases.
    const slow = await leg(o, at, Math.min(at + STRIDE, last), 1, tally);
    at = slow.at;
    if (slow.end === "done") continue;
    if (slow.end === "hung") tally.hangs++;
    else tally.crashes++;
    o.complain(`${o.target}: case ${at} ${slow.end}`);
    at++;
  }
  const { hangs, refused, peakMb } = tally;
  return {
    target: o.target,
    cases: o.cases,
    crashes: tally.crashes + tally.bad.size,
    hangs,
    refused,
    peakMb,
  };
}

async function leg(o: CampaignOptions, from: number, to: number, stride: number, tally: Tally): Promise<Leg> {
  const child = Bun.spawn(
    [process.execPath, `${import.meta.dir}/child.ts`, o.target, String(from), String(to), String(stride)],
    { stdout: "pipe", stderr: "ignore", env: { ...process.env, BUN_ENABLE_CRASH_REPORTING: "0" } },
  );
  let at = from;
  let end: Leg["end"] = "died";
  let timer = setTimeout(() => undefined, 0);
  const watch = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      end = "hung";
      child.kill("SIGKILL");
    }, o.hangMs);
  };
  watch();
  for await (const word of words(child)) {
    watch();
    if ("bad" in word) {
      if (!tally.bad.has(word.bad)) o.complain(`${o.target}: case ${word.bad}: ${word.why}`);
      tally.bad.add(word.bad);
      continue;
    }
    at = word.at;
    tally.refused += word.refused;
    tally.peakMb = Math.max(tally.peakMb, word.mb);
    if (word.mb <= o.maxMb) continue;
    end = "grew";
    child.kill("SIGKILL");
  }
  clearTimeout(timer);
  await child.exited;
  return { at, end: at === to && end === "died" ? "done" : end };
}

async function* words(child: Subprocess<"ignore", "pipe", "ignore">): AsyncGenerator<Word> {
  let rest = "";
  const text = new TextDecoder();
  for await (const chunk of child.stdout) {
    const lines = (rest + text.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line) as Word;
  }
}
