/**
 * Goal: recovery knows by which plan records of a sink were decoded, what is needed for it and whose fault it is if they do not fit, and
 * people see the same. Method: books written by hand and in a folder; `twg recover --dry-run` and `twg inspect coverage` over states
 * that are written where sinks keep them.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalVersionedStore, planFolderOf } from "../../src/adapters/coverage/local.ts";
import type { DecodePlan } from "../../src/commands/decode-plan.ts";
import { readPlan } from "../../src/commands/decode-plan.ts";
import { PresentPlans } from "../../src/commands/plan-epochs.ts";
import { runCli } from "../../src/commands/program.ts";
import {
  decodeOfPlan,
  EarlierPlans,
  hasOwnColumns,
  piecesOf,
  tellsClashes,
} from "../../src/commands/replay-plans.ts";
import { type DecodeSection, decodeSpec } from "../../src/core/config/decode-options.ts";
import type { Resolved } from "../../src/core/config/secret.ts";
import { PlanBook } from "../../src/core/coverage/plan-book.ts";
import type { PlanBookState } from "../../src/core/coverage/plan-json.ts";
import { EMPTY_STATE, NEW_STREAM } from "../../src/core/coverage/state.ts";
import { encodeState } from "../../src/core/coverage/state-json.ts";
import { Failure, toWire } from "../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../src/core/observe/events.ts";
import { fakeCli } from "./fake-cli.ts";

const S = "kafka/c/orders/0/0";
const [A, B] = ["a".repeat(32), "b".repeat(32)];
const since = (...all: readonly (readonly [number, string | null])[]) => ({
  generation: 1,
  epochs: all.map(([from, plan]) => ({ from: BigInt(from), plan })),
});
const SINKS = [
  { name: "typed", receives: "decoded" },
  { name: "late", receives: "decoded" },
  { name: "refused", receives: "rejected" },
] as const;

async function pieces(book: PlanBookState, sink: string, now: string | Error = B) {
  const present = {
    of: async () => {
      if (now instanceof Error) throw now;
      return { digest: now, bytes: new Uint8Array() };
    },
  };
  const found = await piecesOf(book, SINKS, new Map([[sink, [S]]]), present);
  return found
    .get(sink)
    ?.get(S)
    ?.map(({ from, plan }) => [Number(from), plan]);
}

describe("by which plan records were decoded", () => {
  const BOOK: PlanBookState = new Map([
    ["typed", new Map([[S, since([0, null], [10, A], [20, B])]])],
    ["late", new Map([[S, since([15, A])]])],
  ]);

  test("is that of the sink's epoch; that of now has no name", async () => {
    const wanted = [
      [0, "forgotten"],
      [10, A],
      [20, null],
    ];
    expect(await pieces(BOOK, "typed")).toEqual(wanted);
    expect(await pieces(BOOK, "typed", new Error("denied"))).toEqual([...wanted.slice(0, 2), [20, B]]);
    expect(await pieces(BOOK, "late")).toEqual([[15, A]]);
    expect(await pieces(new Map(), "typed")).toBeUndefined();
  });

  test("is of rejects that of the rows, where nothing is known of themselves", async () => {
    expect(await pieces(BOOK, "refused", A)).toEqual([
      [0, "forgotten"],
      [10, null],
      [20, B],
    ]);
    const own: PlanBookState = new Map([...BOOK, ["refused", new Map([[S, since([12, B])]])]]);
    expect(await pieces(own, "refused", A)).toEqual([
      [0, "forgotten"],
      [10, null],
      [12, B],
    ]);
  });
});

describe("an earlier plan", () => {
  const code = (of: unknown) => (of instanceof Failure ? of.code : of);
  const stored = new Map([[A, new TextEncoder().encode("no plan")]]);
  const plans = new EarlierPlans({ plan: async (digest) => stored.get(digest) ?? null }, "/raw/plans");

  test("that is not known, not there or damaged is told, with what can be done", async () => {
    for (const [plan, wanted] of [
      ["forgotten", "recovery.plan_missing"],
      [B, "recovery.plan_missing"],
      [A, "recovery.plan_corrupt"],
    ] as const) {
      const found = await plans.get(plan);
      expect([plan, code(found)]).toEqual([plan, wanted]);
      expect((found as Failure).hint).toContain("--replan");
    }
  });

  const planWith = (schemas: DecodePlan["schemas"], more: object = {}): DecodePlan => ({
    decode: { ...decodeSpec.parse({ format: "json" }), ...more },
    schemas,
    files: new Map(),
  });
  const now = (more: object) =>
    ({ ...decodeSpec.parse({ format: "json" }), ...more }) as Resolved<DecodeSection>;

  test("has its registry or folder from the configuration of now, and does not do without", () => {
    const registry = { url: ["https://r"] };
    expect(decodeOfPlan(planWith("registry"), now({ registry }))).toMatchObject({ registry });
    expect(decodeOfPlan(planWith("folder"), now({ schema_dir: "/d" }))).toMatchObject({ schema_dir: "/d" });
    expect(decodeOfPlan(planWith(null), now({ registry }))).not.toHaveProperty("registry");
    expect(code(decodeOfPlan(planWith("registry"), now({ schema_dir: "/d" })))).toBe("recovery.plan_unfit");
    expect(code(decodeOfPlan(planWith("folder"), now({ registry })))).toBe("recovery.plan_unfit");
  });

  test("whose columns are a file's has the table to blame, not the records", () => {
    expect(hasOwnColumns(planWith(null, { schema_file: "/s" }))).toBe(true);
    expect(hasOwnColumns(planWith("registry", { reader_schema: "/s" }))).toBe(true);
    expect(hasOwnColumns(planWith("registry", { schema_file: "/s" }))).toBe(false);
    expect(hasOwnColumns(planWith(null))).toBe(false);
  });

  test("that the table does not take any more says so; other trouble is as it is", () => {
    const told: TwgEvent[] = [];
    const observer = tellsClashes({ emit: (e) => told.push(e) });
    const trouble = (of: Failure) => ({ e: "sink.troubled", sink: "typed", failure: toWire(of) }) as const;
    const full = trouble(new Failure("coverage.full", "no room"));
    observer.emit(full);
    observer.emit(trouble(new Failure("table.mismatch", "id: int64 is no string")));
    expect(told[0]).toEqual(full);
    expect(told[1]).toMatchObject({
      failure: { code: "recovery.plan_unfit", hint: expect.stringContaining("--replan") },
    });
    expect((told[1] as typeof full).failure.message).toEndWith("id: int64 is no string");
  });
});

describe("people see it", () => {
  type SinkText = (name: string, more: string) => string;

  async function folderOf(more: (sink: SinkText) => string = () => "") {
    const root = mkdtempSync(join(tmpdir(), "twg-plans-"));
    const schema = join(root, "order.json");
    writeFileSync(schema, '{"type":"object","properties":{"id":{"type":"integer"}}}');
    const config = join(root, "p.toml");
    const decode = `[decode]\nformat = "json"\nschema_file = "${schema}"\non_error = "fail"\n`;
    const sink: SinkText = (name, more) =>
      `[[sink]]\nname = "${name}"\ntype = "parquet"\n${more}\npath = "${join(root, name)}"\n`;
    const source = '[source]\ntype = "kafka"\nbootstrap = ["k:1"]\ntopics = ["orders"]\ngroup = "g"\n';
    const sinks = sink("raw", 'role = "primary_raw"') + sink("typed", 'receives = "decoded"') + more(sink);
    writeFileSync(config, `[pipeline]\nname = "p"\nstate_dir = "${root}"\n${source}${decode}${sinks}`);
    for (const [name, next] of [
      ["raw", 100n],
      ["typed", 5n],
    ] as const) {
      const streams = new Map([[S, { ...NEW_STREAM, covered: [{ from: 0n, next }] }]]);
      const place = join(root, name, "_twg", "p", name, "coverage");
      mkdirSync(place, { recursive: true });
      writeFileSync(
        join(place, "coverage-000000000002.json"),
        encodeState({ ...EMPTY_STATE, serial: 2, streams }),
      );
    }
    const versions = new LocalVersionedStore(planFolderOf(join(root, "raw"), "p", "raw"), undefined, "plans");
    const book = new PlanBook({ versions, instance: "i" });
    const section = (ignore: boolean): DecodeSection =>
      decodeSpec.parse({
        ...{ format: "json", schema_file: schema },
        on_error: "fail",
        unknown_fields: ignore ? "ignore" : "reject",
      });
    const read = async (path: string) => new Uint8Array(await Bun.file(path).arrayBuffer());
    const [old, now] = await Promise.all(
      [true, false].map((ignore) => new PresentPlans(section(ignore), read).of("orders")),
    );
    const begun = { stream: S, skip: [], generation: 1 };
    await book.enter("typed", [{ ...begun, from: 3n, plan: old! }]);
    await book.enter("typed", [{ ...begun, from: 60n, plan: now! }]);
    expect(readPlan((await book.plan(old!.digest))!, old!.digest).decode.unknown_fields).toBe("ignore");
    return { config, earlier: old!.digest, plans: versions.place };
  }

  const run = async (...argv: readonly string[]) => {
    const cli = fakeCli();
    const code = await runCli([...argv], cli);
    expect([code, cli.stderr()]).toEqual([0, ""]);
    return cli.stdout();
  };

  test("in the coverage, and in what recovery would do", async () => {
    const { config, earlier } = await folderOf();
    const text = await run("inspect", "coverage", "-c", config);
    expect(text).toContain(`orders/0: from 3 on ${earlier.slice(0, 12)}\n  orders/0: from 60 on `);
    expect(text).toContain(", the plan of now\n");
    const { places } = JSON.parse(await run("inspect", "coverage", "-c", config, "--json"));
    expect(places[1]).toMatchObject({
      sink: "typed",
      plans: [
        { topic: "orders", partition: 0, from: "3", plan: earlier, now: false },
        { from: "60", now: true },
      ],
    });
    expect(places[0]).not.toHaveProperty("plans");
    const dry = JSON.parse(await run("recover", "-c", config, "--dry-run", "--json"));
    expect(dry.sinks[0].gaps[0].plans).toEqual([
      { plan: earlier, ranges: [{ from: "5", next: "60" }] },
      { plan: null, ranges: [{ from: "60", next: "100" }] },
    ]);
    const rows = (await run("recover", "-c", config, "--dry-run")).split("\n").map((l) => l.split(/ {2,}/));
    expect(rows.slice(1, 3)).toEqual([
      ["typed", "orders", "0", "[5, 60)", "55", earlier.slice(0, 12)],
      ["typed", "orders", "0", "[60, 100)", "40", "of now"],
    ]);
    const replan = JSON.parse(await run("recover", "-c", config, "--dry-run", "--json", "--replan"));
    expect(replan.sinks[0].gaps[0].plans).toEqual([{ plan: null, ranges: [{ from: "5", next: "100" }] }]);
  });

  test("where the book cannot be read, raw is recovered and what has landed is told all the same", async () => {
    const { config, plans } = await folderOf((sink) => sink("copy", 'receives = "raw"'));
    writeFileSync(join(plans, "plans-000000000003.json"), "damaged");
    const dry = fakeCli();
    expect(await runCli(["recover", "-c", config, "--dry-run", "--json"], dry)).not.toBe(0);
    expect(dry.stderr()).toContain("recovery.plan_corrupt");
    const { sinks } = JSON.parse(dry.stdout());
    expect(sinks).toMatchObject([{ sink: "copy", gaps: [{ ranges: [{ from: "0", next: "100" }] }] }]);
    expect(await run("recover", "-c", config, "--dry-run", "--replan")).toContain("typed");

    const text = await run("inspect", "coverage", "-c", config);
    expect(text.match(/plans by which records are decoded: .*recovery\.plan_corrupt/g)).toHaveLength(1);
    expect(text).toContain("[0, 5)");
    const { places } = JSON.parse(await run("inspect", "coverage", "-c", config, "--json"));
    expect(places.map((p: { plansFailure?: object }) => p.plansFailure)).toMatchObject([
      ...[undefined, { code: "recovery.plan_corrupt" }],
    ]);
  });
});
