/**
 * Goal: what is new in a schema reaches every sink's table or is refused where that costs least: one schema's records, or
 * one sink. Method: scripted sinks; the control thread's end is the real one over tables in memory; a simulated clock.
 */
import { beforeEach, expect, test } from "bun:test";
import { MemoryVersionedStore, sharedObject } from "../../src/adapters/coverage/memory.ts";
import { type FittedSink, LaneTables, type Unfit } from "../../src/commands/lane-fit.ts";
import { type AnswerTable, AskedTables, type AskTable, KeptTables } from "../../src/commands/lane-tables.ts";
import { LiveTable } from "../../src/core/coverage/live-table.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import type { ColumnField } from "../../src/core/types/table-batch.ts";
import { parseType } from "../../src/core/types/type-text.ts";
import { SimTime } from "../sim/clock.ts";

const fields = (...texts: string[]): ColumnField[] =>
  texts.map((t) => {
    const [name = "", type = ""] = t.split(" ");
    return { name, type: parseType(type) as ColumnField["type"], nullable: true };
  });
const names = (list: readonly ColumnField[]) => list.map((f) => f.name).join();

let time: SimTime;
let said: string[];
let refits: number;
const settle = (ms = 0) => time.runUntil(() => false, time.nowMs + ms);

class Sink implements FittedSink {
  readonly name: string;
  readonly judge: FittedSink["judge"];
  readonly sink: number;
  fitted = false;
  refuses: Unfit | null = null;

  constructor(sink: number, judge: FittedSink["judge"]) {
    this.sink = sink;
    this.judge = judge;
    this.name = `${judge}${sink}`;
  }
  async tried(f: readonly ColumnField[]) {
    said.push(`${this.name} tries ${names(f)}`);
    return this.refuses;
  }
  async fit(f: readonly ColumnField[]) {
    this.fitted = this.refuses === null;
    said.push(`${this.name} fits ${names(f)}`);
  }
  block(f: Failure) {
    this.fitted = false;
    said.push(`${this.name} blocked ${f.code}`);
  }
}

const NO: Unfit = { message: "id is text", tableFitted: false };
const AWAY = new Failure("coverage.unavailable", "away", { retry: true });

/** `away`: whether a table's store fails, or hangs. */
function lane(
  sinks: readonly Sink[],
  away: { now: "no" | "fails" | "hangs" } = { now: "no" },
  shared = sharedObject(),
  oneFile = false,
) {
  const clock = time.clock(null);
  const delay = async () => {
    if (away.now === "fails") throw AWAY;
    if (away.now === "hangs") await new Promise(() => {});
  };
  const kept = new KeptTables(
    sinks
      .filter((s) => s.judge === "kept")
      .map(({ sink }) => ({
        sink,
        metadata: "locator",
        table: new LiveTable({
          versions: new MemoryVersionedStore(shared, { delay }),
          instance: `i${sink}`,
          files: async () => [],
        }),
      })),
    { prefix: "_twg_", clock },
  );
  // What crosses the thread.
  const asked: AskedTables = new AskedTables((ask: AskTable) => {
    void kept.answer(structuredClone(ask)).then((a: AnswerTable) => asked.answered(structuredClone(a)));
  });
  return new LaneTables(sinks, { clock, grow: (f) => asked.grow(f), refit: () => void refits++, oneFile });
}

beforeEach(() => {
  time = new SimTime();
  said = [];
  refits = 0;
});

test("columns that are new reach every sink; what another lane added comes with the answer, metadata aside", async () => {
  const shared = sharedObject();
  await lane([new Sink(2, "kept")], undefined, shared).fit(fields("id int32", "b date"), true);
  said = [];
  const sinks = [new Sink(1, "fixed"), new Sink(2, "kept"), new Sink(3, "server")];
  const fit = await lane(sinks, undefined, shared).fit(fields("id int32", "c string"), true);
  expect("fields" in fit && names(fit.fields)).toBe("id,b,c");
  expect(said).toEqual(["fixed1 fits id,b,c", "kept2 fits id,b,c", "server3 fits id,b,c"]);
  const stored = new TextDecoder().decode([...shared.versions.values()].at(-1));
  expect(stored).toContain('"_twg_source_offset"');
});

test("a folder's table refuses a schema, with the difference; nothing changes for any sink", async () => {
  const sinks = [new Sink(2, "kept"), new Sink(3, "server")];
  const tables = lane(sinks);
  await tables.fit(fields("id int64"), true);
  said = [];
  expect(await tables.fit(fields("id string"), true)).toEqual({
    differences: ["id is int64 in the table and string in the schema"],
  });
  expect(said).toEqual(["server3 tries id"]);
});

test("a server's table that took rows before refuses a schema; one that never did is blocked alone", async () => {
  const server = new Sink(3, "server");
  const tables = lane([new Sink(2, "kept"), server]);
  await tables.fit(fields("id int32"), true);
  server.refuses = NO;
  expect(await tables.fit(fields("id int64"), true)).toEqual({ differences: ["id is text"] });
  server.fitted = false;
  said = [];
  expect("fields" in (await tables.fit(fields("id int64"), true))).toBe(true);
  expect(said).toEqual(["kept2 fits id", "server3 fits id"]);
});

test("where there are servers alone the table judges from the first schema on; one that is away refuses nothing", async () => {
  const server = new Sink(3, "server");
  const tables = lane([server]);
  server.refuses = NO;
  expect(await tables.fit(fields("id int64"), true)).toEqual({ differences: ["id is text"] });
  expect("fields" in (await tables.fit([], false))).toBe(true);
  server.refuses = null;
  expect("fields" in (await tables.fit(fields("id int64"), true))).toBe(true);
});

test("of several servers' tables one that took rows before refuses for all, also while nothing goes into it", async () => {
  const [one, other] = [new Sink(3, "server"), new Sink(4, "server")];
  const tables = lane([one, other]);
  one.refuses = NO;
  expect("fields" in (await tables.fit(fields("id int64"), true))).toBe(true);
  one.refuses = { ...NO, tableFitted: true };
  expect(await tables.fit(fields("id int64"), true)).toEqual({ differences: ["id is text"] });
});

test("where all rows have the columns of one file no server's table refuses them: its sink waits; a folder's still does", async () => {
  const server = new Sink(3, "server");
  server.refuses = { ...NO, tableFitted: true };
  expect("fields" in (await lane([server], undefined, undefined, true).fit(fields("id int64"), true))).toBe(
    true,
  );
  expect(said).toEqual(["server3 fits id"]);
  const tables = lane([new Sink(2, "kept"), server], undefined, undefined, true);
  await tables.fit(fields("id int64"), true);
  expect(await tables.fit(fields("id string"), true)).toEqual({
    differences: ["id is int64 in the table and string in the schema"],
  });
});

test("a store that fails or hangs blocks its own sink, and is asked again beside the work", async () => {
  const away: { now: "no" | "fails" | "hangs" } = { now: "fails" };
  const sinks = [new Sink(2, "kept"), new Sink(3, "server")];
  const tables = lane(sinks, away);
  const fit = await tables.fit(fields("id int32"), true);
  expect("fields" in fit).toBe(true);
  expect(said).toEqual(["kept2 blocked coverage.unavailable", "server3 fits id"]);
  await settle(12_000);
  expect(refits).toBe(0);
  away.now = "no";
  await settle(6_000);
  expect(refits).toBe(1);
  said = [];
  expect("fields" in (await tables.fit(fields("id int32"), false))).toBe(true);
  expect(said).toEqual(["kept2 fits id", "server3 fits id"]);
  await settle(20_000);
  expect(refits).toBe(1);

  away.now = "hangs";
  said = [];
  const late = tables.fit(fields("id int32", "more date"), true);
  await settle(2_500);
  expect("fields" in (await late)).toBe(true);
  expect(said[1]).toBe("kept2 blocked coverage.unavailable");
});

test("a table that cannot have what is there already blocks its sink, saying so", async () => {
  const [a, b] = [sharedObject(), sharedObject()];
  await lane([new Sink(2, "kept")], undefined, a).fit(fields("id string"), true);
  await lane([new Sink(2, "kept")], undefined, b).fit(fields("id string"), true);
  said = [];
  await lane([new Sink(2, "kept")], undefined, a).fit(fields("id int32"), false);
  expect(said).toEqual(["kept2 blocked table.mismatch"]);
});
