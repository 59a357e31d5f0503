/** The import rules of .dependency-cruiser.cjs, applied to src/. */
import { join } from "node:path";
import { type Check, output } from "./check.ts";

const house = join(import.meta.dir, "../..");

interface Violation {
  readonly from: string;
  readonly to: string;
  readonly rule: { readonly name: string };
  readonly comment?: string;
}

export const ranks: Check = {
  name: "import ranks",
  async run(repo) {
    const depcruise = join(house, "node_modules/dependency-cruiser/bin/dependency-cruiser.mjs");
    const config = join(house, ".dependency-cruiser.cjs");
    const argv = [process.execPath, depcruise, "src", "--config", config, "--output-type", "json"];
    const done = await output(argv, repo);
    if (!done.stdout.startsWith("{"))
      return { problems: [`dependency-cruiser failed: ${done.stderr || done.stdout}`] };
    const { summary } = JSON.parse(done.stdout) as {
      summary: { violations: Violation[]; totalCruised: number };
    };
    if (summary.totalCruised === 0) return { problems: ["dependency-cruiser looked at no file"] };
    return { problems: summary.violations.map((v) => `${v.rule.name}: ${v.from} -> ${v.to}`) };
  },
};
