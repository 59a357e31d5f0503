// Goal: the command line answers every call with the right stream and exit code. Method: run it in process with kept output.
import { describe, expect, test } from "bun:test";
import type { Command } from "commander";
import pkg from "../../package.json";
import type { StreamOptions } from "../../src/commands/cli.ts";
import { buildProgram, runCli } from "../../src/commands/program.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import { fakeCli } from "./fake-cli.ts";

async function run(...argv: string[]) {
  const cli = fakeCli();
  const code = await runCli(argv, cli);
  return { code, out: cli.stdout(), err: cli.stderr() };
}

test("--version prints the version of package.json and nothing else", async () => {
  expect(await run("--version")).toEqual({ code: 0, out: `${pkg.version}\n`, err: "" });
  expect((await run("-V")).out).toBe(`${pkg.version}\n`);
});

function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(commandsOf)];
}

const leaves = commandsOf(buildProgram(fakeCli())).filter((c) => c.commands.length === 0);

test.each(leaves.map((c) => [pathOf(c), c] as const))(
  "`twg %s --help` shows an example and exits 0",
  async (path) => {
    const { code, out, err } = await run(...path.split(" "), "--help");
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/Examples?:\n {2}(?:\S+=\S+ )?(?:source <\()?twg /);
    expect(out).toContain(`Usage: twg ${path}`);
  },
);

function pathOf(command: Command): string {
  const parent = command.parent;
  return parent === null || parent.parent === null ? command.name() : `${pathOf(parent)} ${command.name()}`;
}

test("help of the whole names exit codes and every command", async () => {
  const { code, out } = await run("--help");
  expect(code).toBe(0);
  for (const name of [
    "stream",
    "batch",
    "config",
    "doctor",
    "health",
    "inspect",
    "completions",
    "Exit codes: 0",
  ])
    expect(out).toContain(name);
  expect((await run("help", "stream")).out).toContain("--accept-gap");
});

describe("a wrong command line exits 2 with a coded line on stderr and nothing on stdout", () => {
  test.each([
    [["--nonsense"], "unknown option '--nonsense'"],
    [["strem"], "unknown command 'strem'"],
    [["stream"], "required option '-c, --config <file>'"],
    [["stream", "-c"], "argument missing"],
    [["stream", "-c", "x", "--acept-gap"], "Did you mean --accept-gap?"],
    [["stream", "-c", "x", "--log-format", "xml"], "Allowed choices are json, text"],
    [["stream", "-c", "x", "more"], "too many arguments"],
    [["config", "valdate"], "unknown command 'valdate'"],
    [["inspect", "parquet"], "missing required argument 'path'"],
    [["inspect", "parquet", "x", "--rows", "-1"], "--rows takes a whole number"],
    [["inspect", "parquet", "x", "--rows", "1e9"], "--rows takes a whole number"],
    [["completions", "tcsh"], "Allowed choices are bash, zsh, fish"],
    [["config", "init", "--sink", "parket"], "Did you mean parquet?"],
    [["config", "init", "--source", "pulsar"], 'no source is named "pulsar"'],
  ] as const)("%j", async (argv, message) => {
    const { code, out, err } = await run(...argv);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(message);
    expect(err).toContain("error: cli.usage: ");
  });

  test.each([[[]], [["config"]], [["inspect"]]])("%j alone shows help on stderr", async (argv) => {
    const { code, out, err } = await run(...(argv as string[]));
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain("Usage: twg");
  });
});

describe("stream", () => {
  async function streamed(...argv: string[]) {
    const seen: StreamOptions[] = [];
    const cli = fakeCli();
    const code = await runCli(["stream", ...argv], cli, {
      stream: async (options) => {
        seen.push({ ...options });
        return 3;
      },
    });
    return { code, seen };
  }

  test("gets its options and decides the exit code", async () => {
    const { code, seen } = await streamed(
      "-c",
      "a.toml",
      "--accept-gap",
      "--log-format",
      "json",
      "--log-level",
      "debug",
      "--until-caught-up",
    );
    expect(code).toBe(3);
    expect(seen).toEqual([
      { config: "a.toml", acceptGap: true, logFormat: "json", logLevel: "debug", untilCaughtUp: true },
    ]);
  });

  test("accepts no gap and logs text from info on unless told otherwise", async () => {
    expect((await streamed("--config=a.toml")).seen).toEqual([
      { config: "a.toml", acceptGap: false, logFormat: "text", logLevel: "info", untilCaughtUp: false },
    ]);
  });

  test.each([
    ["config.type", 2],
    ["cli.usage", 2],
    ["inspect.unreadable", 3],
    ["internal.stalled", 1],
  ] as const)("a failure %s exits %d and prints its line", async (failure, expected) => {
    const cli = fakeCli();
    const code = await runCli(["stream", "-c", "x"], cli, {
      stream: () =>
        Promise.reject(new Failure(failure, "went\nwrong\u001b[31m", { at: "here", hint: "Try" })),
    });
    expect(code).toBe(expected);
    expect(cli.stderr()).toBe(`error: ${failure}: went\\nwrong\\u001b[31m (at here). Try\n`);
  });

  test("an exception that is no failure is a bug of ours, told with its stack, exit 1", async () => {
    const cli = fakeCli();
    const code = await runCli(["stream", "-c", "x"], cli, {
      stream: () => Promise.reject(new TypeError("oops")),
    });
    expect(code).toBe(1);
    expect(cli.stderr()).toMatch(/^error: internal\.bug: oops\n[\s\S]*program\.test\.ts/);
  });
});

test("batch wants inputs and a place, or a file of its own", async () => {
  for (const args of [["batch"], ["batch", "a.csv"], ["batch", "a.csv", "-c", "x.toml"]]) {
    const { code, out, err } = await run(...args);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain("cli.usage");
  }
});
