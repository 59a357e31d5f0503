/**
 * Goal: raw that shows nothing, or a sink that cannot be read, is never told as "nothing is missing". Method: coverage of a raw
 * sink and two beside it in folders, of which some are not there, or damaged; the commands as they are typed, in this process.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/commands/config-file.ts";
import { runCli } from "../../src/commands/program.ts";
import { StreamRecovery } from "../../src/commands/stream-recovery.ts";
import { EMPTY_STATE, NEW_STREAM } from "../../src/core/coverage/state.ts";
import { encodeState } from "../../src/core/coverage/state-json.ts";
import { fakeCli } from "./fake-cli.ts";

let root: string;
let file: string;

const coverageOf = (sink: string) => join(root, sink, "_twg", "p", sink, "coverage");

function covers(sink: string, next: bigint): void {
  mkdirSync(coverageOf(sink), { recursive: true });
  const covered = [{ from: 0n, next }];
  const streams = new Map([["kafka/c/orders/0/0", { ...NEW_STREAM, covered }]]);
  const state = encodeState({ ...EMPTY_STATE, serial: 1, streams });
  writeFileSync(join(coverageOf(sink), "coverage-000000000001.json"), state);
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "twg-raw-away-"));
  file = join(root, "p.toml");
  const sinks = ["raw", "copy", "late"].map((name) => {
    const role = name === "raw" ? 'role = "primary_raw"\n' : "";
    return `[[sink]]\nname = "${name}"\ntype = "parquet"\n${role}path = "${join(root, name)}"\n`;
  });
  const source = '[source]\ntype = "kafka"\nbootstrap = ["k:1"]\ntopics = ["orders"]\ngroup = "g"\n';
  writeFileSync(
    file,
    `[pipeline]\nname = "p"\nrole = "recovery"\nstate_dir = "${root}/state"\n${source}${sinks.join("")}`,
  );
});

async function run(...argv: string[]) {
  const cli = fakeCli();
  const code = await runCli([...argv, "-c", file], cli);
  return { code, out: cli.stdout(), err: cli.stderr() };
}

async function untilCaughtUp(): Promise<string> {
  const parts = { loaded: await loadConfig(file), cli: fakeCli(), observer: { emit: () => {} } };
  const recovery = new StreamRecovery({ ...parts, load: null, untilRecovered: true });
  return recovery.run().then(
    () => "nothing is behind",
    (e) => e.code,
  );
}

const COMMANDS = [
  ["recover"],
  ["recover", "--dry-run"],
  ["recover", "--sink", "late"],
  ["inspect", "coverage", "--record-lost"],
  ["inspect", "coverage", "--rebuild"],
];

describe("raw that shows nothing", () => {
  test("is not mounted, rather than empty, where a sink beside it has records", async () => {
    covers("copy", 10n);
    for (const prepare of [() => {}, () => mkdirSync(join(root, "raw"))]) {
      prepare();
      for (const command of COMMANDS) {
        const { code, out, err } = await run(...command);
        expect([command, code, out]).toEqual([command, 3, ""]);
        expect(err).toContain("recovery.raw_missing");
        expect(err).toContain("the sink copy has records");
        expect(err).toContain("volume mounted");
      }
      expect(await untilCaughtUp()).toBe("recovery.raw_missing");
    }
    expect(readdirSync(join(root, "raw"))).toEqual([]);
    expect(readdirSync(coverageOf("copy"))).toEqual(["coverage-000000000001.json"]);
    expect(existsSync(join(root, "late"))).toBe(false);
  }, 60_000);

  test("is nothing to recover where nothing has landed anywhere", async () => {
    for (const command of COMMANDS) {
      const { code, err } = await run(...command);
      expect([command, code, err]).toEqual([command, 0, ""]);
    }
    expect(await untilCaughtUp()).toBe("nothing is behind");
  }, 60_000);

  test("is unknown where nobody can say whether a sink has records", async () => {
    covers("copy", 10n);
    writeFileSync(join(coverageOf("copy"), "coverage-000000000001.json"), "damaged");
    for (const command of COMMANDS.filter((c) => !c.includes("--sink"))) {
      const { code, out, err } = await run(...command);
      expect([command, code, out]).toEqual([command, 1, ""]);
      expect(err).toContain("coverage.corrupt");
    }
    expect(await untilCaughtUp()).toBe("coverage.corrupt");
  }, 60_000);

  test("of whose files none is there keeps its index as it is", async () => {
    covers("raw", 10n);
    const { code, err } = await run("inspect", "coverage", "--rebuild");
    expect([code, err]).toEqual([3, expect.stringContaining("recovery.raw_missing")]);
    expect(readdirSync(coverageOf("raw"))).toEqual(["coverage-000000000001.json"]);
  }, 60_000);
});

describe("a sink that cannot be read", () => {
  beforeEach(() => {
    for (const sink of ["raw", "copy", "late"]) covers(sink, 10n);
    writeFileSync(join(coverageOf("copy"), "coverage-000000000001.json"), "damaged");
  });

  test("is named, and the others are shown", async () => {
    const { code, out, err } = await run("inspect", "coverage", "--json");
    expect([code, err]).toEqual([1, expect.stringContaining("coverage.corrupt")]);
    const { places, unread } = JSON.parse(out);
    expect(places.map((p: { sink: string; gaps?: unknown }) => [p.sink, p.gaps])).toEqual([
      ["raw", undefined],
      ["late", []],
    ]);
    expect(unread).toEqual([
      { sink: "copy", role: "secondary", failure: expect.objectContaining({ code: "coverage.corrupt" }) },
    ]);
    const text = await run("inspect", "coverage");
    expect([text.code, text.out]).toEqual([1, expect.stringContaining("late (secondary)")]);
    expect(text.err).toContain("coverage.corrupt");
    expect((await run("inspect", "coverage", "--record-lost")).err).toContain("coverage.corrupt");
  }, 60_000);

  test("has no gaps as far as anybody knows, which is not said", async () => {
    for (const more of [[], ["--dry-run"]]) {
      const { code, out } = await run("recover", ...more);
      expect([code, out]).toEqual([1, "late: no gaps\n"]);
      const alone = await run("recover", "--sink", "copy", ...more);
      expect([alone.code, alone.out]).toEqual([1, ""]);
    }
    rmSync(join(root, "copy"), { recursive: true });
    covers("copy", 10n);
    expect(await run("recover")).toEqual({ code: 0, out: "no gaps\n", err: "" });
  }, 60_000);
});
