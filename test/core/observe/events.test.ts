// Goal: every event has its line. Method: the text of one example of each, written by hand.
import { expect, test } from "bun:test";
import { atLeast, EVENTS, type EventName, eventText } from "../../../src/core/observe/events.ts";
import { SAMPLES } from "./samples.ts";

const CANCELLED = "internal.cancelled: no answer within 10 s (at kafka:9093). Is the broker up?";
const SET = "(1.50k rows, 2.00 KiB, 2 files) in 120 ms";

const LINES: { readonly [K in EventName]: string } = {
  "pipeline.started": "info pipeline orders started, twg 0.1.0, 2 lanes",
  "http.listening": "info health, metrics and status at http://127.0.0.1:9464/",
  "pipeline.stopping": "info stopping: SIGTERM received",
  "pipeline.stopped": "info stopped after 1.50k rows: drained",
  "secrets.reread": "info 2 secrets read again, 1 changed",
  progress: "info running | 10 rec/s | 1.0 MB/s | lag 5 | in flight 0 B",
  failure: `error pipeline: ${CANCELLED}`,
  "source.healthy": "info source is reachable",
  "source.troubled": `warn source: ${CANCELLED}`,
  "stream.begun": "info orders/3 begins at 9007199254740993 (committed) in lane 1",
  "stream.watermark": "null orders/3 holds 0 to 100",
  "stream.rewound": "warn orders/3 goes back to 40, 7 positions are read again: lane died (attempt 2)",
  "stream.ended": "info orders/3 ended: revoked",
  "group.told": "info group g: member m of generation 3",
  "source.acknowledged": "debug acknowledged orders/3@50 in 4 ms",
  "source.acknowledge_failed": `warn acknowledgement failed: ${CANCELLED}`,
  "records.skipped": "info orders/3: 10 records from 10 up to 20 are covered already, skipped",
  "records.lost": "error orders/3: records from 10 up to 25 will never be in the sink (retention)",
  "lane.started": "debug lane 1 started",
  "lane.died": `error lane 1 died: ${CANCELLED}`,
  "lane.restarted": "warn lane 1 restarted (3 times so far)",
  "bundle.delivered": "null 4.00 KiB to lane 1",
  "bundle.consumed": "null lane 1 read 18 rows of 4.00 KiB",
  "budget.exhausted": "debug lane 1 is full: 1.00 KiB of 2.00 KiB in flight",
  "budget.released": "debug lane 1 takes data again after 250 ms",
  "set.sealed": `debug raw: set set-7 sealed ${SET} (bytes)`,
  "set.intended": `debug raw: set set-7 intended ${SET}`,
  "set.published": `debug raw: set set-7 published ${SET}`,
  "set.covered": `debug raw: set set-7 covered ${SET}, 11.0 s end to end`,
  "set.refused": "warn raw: set set-7 refused (fenced): generation 4 is not 5",
  "intent.settled": "info intent set-6 of an earlier run: covered (2 files)",
  "schema.learned":
    "info orders: 2 columns learned from records, version 2 in /lake/_twg/p/raw/schemas: note, qty",
  "staging.swept": "info 3 unfinished files of an earlier run removed",
  "sink.troubled": `warn raw: ${CANCELLED}`,
  "sink.recovered": "info raw: works again after 5.0 s",
  "sink.detached": `warn typed: lane 1 goes on without it for 2.0 s: ${CANCELLED}`,
  "sink.attached": "info typed: lane 1 writes to it again",
  "sink.gap": "warn typed: orders/3 from 10 up to 25 is missing in it and safe in the primary sink",
  "sink.gap_expiring":
    "warn typed lacks 15 positions, and the raw files of the oldest are removed in 1 d 0 h: fill the gap with `twg recover`",
  "sink.lacks": "null typed: 15 positions in 2 gaps",
  "records.undecodable":
    "warn 3 records of orders cannot be decoded: decode.truncated, such as orders/2@17, at items[3].price",
  "records.duplicate": "debug typed: 3 duplicates of orders",
  "records.refused": "warn typed: 2 rows refused (row.constraint), kept among its rejects",
  "records.there": "info typed: 3 rows of set i1 were in the table already",
  "sink.rejects_failed": `warn typed: kept nowhere: ${CANCELLED}`,
  "coverage.healthy": "info coverage store works again",
  "coverage.waiting": "warn waiting up to 15.0 s to see whether the former owner lives: pid 7 on other",
  "coverage.troubled": `warn coverage store: ${CANCELLED}`,
  "coverage.fenced": `error another process took over: ${CANCELLED}`,
  "recovery.looked": "null recovery: 10 of 15 positions are free",
  "recovery.blind": `warn recovery: ${CANCELLED}`,
  "recovery.began": "info recovery: 15 positions to fill",
  "recovery.rests": `info recovery: 10 positions filled in 2.0 s; ${CANCELLED}`,
  "recovery.leased": "debug typed: leased orders/3 [10, 25), 15 positions to fill",
  "recovery.filled": "debug typed: 10 of 15 positions filled in 1 window, in 2.0 s",
  "recovery.covered": "debug typed: set set-7 of recovery covered (1.50k rows, 2.00 KiB) in 120 ms",
  "recovery.replayed": "null recovery read 1.50k rows of 2.00 KiB",
  "recovery.troubled": `warn recovery of typed: ${CANCELLED}`,
  "recovery.yields": "info recovery waits: live records are 20.0k behind",
  "recovery.resumes": "info recovery goes on after 5.0 s",
  "stall.detected": "warn no progress for 1 m 1 s with a lag of 5.00k and 1.00 KiB in flight",
  "stall.fatal":
    "error no progress for 1 m 1 s with a lag of 5.00k and 1.00 KiB in flight; the process reports itself as not alive",
  "stall.cleared": "info progress again after 1 m 1 s",
  "connection.opened": "debug connected to kafka:9093 (fetch, TLS)",
  "connection.closed": "debug closed kafka:9093 (fetch): reset",
  "request.done": "null Fetch at 1 in 12 ms: timeout",
};

test.each(Object.keys(LINES) as EventName[])("%s", (name) => {
  expect(`${EVENTS[name].level} ${eventText(SAMPLES[name])}`).toBe(LINES[name]);
});

test("what comes many times a second is never a log line", () => {
  const silent = Object.entries(EVENTS).filter(([, row]) => row.level === null);
  expect(silent.map(([name]) => name).sort()).toEqual([
    "bundle.consumed",
    "bundle.delivered",
    "recovery.looked",
    "recovery.replayed",
    "request.done",
    "sink.lacks",
    "stream.watermark",
  ]);
});

test("levels are in the order debug, info, warn, error", () => {
  expect(atLeast("warn", "info")).toBe(true);
  expect(atLeast("info", "info")).toBe(true);
  expect(atLeast("debug", "info")).toBe(false);
  expect(atLeast("warn", "error")).toBe(false);
});
