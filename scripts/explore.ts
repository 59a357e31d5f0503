/**
 * Walks all interleavings of small cases over the state machines of delivery: docs/exploring.md.
 * `--help` says its options. Last line with --json: {cases, states, runs, ends, whole, failed, first_failed_case}.
 */
import { CASES } from "../test/explore/cases.ts";
import { explore } from "../test/explore/explorer.ts";
import { CANARIES } from "../test/explore/places.ts";
import { flagsOf } from "./lib/flags.ts";

const { values: flags } = flagsOf({
  name: "explore",
  does: "Walks all interleavings of small cases over the state machines of delivery.",
  flags: {
    case: {
      type: "string",
      value: "NAME",
      text: `one of ${CASES.map((c) => c.name).join(", ")}`,
      otherwise: "all of them",
    },
    states: { type: "string", default: "200000", value: "N", text: "how many states of a case at most" },
    canary: {
      type: "string",
      value: "NAME",
      text: `plants a fault, which the run must find: one of ${CANARIES.join(", ")}`,
    },
    json: { type: "boolean", default: false, text: "the result as JSON, in the last line" },
  },
  examples: [
    ["bun run explore", "every case"],
    ["bun run explore --case crash --canary no_discard", "a planted fault: the steps that lead to it"],
  ],
  more: "Ends with 1 if something was found. More: docs/exploring.md.",
});

function oneOf<T extends string>(what: string, given: string, names: readonly T[]): T {
  const found = names.find((n) => n === given);
  if (found !== undefined) return found;
  console.error(`the ${what} are ${names.join(", ")}, not ${given}`);
  process.exit(2);
}

const named =
  flags.case === undefined
    ? null
    : oneOf(
        "cases",
        flags.case,
        CASES.map((c) => c.name),
      );
const canary = flags.canary === undefined ? null : oneOf("canaries", flags.canary, CANARIES);
const sum = { cases: 0, states: 0, runs: 0, ends: 0, whole: 0, failed: 0 };
let firstFailed: string | null = null;
for (const which of CASES.filter((c) => named === null || c.name === named)) {
  const progress = (states: number) => console.error(`${which.name}: ${states} states`);
  const found = await explore(which, { canary, mostStates: Number(flags.states), progress });
  const { states, runs, ends, deepest, whole } = found;
  const extent = whole ? "all of it" : found.found === null ? "as far as --states" : "up to what was found";
  console.error(
    `${which.name}: ${states} states, ${runs} runs, ${ends} ends, ${deepest} steps deep, ${extent}`,
  );
  sum.cases++;
  sum.states += states;
  sum.runs += runs;
  sum.ends += ends;
  if (whole) sum.whole++;
  if (found.found === null) continue;
  sum.failed++;
  firstFailed ??= which.name;
  console.error(`${which.name}: ${found.found.complaint}, after`);
  for (const step of found.found.steps) console.error(`  ${step}`);
}
const line = { ...sum, first_failed_case: firstFailed };
if (flags.json) console.log(JSON.stringify(line));
else console.table([line]);
process.exit(sum.failed === 0 ? 0 : 1);
