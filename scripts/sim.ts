/**
 * Runs seeds of the simulated world (`--help` says its options).
 * Last line with --json: {scenario, seeds, failed, first_failed_seed}. `--seed S --seeds 1 --trace` replays one.
 */
import type { BesideCanary } from "../test/sim/beside.ts";
import type { Canary } from "../test/sim/node.ts";
import { simulate } from "../test/sim/world.ts";
import { flagsOf } from "./lib/flags.ts";

const SCENARIOS = ["raw", "groups", "sinks", "group_sinks"];

const { values: flags } = flagsOf({
  name: "sim",
  does: "Simulates whole pipelines with a fake clock, network and disk, and judges what landed.",
  flags: {
    scenario: { type: "string", default: "raw", value: SCENARIOS.join("|"), text: "what the world holds" },
    seeds: { type: "string", default: "100", value: "N", text: "how many seeds" },
    seed: { type: "string", default: "1", value: "S", text: "the first of them" },
    canary: {
      type: "string",
      value: "NAME",
      text: "plants a fault, which the run must find: early_cover, blind_write or never_gives_up; with sinks leads, forgets or lost_lease",
    },
    trace: { type: "boolean", default: false, text: "prints what happens, event by event" },
    json: { type: "boolean", default: false, text: "the result as JSON, in the last line" },
  },
  examples: [
    ["bun run sim --scenario group_sinks --seeds 1000", "a thousand worlds of a group with several sinks"],
    ["bun run sim --seed 4711 --seeds 1 --trace", "one seed again, and all that happens in it"],
  ],
  more: "Ends with 1 if a seed failed. --json: {scenario, seeds, failed, first_failed_seed, ...}.",
});

if (!SCENARIOS.includes(flags.scenario)) {
  console.error(`the scenarios are ${SCENARIOS.join(", ")}, not ${flags.scenario}`);
  process.exit(2);
}
const first = Number(flags.seed);
const seeds = Number(flags.seeds);
const options = {
  groups: flags.scenario.startsWith("group"),
  sinks: flags.scenario.endsWith("sinks"),
  ...(flags.canary === undefined
    ? {}
    : ["leads", "forgets", "lost_lease"].includes(flags.canary)
      ? { besideCanary: flags.canary as BesideCanary }
      : { canary: flags.canary as Canary }),
  ...(flags.trace ? { trace: (line: string) => console.error(line) } : {}),
};
let failed = 0;
let firstFailed: number | null = null;
let records = 0;
let lives = 0;
let side = 0;
let table = 0;
let recovered = 0;
for (let seed = first; seed < first + seeds; seed++) {
  const result = await simulate(seed, options);
  records += result.records;
  lives += result.lives;
  side += result.beside?.side ?? 0;
  table += result.beside?.table ?? 0;
  recovered += result.beside?.recovered ?? 0;
  if (result.complaints.length > 0) {
    failed++;
    firstFailed ??= seed;
    console.error(`seed ${seed}: ${result.complaints.slice(0, 5).join("; ")}`);
  }
  if ((seed - first + 1) % 100 === 0)
    console.error(`${seed - first + 1} of ${seeds} seeds, ${failed} failed`);
}
const line = {
  scenario: flags.scenario,
  seeds,
  failed,
  first_failed_seed: firstFailed,
  records,
  lives,
  side,
  table,
  recovered,
};
if (flags.json) console.log(JSON.stringify(line));
else console.table([line]);
process.exit(failed === 0 ? 0 : 1);
