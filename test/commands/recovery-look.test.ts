/**
 * Goal: a process that recovers sees what is missing, which part of it is nobody's, and who is at the rest. Method: coverage
 * states of a raw sink and two beside it, written where the sinks keep them; ranges derived from them.
 */
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linuxIdentity } from "../../src/adapters/coverage/host-identity.ts";
import { loadConfig, resolveSecrets } from "../../src/commands/config-file.ts";
import { RecoveryLook } from "../../src/commands/recovery-look.ts";
import { type CoverageState, EMPTY_STATE, NEW_STREAM } from "../../src/core/coverage/state.ts";
import { encodeState } from "../../src/core/coverage/state-json.ts";
import { windowName } from "../../src/core/coverage/windows.ts";
import type { EventOf, TwgEvent } from "../../src/core/observe/events.ts";
import { fakeCli } from "./fake-cli.ts";

const S = "kafka/c/orders/0/0";
const range = (from: number, next: number) => ({ from: BigInt(from), next: BigInt(next) });
/** Of another machine, of which nothing is known. */
const FAR = { hostname: "far", pid: 1, bootId: "b", pidNamespace: "n", startTime: "1" };

interface Sink {
  readonly covered: readonly ReturnType<typeof range>[];
  readonly owners?: readonly string[];
  readonly owner?: string;
  /** Holder, from, next. */
  readonly leases?: readonly (readonly [string, number, number | null])[];
}

function stateOf({ covered, owners = [], owner, leases = [] }: Sink): CoverageState {
  const named = leases.map(([holder, from, next]) => {
    const end = next === null ? null : BigInt(next);
    return [
      windowName({ holder, stream: S, from: BigInt(from), next: end }),
      { lease: 1, owner: holder },
    ] as const;
  });
  return {
    ...EMPTY_STATE,
    serial: 2,
    owners: owners.map((instance) => ({ instance, host: FAR, since: 0, beat: 3 })),
    streams: new Map([[S, { ...NEW_STREAM, covered, owner: owner ?? null }]]),
    leases: new Map(named),
    index: [
      {
        ...{ id: "set", targets: [], rows: 100, bytes: 1000 },
        spans: [{ stream: S, ...range(0, 100) }],
      },
    ],
  };
}

async function placed(sinks: Readonly<Record<string, Sink>>) {
  const root = mkdtempSync(join(tmpdir(), "twg-look-"));
  const tables = ["raw", "copy", "late"].map((name) => {
    const state = sinks[name];
    const place = join(root, name, "_twg", "p", name, "coverage");
    if (state !== undefined) {
      mkdirSync(place, { recursive: true });
      writeFileSync(join(place, "coverage-000000000002.json"), encodeState(stateOf(state)));
    }
    const role = name === "raw" ? 'role = "primary_raw"\n' : "";
    return `[[sink]]\nname = "${name}"\ntype = "parquet"\n${role}path = "${join(root, name)}"\n`;
  });
  const file = join(root, "p.toml");
  const source = '[source]\ntype = "kafka"\nbootstrap = ["k:1"]\ntopics = ["orders"]\ngroup = "g"\n';
  writeFileSync(file, `[pipeline]\nname = "p"\nrole = "recovery"\n${source}${tables.join("")}`);
  const cli = fakeCli();
  const loaded = await loadConfig(file);
  const events: TwgEvent[] = [];
  const looking = new RecoveryLook({
    loaded,
    cli,
    observer: { emit: (e) => events.push(e) },
    tellsGaps: true,
  });
  return { root, events, look: async () => looking.look(await resolveSecrets(loaded, cli.environment)) };
}

async function look(sinks: Readonly<Record<string, Sink>>) {
  const { events, look: again } = await placed(sinks);
  const seen = await again();
  const lacks = events.filter((e): e is EventOf<"sink.lacks"> => e.e === "sink.lacks");
  const looked = events.findLast((e): e is EventOf<"recovery.looked"> => e.e === "recovery.looked");
  const gaps = seen.plan.sinks.map((s) => [s.sink, s.gaps.flatMap((g) => g.ranges)] as const);
  return { seen, looked, lacks: lacks.map((e) => [e.sink, e.positions]), gaps };
}

const RAW: Sink = { covered: [range(0, 100)] };

test("a sink of which nothing is known lacks everything; one that has all is at rest", async () => {
  const { seen, gaps, looked, lacks } = await look({ raw: RAW, copy: RAW });
  expect([seen.free, seen.behind, seen.plan.live]).toEqual([100n, 100n, false]);
  expect(gaps).toEqual([
    ["copy", []],
    ["late", [range(0, 100)]],
  ]);
  expect(seen.plan.index.map((e) => e.id)).toEqual(["set"]);
  expect(lacks).toEqual([
    ["copy", 0n],
    ["late", 100n],
  ]);
  expect(looked?.leases).toEqual([]);
});

test("what is on its way, and what others are at, is not free; the index of raw is not read for it", async () => {
  const live = { owners: ["live", "recovery-r"], owner: "live" };
  const copy: Sink = {
    ...{ covered: [range(0, 20)], ...live },
    leases: [
      ["live", 60, null],
      ["recovery-r", 20, 60],
    ],
  };
  const { seen, gaps, looked, lacks } = await look({ raw: { ...RAW, owners: ["live"] }, copy, late: RAW });
  expect([seen.free, seen.behind, seen.plan.live, seen.plan.index]).toEqual([0n, 40n, true, []]);
  expect([gaps, lacks]).toEqual([
    [
      ["copy", []],
      ["late", []],
    ],
    [
      ["copy", 80n],
      ["late", 0n],
    ],
  ]);
  const of = { sink: "copy", topic: "orders", partition: 0, silentMs: expect.any(Number) };
  expect(looked?.leases).toEqual([
    { ...of, holder: "recovery-r", ...range(20, 60) },
    { ...of, holder: "live", from: 60n, next: null },
  ]);
});

test("of a sink that cannot be seen any more nothing is free, what is known stays told, and somebody is told why", async () => {
  const {
    root,
    events,
    look: again,
  } = await placed({ raw: RAW, copy: { covered: [range(0, 40)] }, late: RAW });
  expect(await again()).toMatchObject({ free: 60n, behind: 60n });
  expect(events.some((e) => e.e === "recovery.troubled")).toBeFalse();
  writeFileSync(join(root, "copy", "_twg", "p", "copy", "coverage", "coverage-000000000003.json"), "{");
  const seen = await again();
  expect([seen.free, seen.behind, [...seen.away.keys()]]).toEqual([0n, 0n, ["copy"]]);
  expect(events.findLast((e) => e.e === "recovery.looked")).toMatchObject({ free: 0n, behind: 60n });
  expect(events.filter((e) => e.e === "recovery.troubled")).toMatchObject([
    { sink: "copy", failure: { code: "coverage.corrupt" } },
  ]);
});

test("nothing has landed yet", async () => {
  const { seen, gaps } = await look({});
  expect([seen.free, seen.behind, gaps]).toEqual([0n, 0n, []]);
});

test("this process is known to be there, and one of its machine that is not there, too", () => {
  const { self, isAlive } = linuxIdentity();
  expect([isAlive(self), isAlive({ ...self, startTime: "0" })]).toEqual(["alive", "dead"]);
});
