// Goal: the live line twice a second on a terminal, otherwise an event every ten seconds; log lines and live line
// share the screen. Method: a clock that moves when told, what was written compared byte by byte.
import { expect, test } from "bun:test";
import type { LineWriter } from "../../../src/adapters/telemetry/line-writer.ts";
import { Progress } from "../../../src/adapters/telemetry/progress.ts";
import { Screen } from "../../../src/adapters/telemetry/screen.ts";
import { applyHealth } from "../../../src/core/observe/event-health.ts";
import type { TwgEvent } from "../../../src/core/observe/events.ts";
import { HealthTree } from "../../../src/core/observe/health.ts";
import { PipelineView } from "../../../src/core/observe/pipeline-view.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";
import { SAMPLES } from "../../core/observe/samples.ts";

const WIPE = "\r\u001b[K";

class Memory implements LineWriter {
  text = "";
  dropped = 0;
  write(text: string): void {
    this.text += text;
  }
  flush(): Promise<void> {
    return Promise.resolve();
  }
}

function world(live: boolean) {
  const clock = new ManualClock();
  const view = new PipelineView();
  const health = new HealthTree(clock);
  const drawn: (string | null)[] = [];
  const events: TwgEvent[] = [];
  const progress = new Progress({
    clock,
    view,
    health,
    inFlight: () => 1024,
    live: live ? (t) => drawn.push(t) : null,
    emit: (e) => events.push(e),
  });
  const on = (e: TwgEvent) => {
    view.apply(e);
    applyHealth(health, e, { primaryRaw: "raw" });
  };
  /** A second of `bundles` bundles of 18 rows in 4096 bytes, looked at twice. */
  const second = (bundles: number) => {
    for (let i = 0; i < bundles; i++)
      for (const e of ["bundle.delivered", "bundle.consumed"] as const) on(SAMPLES[e]);
    for (let i = 0; i < 2; i++) {
      clock.advance(500);
      progress.tick();
    }
  };
  return { clock, drawn, events, progress, on, second };
}

test("on a terminal the line is drawn twice a second with the rate of the last three", () => {
  const w = world(true);
  w.on(SAMPLES["pipeline.started"]);
  w.on(SAMPLES["source.healthy"]);
  for (let i = 0; i < 5; i++) w.second(10);
  expect(w.drawn).toHaveLength(10);
  // 180 rows and 40960 bytes a second.
  expect(w.drawn.at(-1)).toBe("running | 180 rec/s | 0.0 MB/s | lag ? | in flight 1.00 KiB");
  for (let i = 0; i < 4; i++) w.second(0);
  expect(w.drawn.at(-1)).toStartWith("running | 0 rec/s");
  w.progress.close();
  expect(w.drawn.at(-1)).toBeNull();
  expect(w.events).toEqual([]);
});

test("without a terminal an event comes every ten seconds with the rate of those ten", () => {
  const w = world(false);
  for (let i = 0; i < 9; i++) w.second(0);
  w.second(10);
  expect(w.events).toHaveLength(1);
  expect(w.events[0]).toMatchObject({
    e: "progress",
    state: "starting",
    recordsPerSecond: 18,
    bytesInFlight: 1024,
  });
  for (let i = 0; i < 10; i++) w.second(0);
  expect(w.events[1]).toMatchObject({ recordsPerSecond: 0 });
  w.progress.close();
});

test("the state follows the life of the pipeline", () => {
  const w = world(true);
  const state = () => w.progress.snapshot().state;
  expect(state()).toBe("starting");
  w.on(SAMPLES["pipeline.started"]);
  expect(state()).toBe("starting");
  w.on(SAMPLES["source.healthy"]);
  expect(state()).toBe("running");
  w.on(SAMPLES["source.troubled"]);
  expect(w.progress.snapshot()).toMatchObject({ state: "failed", reason: "source: internal.cancelled" });
  w.on(SAMPLES["source.healthy"]);
  w.on(SAMPLES["source.acknowledge_failed"]);
  expect(w.progress.snapshot()).toMatchObject({ state: "degraded", reason: "committer: internal.cancelled" });
  w.on(SAMPLES["pipeline.stopping"]);
  expect(state()).toBe("draining");
  w.on(SAMPLES["pipeline.stopped"]);
  expect(state()).toBe("stopped");
});

test("sinks show what is covered", () => {
  const w = world(true);
  w.on(SAMPLES["set.sealed"]);
  expect(w.progress.snapshot().sinks).toEqual([]);
  w.on(SAMPLES["set.covered"]);
  expect(w.progress.snapshot().sinks).toEqual([{ sink: "raw", rows: 1500, files: 2 }]);
});

test("a log line wipes the live line and draws it again below", () => {
  const out = new Memory();
  const screen = new Screen(out, { columns: () => 20 });
  screen.line("first");
  screen.live("0123456789");
  screen.line("second");
  screen.live(null);
  screen.live(null);
  screen.line("third");
  expect(out.text).toBe(`first\n${WIPE}0123456789${WIPE}second\n0123456789${WIPE}third\n`);
});

test("the live line is cut to the window as it is now", () => {
  const out = new Memory();
  let columns = 8;
  const screen = new Screen(out, { columns: () => columns });
  screen.live("0123456789");
  columns = 40;
  screen.line("x");
  expect(out.text).toBe(`${WIPE}0123...${WIPE}x\n0123456789`);
});

test("a terminal of which no width is known has one all the same", () => {
  for (const width of [0, undefined]) {
    const out = new Memory();
    new Screen(out, { columns: () => width }).live("0123456789");
    expect(out.text).toBe(`${WIPE}0123456789`);
  }
});

test("without a terminal there is no live line", () => {
  const out = new Memory();
  const screen = new Screen(out, null);
  screen.live("0123456789");
  screen.line("x");
  expect(out.text).toBe("x\n");
  expect(screen.interactive).toBe(false);
});
