/**
 * Goal: damaged bytes end in success or a coded Failure, and the fuzzer would see it if they did not.
 * Method: some thousand cases of each target of `bun run fuzz` in this process (one seed, so a failure is the same
 * everywhere), and the canary target, which throws, dies and hangs at known cases, through a real campaign.
 */
import { expect, test } from "bun:test";
import { campaign } from "../../scripts/fuzz/campaign.ts";
import { damage, draws } from "../../scripts/fuzz/draws.ts";
import { reseal } from "../../scripts/fuzz/records-target.ts";
import { TARGETS } from "../../scripts/fuzz/table.ts";
import { buildBatch } from "../brokers/kafka/batch-builder.ts";
import { legacyMessage } from "../brokers/kafka/legacy-builder.ts";

const CASES = 2000;

test.each(TARGETS.map((t) => [t.name, t] as const))(
  "%s",
  async (_, target) => {
    let refused = 0;
    for (let n = 0; n < CASES; n++) {
      try {
        if (await target.run(n)) refused++;
      } catch (e) {
        throw new Error(`case ${n}`, { cause: e });
      }
    }
    // Neither all nor nothing gets through, or the damage would test nothing.
    expect(refused).toBeGreaterThan(CASES / 50);
    expect(refused).toBeLessThan(CASES);
  },
  120_000,
);

test("a case number is one input for ever", () => {
  const bytes = Uint8Array.from({ length: 200 }, (_, i) => i);
  for (let n = 0; n < 50; n++) expect(damage(bytes, draws(n))).toEqual(damage(bytes, draws(n)));
  expect(Bun.hash.crc32(damage(bytes, draws(7)))).toBe(Bun.hash.crc32(damage(bytes, draws(7))));
});

test("resealing makes the checksums of whole batches right and leaves a cut one", () => {
  const v2 = buildBatch({ records: [{ value: "x" }] });
  const v1 = legacyMessage(1, { offset: 1n, key: null, value: Uint8Array.of(1) });
  const whole = Uint8Array.from(Buffer.concat([v2, v1]));
  const wrong = whole.slice();
  wrong.fill(0, 17, 21);
  wrong.fill(0, v2.length + 12, v2.length + 16);
  reseal(wrong);
  expect(wrong).toEqual(whole);
  const cut = wrong.slice(0, v2.length + 20);
  const before = cut.slice();
  reseal(cut);
  expect(cut).toEqual(before);
});

/** Runs the canary over some cases: one in a thousand throws (100), dies (400), hangs (700). */
async function canary(first: number, cases: number, hangMs: number) {
  const complaints: string[] = [];
  const result = await campaign({
    target: "canary",
    first,
    cases,
    hangMs,
    maxMb: 4000,
    complain: (line) => complaints.push(line),
  });
  return { crashes: result.crashes, hangs: result.hangs, complaints };
}

test("a case that throws and one that kills its process are crashes, and the campaign goes on behind them", async () => {
  expect(await canary(90, 600, 60_000)).toEqual({
    crashes: 2,
    hangs: 0,
    complaints: ["canary: case 100: Error: canary: a failure that is not allowed", "canary: case 400 died"],
  });
}, 30_000);

test("memory above the limit is a crash", async () => {
  const complaints: string[] = [];
  const complain = (line: string) => complaints.push(line);
  const { crashes } = await campaign({
    target: "bytes",
    first: 0,
    cases: 500,
    hangMs: 60_000,
    maxMb: 1,
    complain,
  });
  expect(crashes).toBe(1);
  expect(complaints).toEqual(["bytes: more than 1 MB before case 500"]);
}, 30_000);

test("a case that never ends is a hang", async () => {
  expect(await canary(695, 10, 1500)).toEqual({
    crashes: 0,
    hangs: 1,
    complaints: ["canary: case 700 hung"],
  });
});
