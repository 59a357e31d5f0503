// Goal: a reader of the log that stands still never holds up or fills up the process. Method: a write call whose
// answers the test gives, and one real file.
import { expect, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  descriptorWrite,
  MAX_QUEUED_BYTES,
  QueuedLines,
} from "../../../src/adapters/telemetry/line-writer.ts";

type Done = (error: Error | null, taken: number) => void;

function stuck() {
  const calls: { text: string; done: Done }[] = [];
  const waits: (() => void)[] = [];
  const lines = new QueuedLines(
    (bytes, done) => calls.push({ text: Buffer.from(bytes).toString(), done }),
    (_ms, fn) => waits.push(fn),
  );
  /** Answers the newest call. */
  const answer = (error: Error | null = null, taken?: number) => {
    const last = calls.at(-1);
    last?.done(error, taken ?? Buffer.byteLength(last.text));
  };
  return { lines, calls, waits, answer, texts: () => calls.map((c) => c.text) };
}

const errno = (code: string): Error => Object.assign(new Error(code), { code });

test("one write is under way at a time, and what gathered meanwhile goes with the next", async () => {
  const s = stuck();
  s.lines.write("a\n");
  s.lines.write("b\n");
  s.lines.write("c\n");
  expect(s.texts()).toEqual(["a\n"]);
  let flushed = false;
  const done = s.lines.flush().then(() => {
    flushed = true;
  });
  s.answer();
  expect(s.texts()).toEqual(["a\n", "b\nc\n"]);
  await Promise.resolve();
  expect(flushed).toBe(false);
  s.answer();
  await done;
  expect(flushed).toBe(true);
});

test("a short write goes on where it ended", () => {
  const s = stuck();
  s.lines.write("hello\n");
  s.answer(null, 2);
  expect(s.texts()).toEqual(["hello\n", "llo\n"]);
});

test("a full pipe is asked again later", async () => {
  const s = stuck();
  s.lines.write("hello\n");
  s.answer(errno("EAGAIN"), 0);
  expect(s.calls).toHaveLength(1);
  s.waits[0]?.();
  expect(s.texts()).toEqual(["hello\n", "hello\n"]);
  s.answer();
  await s.lines.flush();
});

test("beyond the bound lines are dropped and counted, and there is room again after a write", () => {
  const s = stuck();
  const half = "x".repeat(MAX_QUEUED_BYTES / 2);
  s.lines.write(half);
  s.lines.write(half);
  s.lines.write("y");
  expect(s.lines.dropped).toBe(1);
  s.answer();
  s.lines.write("z");
  expect(s.lines.dropped).toBe(1);
  s.answer();
  expect(s.texts().at(-1)).toEndWith("z");
});

test("a broken pipe ends the log, not the process", async () => {
  const s = stuck();
  s.lines.write("a\n");
  s.lines.write("b\n");
  s.answer(errno("EPIPE"), 0);
  await s.lines.flush();
  s.lines.write("c\n");
  expect(s.texts()).toEqual(["a\n"]);
  expect(s.lines.dropped).toBe(1);
});

test("lines reach a real descriptor whole and in order", async () => {
  const folder = mkdtempSync(join(tmpdir(), "twg-lines-"));
  const file = join(folder, "log");
  const fd = openSync(file, "w");
  try {
    const lines = new QueuedLines(descriptorWrite(fd), (_ms, fn) => fn());
    const wanted = Array.from({ length: 2000 }, (_, i) => `line ${i} äöü\n`);
    for (const l of wanted) lines.write(l);
    await lines.flush();
    expect(readFileSync(file, "utf8")).toBe(wanted.join(""));
  } finally {
    closeSync(fd);
    rmSync(folder, { recursive: true });
  }
});
