/** Files that are generated from the source and checked in are what the generator writes today. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Check, output } from "./check.ts";

const GENERATOR = "scripts/generate.ts";

export const generated: Check = {
  name: "generated files",
  async run(repo) {
    if (!existsSync(join(repo, GENERATOR))) return { problems: [], notes: [`${GENERATOR} is not there yet`] };
    const done = await output([process.execPath, GENERATOR, "--check"], repo);
    if (done.ok) return { problems: [] };
    const said = `${done.stdout}${done.stderr}`.trim().split("\n");
    return { problems: [...said, `run: bun ${GENERATOR}`] };
  },
};
