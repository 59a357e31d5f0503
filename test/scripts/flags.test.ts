/**
 * Goal: every long run says its options, and a wrong one is one line and exit code 2 before anything has begun. Method: the
 * commands themselves.
 */
import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import packageJson from "../../package.json";
import { flagsOf, helpOf } from "../../scripts/lib/flags.ts";

const REPO = resolve(import.meta.dir, "../..");

/** What a command printed of its own; imports say which servers are missing. */
async function run(script: string, ...args: string[]) {
  const child = Bun.spawn([process.execPath, script, ...args], {
    cwd: REPO,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  const told = err.split("\n").filter((l) => l !== "" && !l.startsWith("SKIP"));
  return { code: await child.exited, out, told };
}

for (const name of ["sim", "fuzz", "torture", "bench", "explore"] as const) {
  describe(name, () => {
    const script = packageJson.scripts[name].split(" ")[1] ?? "";

    test("--help says options, examples and nothing else", async () => {
      const { code, out, told } = await run(script, "--help");
      expect([code, told]).toEqual([0, []]);
      expect(out).toContain(`Usage: bun run ${name}`);
      expect(out).toContain("--json ");
      // Every example is a call of this very command with options that it has.
      const examples = out.split("\n").filter((l) => l.startsWith("  ") && l.includes(`bun run ${name}`));
      expect(examples.length).toBeGreaterThan(1);
      const own = examples.flatMap((l) => l.split(`bun run ${name}`)[1]?.match(/--[a-z-]+/g) ?? []);
      expect(own.filter((o) => !out.includes(`\n  ${o} `))).toEqual([]);
    });

    test("an option that is not there is one line and exit code 2", async () => {
      const { code, out, told } = await run(script, "--hlep");
      expect([code, out, told]).toEqual([
        2,
        "",
        [`${name}: unknown option '--hlep'; bun run ${name} --help says what there is`],
      ]);
    });
  });
}

const COMMAND = {
  name: "mow",
  does: "Mows.",
  flags: {
    height: { type: "string", default: "40", value: "MM", text: "what is left" },
    area: { type: "string", value: "M2", text: "how much", otherwise: "all of it" },
    dry: { type: "boolean", default: false, text: "not if it rains" },
  },
  examples: [["bun run mow --dry", "in summer"]],
  more: "Ends with 1 in winter.",
} as const;

test("values are what was given, or the defaults", () => {
  expect({ ...flagsOf(COMMAND, ["--height", "30"]).values }).toEqual({ height: "30", dry: false });
});

test("the help says values, defaults and what holds otherwise", () => {
  expect(helpOf(COMMAND)).toBe(`Mows.

Usage: bun run mow [OPTION...]

Options:
  --height MM  what is left (default 40)
  --area M2    how much (without it: all of it)
  --dry        not if it rains
  --help       this text

Examples:
  # in summer
  bun run mow --dry

Ends with 1 in winter.`);
});

for (const [args, told] of [
  [["--seeds"], "option '--seeds <value>' argument missing"],
  [["--json=1"], "option '--json' does not take an argument"],
  [["lawn"], "it takes options only, not 'lawn'"],
] as const) {
  test(`sim ${args.join(" ")}: said in one line`, async () => {
    const said = [`sim: ${told}; bun run sim --help says what there is`];
    expect(await run("scripts/sim.ts", ...args)).toEqual({ code: 2, out: "", told: said });
  });
}
