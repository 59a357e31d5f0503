/**
 * Goal: what live ingest fills between the plan of a recovery and its first look is neither left nor recovered; what is missing is
 * told as long as nobody saw it there. Method: coverage of a raw sink and one beside it in folders, a plan made by hand, and looks that
 * read the folders.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { loadConfig, resolveSecrets } from "../../src/commands/config-file.ts";
import { planRecovery, type RecoverPlan } from "../../src/commands/recover-plan.ts";
import { RecoveryRound } from "../../src/commands/recovery-round.ts";
import { EMPTY_STATE, NEW_STREAM } from "../../src/core/coverage/state.ts";
import { encodeState } from "../../src/core/coverage/state-json.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import { recoveryLimit } from "../../src/core/recovery/recovery-limit.ts";
import { fakeCli } from "./fake-cli.ts";

const STREAM = "kafka/c/orders/0/0";

let root: string;
let file: string;

function covers(sink: string, next: bigint): void {
  const folder = join(root, sink, "_twg", "p", sink, "coverage");
  mkdirSync(folder, { recursive: true });
  const streams = new Map([[STREAM, { ...NEW_STREAM, covered: [{ from: 0n, next }] }]]);
  writeFileSync(
    join(folder, "coverage-000000000001.json"),
    encodeState({ ...EMPTY_STATE, serial: 1, streams }),
  );
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "twg-round-"));
  file = join(root, "p.toml");
  const sinks = ["raw", "copy"].map((name) => {
    const role = name === "raw" ? 'role = "primary_raw"\n' : "";
    return `[[sink]]\nname = "${name}"\ntype = "parquet"\n${role}path = "${join(root, name)}"\n`;
  });
  const source = '[source]\ntype = "kafka"\nbootstrap = ["k:1"]\ntopics = ["orders"]\ngroup = "g"\n';
  writeFileSync(file, `[pipeline]\nname = "p"\nstate_dir = "${root}/state"\n${source}${sinks.join("")}`);
});

/** Of copy, 4 positions at its end. */
async function planned(): Promise<RecoverPlan> {
  const plan = await look();
  const ranges = [{ from: 6n, next: 10n }];
  const gap = { stream: STREAM, topic: "orders", partition: 0, incarnation: 0, ranges };
  const set = {
    id: "s",
    rows: 10,
    bytes: 1000,
    targets: [],
    spans: [{ stream: STREAM, from: 0n, next: 10n }],
  };
  const wanted = new Map([[STREAM, ranges]]);
  return { ...plan, sinks: [{ sink: "copy", gaps: [gap as never] }], wanted, index: [set as never] };
}

const choice = { sinks: [], topics: [], from: null, to: null, replan: false };

async function look(): Promise<RecoverPlan> {
  const loaded = await loadConfig(file);
  const cli = fakeCli();
  return planRecovery(loaded, await resolveSecrets(loaded, cli.environment), choice, cli);
}

async function away(): Promise<RecoverPlan> {
  const why = new Failure("inspect.unreadable", "away", { at: "copy" });
  return { ...(await look()), sinks: [], away: new Map([["copy", why]]) };
}

async function round(looks: () => Promise<RecoverPlan>, before: (r: RecoveryRound) => void = () => {}) {
  const whole = await resolveSecrets(await loadConfig(file), fakeCli().environment);
  const limit = recoveryLimit(whole.recovery, systemClock, { isLive: () => true, waits: null });
  const observer = { emit: () => {} };
  const of = new RecoveryRound({ whole, choice, observer, limit, look: looks, onlyFree: false });
  const plan = await planned();
  before(of);
  const { sinks, failure } = await of.run(plan);
  return { sinks: [...sinks], failure: failure?.code ?? null };
}

describe("what was planned", () => {
  beforeEach(() => covers("raw", 10n));

  test("and is there before the first look is not left, and was not recovered", async () => {
    covers("copy", 10n);
    expect(await round(look)).toEqual({ sinks: [["copy", { recovered: 0n, lacks: 0n }]], failure: null });
  });

  test("and of which nothing can be seen then is left", async () => {
    covers("copy", 10n);
    const lacks = [["copy", { recovered: 0n, lacks: 4n }]];
    expect(await round(away)).toMatchObject({ sinks: lacks, failure: "recovery.behind" });
  });

  test("and of which nothing could be seen at the first look alone is left, whatever later ones see", async () => {
    covers("copy", 6n);
    let looks = 0;
    const late = () => (looks++ === 0 ? away() : look());
    const lacks = [["copy", { recovered: 0n, lacks: 4n }]];
    expect(await round(late)).toMatchObject({ sinks: lacks, failure: "recovery.behind" });
  });

  test("is left where the run was stopped before it looked, or while it did", async () => {
    covers("copy", 6n);
    const left = { sinks: [["copy", { recovered: 0n, lacks: 4n }]], failure: "internal.cancelled" };
    expect(await round(look, (r) => r.stop("SIGTERM"))).toEqual(left as never);
    let running: RecoveryRound | null = null;
    const stopped = () => {
      running?.stop("SIGTERM");
      return away();
    };
    const keep = (r: RecoveryRound) => {
      running = r;
    };
    expect(await round(stopped, keep)).toEqual(left as never);
  });
});
