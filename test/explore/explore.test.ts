/**
 * Goal: whatever happens in whatever order, nothing leads and every record is in every sink in the end. Method: small cases are
 * walked, some whole and the large ones up to a number of states (`bun run explore` walks all of them whole); each planted bug must be found
 * in a case that is small enough for the test run, else the explorer sees nothing.
 */
import { expect, test } from "bun:test";
import { CASES, caseNamed } from "./cases.ts";
import { explore } from "./explorer.ts";
import { CANARIES, type Canary } from "./places.ts";
import type { Case } from "./world.ts";

const MOST_STATES = 400;
const WHOLE: readonly string[] = ["crash_alone", "sinks_alone", "lease_alone", "lease_below_head"];

function named(name: string): Case {
  const found = caseNamed(name);
  if (found === null) throw new Error(`no case ${name}`);
  return found;
}

const LIMIT = 120_000;

test.each(CASES.map((c) => [c.name]))(
  "%s",
  async (name) => {
    const whole = WHOLE.includes(name);
    const found = await explore(named(name), whole ? {} : { mostStates: MOST_STATES });
    expect({ found: found.found, whole: found.whole }).toEqual({ found: null, whole });
    // It came to ends, and not only to one.
    expect(found.ends).toBeGreaterThan(10);
  },
  LIMIT,
);

test(
  "one case is one walk",
  async () => {
    expect(await explore(named("crash_alone"))).toEqual(await explore(named("crash_alone")));
  },
  LIMIT,
);

const CAUGHT_IN: Readonly<Record<Canary, string>> = {
  blind_write: "taken_for_dead",
  no_discard: "taken_for_dead",
  early_ack: "crash_alone",
  early_cover: "crash_alone",
  leads: "sinks_alone",
  over_covered: "two_leases",
  over_head: "lease_below_head",
  lost_lease: "lease_expires",
  high_heads: "lease_beside",
  no_heads: "head_told",
};
const COMPLAINTS: Readonly<Record<Canary, RegExp>> = {
  blind_write: /a row is there twice/,
  no_discard: /a row is there twice/,
  early_ack: /the source was told/,
  early_cover: /is covered and not there/,
  leads: /side shows .* before raw covers it/,
  over_covered: /a row is there twice/,
  over_head: /has not let go of/,
  lost_lease: /have leased the same|which is over/,
  high_heads: /has let go of .* below/,
  no_heads: /lacks .* that was let go of/,
};

test.each(CANARIES.map((c) => [c]))(
  "the planted bug %s is found",
  async (canary) => {
    const { found } = await explore(named(CAUGHT_IN[canary]), { canary });
    expect(found?.complaint).toMatch(COMPLAINTS[canary]);
    expect(found?.steps.length).toBeGreaterThan(0);
  },
  LIMIT,
);
