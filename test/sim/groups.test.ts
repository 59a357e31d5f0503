/**
 * Some seeds of a world in which several processes share the partitions: members join, leave, die, hang for longer
 * than their session, take a name that another one has; requests of the group get lost or refused, coordinators move,
 * partitions are added, the topic is made anew, a log is cut. `bun run sim --scenario groups` runs many. Planted bugs
 * must be caught.
 */
import { expect, test } from "bun:test";
import type { Canary } from "./node.ts";
import { simulate } from "./world.ts";

const SEEDS = 10;

test("every record lands exactly once, whoever reads it, and no commit leads", async () => {
  let lives = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const result = await simulate(seed, { groups: true });
    expect({ seed, complaints: result.complaints }).toEqual({ seed, complaints: [] });
    lives += result.lives;
  }
  expect(lives).toBeGreaterThan(SEEDS * 3);
}, 60_000);

test("one seed is one run", async () => {
  expect(await simulate(3, { groups: true })).toEqual(await simulate(3, { groups: true }));
});

for (const canary of ["early_cover", "blind_write", "never_gives_up"] as const satisfies readonly Canary[]) {
  test(`the planted bug ${canary} is caught`, async () => {
    let caught = 0;
    for (let seed = 1; seed <= SEEDS && caught === 0; seed++) {
      caught += (await simulate(seed, { groups: true, canary })).complaints.length;
    }
    expect(caught).toBeGreaterThan(0);
  }, 60_000);
}
