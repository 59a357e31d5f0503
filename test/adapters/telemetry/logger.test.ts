// Goal: one line an event in either format, levels respected, repeats counted, nothing forged. Method: lines by hand.
import { expect, test } from "bun:test";
import {
  Logger,
  type LoggerOptions,
  printable,
  REPEAT_WINDOW_MS,
} from "../../../src/adapters/telemetry/logger.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";
import { failure, SAMPLES } from "../../core/observe/samples.ts";

function logger(options: Partial<LoggerOptions> = {}) {
  const clock = new ManualClock();
  const lines: string[] = [];
  let left = 0;
  const log = new Logger({
    clock,
    format: "text",
    level: "info",
    color: false,
    write: (l) => lines.push(l),
    suppressed: () => left++,
    ...options,
  });
  return { clock, lines, log, left: () => left };
}

const trouble = (at: string, message = "refused"): TwgEvent => ({
  e: "source.troubled",
  failure: { ...failure, at, message },
});

// The clock of the tests begins at 1767225600000 ms = 2026-01-01T00:00:00Z.
test("text: time, level, message", () => {
  const { log, lines } = logger();
  log.log(SAMPLES["stream.begun"]);
  log.log(SAMPLES["lane.died"]);
  expect(lines[0]).toBe(
    "2026-01-01T00:00:00.000Z INFO  orders/3 begins at 9007199254740993 (committed) in lane 1",
  );
  expect(lines[1]).toStartWith("2026-01-01T00:00:00.000Z ERROR lane 1 died: internal.cancelled");
});

test("text in colour marks the level only", () => {
  const { log, lines } = logger({ color: true });
  log.log({ e: "stall.cleared", ms: 5 });
  log.log(SAMPLES["stall.detected"]);
  expect(lines[0]).toBe("2026-01-01T00:00:00.000Z \u001b[36mINFO \u001b[0m progress again after 5 ms");
  expect(lines[1]).toContain("\u001b[33mWARN \u001b[0m");
});

test("json: one object a line, positions as strings", () => {
  const { log, lines } = logger({ format: "json" });
  log.log(SAMPLES["stream.begun"]);
  expect(lines).toEqual([
    '{"ts":"2026-01-01T00:00:00.000Z","level":"info","event":"stream.begun",' +
      '"message":"orders/3 begins at 9007199254740993 (committed) in lane 1",' +
      '"fields":{"topic":"orders","partition":3,"position":"9007199254740993","lane":1,"why":"committed"}}',
  ]);
});

test("every event that is logged gives one line of JSON", () => {
  const { log, lines } = logger({ format: "json", level: "debug" });
  for (const e of Object.values(SAMPLES)) log.log(e);
  expect(lines).toHaveLength(Object.keys(SAMPLES).length - 7);
  for (const l of lines) {
    expect(l).not.toContain("\n");
    expect(Object.keys(JSON.parse(l))).toEqual(["ts", "level", "event", "message", "fields"]);
  }
});

test("what is below the level, or feeds metrics only, is not written", () => {
  const { log, lines } = logger({ level: "warn" });
  for (const e of ["stream.begun", "set.covered", "bundle.delivered"] as const) log.log(SAMPLES[e]);
  expect(lines).toEqual([]);
});

test("a warning that repeats is counted, and the count comes when the time is over", () => {
  const { log, lines, clock, left } = logger();
  for (let i = 0; i < 5; i++) log.log(trouble("kafka:9093", `refused, try ${i}`));
  expect(lines).toHaveLength(1);
  expect(left()).toBe(4);
  clock.advance(REPEAT_WINDOW_MS);
  log.tick();
  expect(lines).toHaveLength(2);
  expect(lines[1]).toContain("refused, try 4 (at kafka:9093). Is the broker up? [repeated 4 times]");
  clock.advance(REPEAT_WINDOW_MS);
  log.tick();
  expect(lines).toHaveLength(2);
  log.log(trouble("kafka:9093"));
  expect(lines).toHaveLength(3);
  expect(lines[2]).not.toContain("repeated");
});

test("what was left out is told before the line that says it is over, whatever the level of that", () => {
  for (const level of ["info", "warn"] as const) {
    const { log, lines, clock } = logger({ level });
    log.log({ e: "sink.troubled", sink: "other", failure });
    for (let i = 0; i < 3; i++) log.log({ e: "sink.troubled", sink: "raw", failure });
    log.log(trouble("kafka:9093"));
    log.log(trouble("kafka:9093"));
    log.log({ e: "sink.recovered", sink: "raw", ms: 5 });
    expect(lines[3]).toContain("WARN  raw: ");
    expect(lines[3]).toEndWith("[repeated 2 times]");
    expect(lines.length).toBe(level === "info" ? 5 : 4);
    // Begun anew it is told at once, and what is not over goes on being counted.
    log.log({ e: "sink.troubled", sink: "raw", failure });
    expect(lines.at(-1)).toContain("WARN  raw: ");
    clock.advance(REPEAT_WINDOW_MS);
    log.tick();
    expect(lines.at(-1)).toEndWith("[repeated 1 time]");
    expect(lines.at(-1)).toContain("source: ");
  }
});

test("while it goes on there is one line every half minute", () => {
  const { log, lines, clock } = logger({ format: "json" });
  for (let i = 0; i < 90; i++) {
    log.log(trouble("kafka:9093"));
    clock.advance(1000);
    log.tick();
  }
  expect(lines.map((l) => JSON.parse(l).repeated)).toEqual([undefined, 29, 30, 30]);
});

test("another place, code or kind is another warning; errors are never left out", () => {
  const { log, lines } = logger();
  log.log(trouble("kafka:9093"));
  log.log(trouble("kafka:9094"));
  log.log({ e: "source.troubled", failure: { ...failure, code: "internal.stalled" } });
  log.log({ e: "sink.troubled", sink: "raw", failure });
  log.log({ e: "sink.troubled", sink: "other", failure });
  log.log(SAMPLES["records.lost"]);
  log.log(SAMPLES["records.lost"]);
  expect(lines).toHaveLength(7);
});

test("refused records and gaps that are left out are summed, by code and by place", () => {
  const { log, lines, clock } = logger({ format: "json" });
  const refused = (code: string, records: number) =>
    log.log({
      e: "records.undecodable",
      code,
      records,
      topic: "orders",
      first: `orders/${records}@1`,
      path: "",
    });
  const gap = (from: bigint, next: bigint) =>
    log.log({ e: "sink.gap", sink: "typed", topic: "orders", partition: 3, from, next });
  for (const n of [5, 7, 11]) {
    refused("decode.range", n);
    refused("decode.type", 100 * n);
  }
  gap(0n, 10n);
  gap(40n, 50n);
  gap(20n, 25n);
  clock.advance(REPEAT_WINDOW_MS);
  log.tick();
  const told = lines.map((l) => JSON.parse(l));
  expect(told.map(({ fields: f, repeated }) => [f.code ?? f.sink, f.records, repeated])).toEqual([
    ["decode.range", 5, undefined],
    ["decode.type", 500, undefined],
    ["typed", undefined, undefined],
    ["decode.range", 18, 2],
    ["decode.type", 1800, 2],
    ["typed", undefined, 2],
  ]);
  expect(told[5].fields).toMatchObject({ from: "20", next: "50", positions: "15" });
  expect(told[5].message).toBe(
    "typed: orders/3 from 20 up to 50 has 15 positions that are missing in it and safe in the primary sink",
  );
  // Told once, they are not told again.
  refused("decode.range", 1);
  refused("decode.range", 2);
  refused("decode.range", 3);
  log.close();
  expect(JSON.parse(lines[6] as string).fields.records).toBe(6);
});

test("at the end no count is lost", () => {
  const { log, lines } = logger();
  for (let i = 0; i < 3; i++) log.log(trouble("kafka:9093"));
  log.close();
  expect(lines[1]).toEndWith("[repeated 2 times]");
  log.close();
  expect(lines).toHaveLength(2);
});

test("a thousand places are remembered; a flood of them neither grows nor loses a count", () => {
  const { log, lines } = logger();
  log.log(trouble("first"));
  log.log(trouble("first"));
  for (let i = 0; i < 1000; i++) log.log(trouble(`kafka:${i}`));
  expect(lines.filter((l) => l.includes("first"))).toHaveLength(2);
  expect(lines.find((l) => l.endsWith("[repeated 1 time]"))).toContain("first");
});

test("control characters of a peer cannot forge a line or move the cursor", () => {
  const { log, lines } = logger();
  log.log(trouble("kafka:9093", "a\nb\r\u001b[2Jc\u202e"));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain("a\\nb\\u000d\\u001b[2Jc\\u202e");
  expect(printable("plain äöü 日本")).toBe("plain äöü 日本");
});
