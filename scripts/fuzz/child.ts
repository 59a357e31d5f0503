/** The child of a campaign: bun child.ts TARGET FROM TO STRIDE. Writes a Word after every STRIDE cases. */
import { writeSync } from "node:fs";
import type { Word } from "./campaign.ts";
import { targetNamed } from "./table.ts";

const [name = "", from = "0", to = "0", stride = "1"] = process.argv.slice(2);
const target = targetNamed(name);
if (target === null) throw new Error(`no target ${name}`);

const say = (word: Word) => writeSync(1, `${JSON.stringify(word)}\n`);
const last = Number(to);
const every = Number(stride);
let refused = 0;
for (let n = Number(from); n < last; n++) {
  try {
    if (await target.run(n)) refused++;
  } catch (e) {
    say({ bad: n, why: e instanceof Error ? `${e.name}: ${e.message}` : String(e) });
  }
  if ((n + 1) % every !== 0 && n + 1 !== last) continue;
  say({ at: n + 1, refused, mb: Math.round(process.memoryUsage.rss() / 1e6) });
  refused = 0;
  // The runtime frees the native state of its zlib calls on a turn of the loop only, and a lane's loop turns too.
  await new Promise((turn) => setImmediate(turn));
}
