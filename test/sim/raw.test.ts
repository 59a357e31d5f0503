/**
 * Some seeds of the simulated world in every test run; `bun run sim --seeds 1000` runs many. A planted bug must be
 * caught within the same number of seeds, else the judge sees nothing.
 */
import { expect, test } from "bun:test";
import type { Canary } from "./node.ts";
import { simulate } from "./world.ts";

const SEEDS = 25;

test("every record lands exactly once, whatever is killed, stopped or damaged", async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const result = await simulate(seed);
    expect({ seed, complaints: result.complaints }).toEqual({ seed, complaints: [] });
    expect(result.records).toBeGreaterThan(0);
  }
}, 60_000);

test("one seed is one run: the same records, lives and steps again", async () => {
  expect(await simulate(7)).toEqual(await simulate(7));
});

for (const canary of ["early_cover", "blind_write"] as const satisfies readonly Canary[]) {
  test(`the planted bug ${canary} is caught`, async () => {
    let caught = 0;
    for (let seed = 1; seed <= SEEDS && caught === 0; seed++) {
      caught += (await simulate(seed, { canary })).complaints.length;
    }
    expect(caught).toBeGreaterThan(0);
  }, 60_000);
}
