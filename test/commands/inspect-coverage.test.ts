// Goal: what is covered, missing and lost is shown as the state has it, from wherever the state lies. Method: states written where the sink
// keeps them; expected spans by hand.
import { describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "../../src/commands/program.ts";
import {
  type CoverageState,
  EMPTY_STATE,
  NEW_STREAM,
  type StreamState,
} from "../../src/core/coverage/state.ts";
import { encodeState } from "../../src/core/coverage/state-json.ts";
import { windowName } from "../../src/core/coverage/windows.ts";
import { fakeCli, fileWith, ORDERS } from "./fake-cli.ts";

const range = (from: bigint, next: bigint) => ({ from, next });

function stateWith(serial: number, streams: Record<string, Partial<StreamState>>): CoverageState {
  const filled = Object.entries(streams).map(([key, s]) => [key, { ...NEW_STREAM, ...s }] as const);
  return { ...EMPTY_STATE, serial, streams: new Map(filled) };
}

const STATE: CoverageState = {
  ...stateWith(7, {
    "kafka/c/orders/0/10": { generation: 2, covered: [range(0n, 5n)] },
    "kafka/c/orders/0/9": {
      generation: 1,
      covered: [range(0n, 500n), range(600n, 700n), range(750n, 9007199254740993n)],
      lost: [{ ...range(500n, 550n), reason: "retention" }],
    },
    "kafka/c/orders/1/0": {},
  }),
  index: [
    {
      id: "a",
      targets: [{ key: "orders/x.parquet", bytes: 1000, rows: 10 }],
      spans: [{ stream: "kafka/c/orders/0/9", ...range(0n, 10n) }],
      rows: 10,
      bytes: 1000,
    },
  ],
  segments: [{ name: "s", entries: 1, files: 2, rows: 5, bytes: 500, level: 0 }],
};

function rootWith(states: Record<string, CoverageState>): string {
  const root = mkdtempSync(join(tmpdir(), "twg-coverage-"));
  for (const [place, state] of Object.entries(states)) {
    const folder = join(root, "_twg", place, "coverage");
    mkdirSync(folder, { recursive: true });
    writeFileSync(
      join(folder, `coverage-${String(state.serial).padStart(12, "0")}.json`),
      encodeState(state),
    );
    writeFileSync(join(folder, "coverage-000000000001.json"), "an older version that must not be read");
  }
  return root;
}

async function inspect(...argv: string[]) {
  const cli = fakeCli();
  const code = await runCli(["inspect", "coverage", ...argv], cli);
  return { code, out: cli.stdout(), err: cli.stderr() };
}

test("a table by topic, incarnation and partition, holes apart from what is lost", async () => {
  const { code, out, err } = await inspect(rootWith({ "orders/raw": STATE }));
  expect([code, err]).toEqual([0, ""]);
  const lines = out
    .trimEnd()
    .split("\n")
    .map((l) => l.split(/ {2,}/).map((c) => c.trim()));
  expect(lines).toEqual([
    ["TOPIC", "PARTITION", "COVERED", "POSITIONS", "HOLES", "LOST"],
    [
      "orders",
      "9",
      "[0, 500) [600, 700) [750, 9007199254740993)",
      String(500n + 100n + 9007199254740243n),
      "[550, 600) [700, 750)",
      "[500, 550) retention",
    ],
    ["orders", "10", "[0, 5)", "5", "none", "none"],
    ["orders (incarnation 1)", "0", "none", "0", "none", "none"],
    ["3 files, 15 rows, 1500B"],
  ]);
});

test("as JSON, positions are strings, exact beyond 2^53", async () => {
  const root = rootWith({ "orders/raw": STATE });
  const { code, out } = await inspect(`${root}/{topic}/{date}`, "--json");
  expect(code).toBe(0);
  const { places } = JSON.parse(out);
  expect(places).toHaveLength(1);
  expect(places[0]).toMatchObject({
    version: 7,
    files: 3,
    rows: 15,
    bytes: 1500,
    openIntents: 0,
    intents: [],
  });
  expect(places[0].place).toBe(join(root, "_twg/orders/raw/coverage"));
  expect(places[0].streams[0]).toEqual({
    stream: "kafka/c/orders/0/9",
    topic: "orders",
    incarnation: 0,
    partition: 9,
    generation: 1,
    covered: [
      { from: "0", next: "500" },
      { from: "600", next: "700" },
      { from: "750", next: "9007199254740993" },
    ],
    holes: [
      { from: "550", next: "600" },
      { from: "700", next: "750" },
    ],
    lost: [{ from: "500", next: "550", reason: "retention" }],
    positions: "9007199254740843",
  });
});

test("-c finds the state of the pipeline's own sink only", async () => {
  const root = rootWith({ "orders/raw": stateWith(3, { "kafka/c/mine/0/0": {} }), "other/raw": STATE });
  const path = fileWith(ORDERS.replace("./data", `${root}/{topic}`));
  const { out } = await inspect("-c", path, "--json");
  const { places } = JSON.parse(out);
  expect(places.map((p: { version: number }) => p.version)).toEqual([3]);
  expect(places[0].streams[0].topic).toBe("mine");
});

test("a folder of several pipelines shows each under its place; the state's own folder works too", async () => {
  const root = rootWith({
    "a/raw": stateWith(2, { "kafka/c/t1/0/0": {} }),
    "b/raw": stateWith(4, { "kafka/c/t2/0/0": {} }),
  });
  const { out } = await inspect(root);
  expect(out).toContain("_twg/a/raw/coverage\n");
  expect(out).toContain("_twg/b/raw/coverage\n");
  const own = await inspect(join(root, "_twg/b/raw/coverage"), "--json");
  expect(JSON.parse(own.out).places[0].version).toBe(4);
});

test("long lists of ranges are shortened in the table", async () => {
  const covered = Array.from({ length: 100 }, (_, i) => range(BigInt(i * 10), BigInt(i * 10 + 5)));
  const { out } = await inspect(rootWith({ "a/b": stateWith(2, { "kafka/c/t/0/0": { covered } }) }));
  expect(out).toContain("[0, 5) [10, 15) and 97 more, [990, 995)");
});

describe("nothing, and trouble", () => {
  test("a folder without coverage says so, exit 0", async () => {
    const root = mkdtempSync(join(tmpdir(), "twg-coverage-"));
    expect(await inspect(root)).toEqual({ code: 0, out: "nothing has landed there yet\n", err: "" });
    expect(JSON.parse((await inspect(root, "--json")).out)).toEqual({ places: [] });
    const path = fileWith(ORDERS.replace("./data", `${root}/not/yet`));
    expect((await inspect("-c", path)).code).toBe(0);
  });

  test("a folder that is not there is exit 3", async () => {
    const { code, err } = await inspect("/does/not/exist");
    expect(code).toBe(3);
    expect(err).toContain("inspect.unreadable");
  });

  test("a damaged state is a coded failure that names the file, never half a table", async () => {
    const root = rootWith({ "a/b": STATE });
    writeFileSync(join(root, "_twg/a/b/coverage/coverage-000000000009.json"), '{"format":"twg.coverage"');
    const { code, out, err } = await inspect(root);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain("coverage.corrupt");
    expect(err).toContain("coverage-000000000009.json");
  });

  test("a state beyond the limit is not read", async () => {
    const root = rootWith({ "a/b": STATE });
    writeFileSync(
      join(root, "_twg/a/b/coverage/coverage-000000000009.json"),
      new Uint8Array(8 * 1024 * 1024 + 1),
    );
    expect((await inspect(root)).err).toContain("coverage.corrupt");
  });

  test.each([
    [[], "what to look at is missing"],
    [["x", "-c", "y"], "-c FILE and the folder of a sink cannot both be given"],
  ])("%j is a usage error", async (argv, why) => {
    const { code, err } = await inspect(...(argv as string[]));
    expect(code).toBe(2);
    expect(err).toContain(`cli.usage: ${why}`);
  });
});

describe("who is there", () => {
  const host = (pid: number) => ({ hostname: "far", pid, bootId: "b", pidNamespace: "n", startTime: "1" });
  const name = (holder: string, from: bigint, next: bigint | null) =>
    windowName({ holder, stream: "kafka/c/orders/0/9", from, next });
  const leases = [name("live", 500n, null), name("recovery-r", 10n, 20n), name("gone", 0n, 5n)];
  const state: CoverageState = {
    ...STATE,
    owners: ["live", "recovery-r", "recovery-idle"].map((instance, i) => ({
      ...{ instance, host: host(i), since: Date.now() - 120_500, beat: 40 + i },
    })),
    leases: new Map(leases.map((n) => [n, { lease: 1, owner: "" }])),
  };

  test("with windows and heads, as text", async () => {
    const { out } = await inspect(rootWith({ "orders/raw": state }));
    const lines = out.slice(out.indexOf("open in")).replaceAll(/for 2 m \d+ s/g, "for 2 m");
    expect(lines).toBe(`open in
  live (ingest): pid 0 on far, of another machine, for 2 m, 40 writes
    keeps to itself orders/9 from 500
  recovery-r (recovery): pid 1 on far, of another machine, for 2 m, 41 writes
    leases orders/9 [10, 20)
  recovery-idle (recovery): pid 2 on far, of another machine, for 2 m, 42 writes
`);
  });

  test("and as JSON, windows before heads, without those of who has left", async () => {
    const { out } = await inspect(rootWith({ "orders/raw": state }), "--json");
    const [place] = JSON.parse(out).places;
    expect(place.owners).toBe(3);
    expect(place.holders[1]).toMatchObject({
      instance: "recovery-r",
      role: "recovery",
      life: "unknown",
      beat: 41,
    });
    const of = { stream: "kafka/c/orders/0/9", topic: "orders", incarnation: 0, partition: 9 };
    expect(place.leases).toEqual([
      { kind: "window", holder: "recovery-r", ...of, from: "10", next: "20" },
      { kind: "head", holder: "live", ...of, from: "500", next: null },
    ]);
  });
});
