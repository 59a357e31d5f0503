/**
 * Damaged bytes into every parser: each case must end in success or a coded Failure, in bounded time and memory.
 * N cases of each target (`--help` says the options). Last line with --json: {target, cases, crashes, hangs, ...}. A complaint
 * names the case; `--seed CASE --cases 1 --raw-seed` runs just that one again.
 */
import { type Campaign, campaign } from "./fuzz/campaign.ts";
import { TARGETS, targetNamed } from "./fuzz/table.ts";
import { flagsOf } from "./lib/flags.ts";

const { values: flags } = flagsOf({
  name: "fuzz",
  does: "Throws damaged bytes at every parser: each case must end in success or a coded failure, in bounded time and memory.",
  flags: {
    target: {
      type: "string",
      default: "all",
      value: "NAME",
      text: `one of ${TARGETS.map((t) => t.name).join(", ")}, or all`,
    },
    cases: { type: "string", default: "100000", value: "N", text: "cases of each target" },
    seed: { type: "string", default: "1", value: "S", text: "which cases" },
    "raw-seed": {
      type: "boolean",
      default: false,
      text: "--seed is the number of a case, as complaints name it",
    },
    "hang-ms": { type: "string", default: "10000", value: "MS", text: "a case that takes longer hangs" },
    "max-mb": { type: "string", default: "1000", value: "MB", text: "memory that a process may take" },
    json: { type: "boolean", default: false, text: "a line of JSON for each target, and for all last" },
  },
  examples: [
    ["bun run fuzz --cases 1000000 --seed 7", "a million cases of each target"],
    ["bun run fuzz --target json --seed 100000123 --cases 1 --raw-seed", "one case again"],
  ],
  more: "Ends with 1 after a crash or a hang. --json: {target, cases, crashes, hangs, ...}.",
});

/** Case numbers of neighbouring seeds do not overlap for runs below this. */
const SEED_STRIDE = 100_000_007;

function whole(name: "cases" | "seed" | "hang-ms" | "max-mb"): number {
  const value = Number(flags[name]);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  console.error(`--${name} takes a whole number, not ${flags[name]}`);
  process.exit(2);
}

const names = flags.target === "all" ? TARGETS.map((t) => t.name) : [flags.target];
if (names.some((name) => targetNamed(name) === null)) {
  console.error(
    `--target is one of ${[...TARGETS.map((t) => t.name), "all"].join(", ")}, not ${flags.target}`,
  );
  process.exit(2);
}

const seed = whole("seed");
const cases = whole("cases");
const results: Campaign[] = [];
for (const target of names) {
  const result = await campaign({
    target,
    first: flags["raw-seed"] ? seed : seed * SEED_STRIDE,
    cases,
    hangMs: whole("hang-ms"),
    maxMb: whole("max-mb"),
    complain: (line) => console.error(line),
  });
  results.push(result);
  if (flags.json) console.log(JSON.stringify(result));
}

const sum = (field: "cases" | "crashes" | "hangs" | "refused"): number =>
  results.reduce((total, r) => total + r[field], 0);
const total: Campaign = {
  target: flags.target,
  cases: sum("cases"),
  crashes: sum("crashes"),
  hangs: sum("hangs"),
  refused: sum("refused"),
  peakMb: Math.max(0, ...results.map((r) => r.peakMb)),
};
if (!flags.json) console.table(results);
else if (flags.target === "all") console.log(JSON.stringify(total));
process.exit(total.crashes + total.hangs === 0 ? 0 : 1);
