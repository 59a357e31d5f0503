/**
 * Some seeds of a world in which a pipeline writes two sinks beside the raw one, files and a table that comes after
 * both: they fail, are slow, are full and recover, while everything else goes wrong as in the other scenarios. The raw
 * sink must not notice. One or two processes recover beside live ingest, are killed and hang; in the end they must give
 * both all that raw has. `bun run sim --scenario sinks` and `group_sinks` run many. A planted bug must be caught.
 */
import { expect, test } from "bun:test";
import { simulate } from "./world.ts";

const SEEDS = 3;

for (const groups of [false, true]) {
  test(`nothing shows what does not land, and what is missing is a gap${groups ? ", whoever reads it" : ""}`, async () => {
    const sum = { records: 0, side: 0, table: 0, recovered: 0 };
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { complaints, records, beside } = await simulate(seed, { groups, sinks: true });
      expect({ seed, complaints }).toEqual({ seed, complaints: [] });
      sum.records += records;
      sum.side += beside?.side ?? 0;
      sum.table += beside?.table ?? 0;
      sum.recovered += beside?.recovered ?? 0;
    }
    // They come after each other, both get something, and there are gaps to be judged.
    expect(sum.table).toBeGreaterThan(sum.records / 20);
    expect(sum.side).toBeGreaterThan(sum.table);
    expect(sum.records).toBeGreaterThan(sum.side);
    // Also while live ingest works; in a group there is less time for it, and more seeds show it.
    if (!groups) expect(sum.recovered).toBeGreaterThan(0);
  }, 60_000);
}

test("one seed is one run", async () => {
  expect(await simulate(4, { sinks: true })).toEqual(await simulate(4, { sinks: true }));
}, 60_000);

test("a sink that does not wait for the raw one is caught", async () => {
  expect((await simulate(1, { sinks: true, besideCanary: "leads" })).complaints).not.toEqual([]);
}, 60_000);

test("rows that the table refused are not forgotten while its rejects are away: a table that does is caught", async () => {
  let caught = 0;
  for (let seed = 3; seed <= 5 && caught === 0; seed++)
    caught += (await simulate(seed, { sinks: true, besideCanary: "forgets" })).complaints.length;
  expect(caught).toBeGreaterThan(0);
}, 60_000);

test("a table that takes what comes under a lease that is over is caught", async () => {
  let caught = 0;
  for (let seed = 3; seed < 20 && caught === 0; seed++)
    caught += (await simulate(seed, { sinks: true, besideCanary: "lost_lease" })).complaints.length;
  expect(caught).toBeGreaterThan(0);
}, 120_000);
