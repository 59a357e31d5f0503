// Goal: completion scripts offer what the command line has. Method: bash's is run by bash itself; the others are compared with the tree.
import { describe, expect, test } from "bun:test";
import { completionScript } from "../../src/commands/completions.ts";
import { buildProgram, runCli } from "../../src/commands/program.ts";
import { fakeCli, fileWith } from "./fake-cli.ts";

const script = (shell: "bash" | "zsh" | "fish") => completionScript(shell, buildProgram(fakeCli()));

function completed(...words: string[]): string[] {
  const program = `${script("bash")}
COMP_WORDS=(${["twg", ...words].map((w) => `'${w}'`).join(" ")}); COMP_CWORD=${words.length}; _twg; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const done = Bun.spawnSync(["bash", "-c", program]);
  expect(done.stderr.toString()).toBe("");
  return done.stdout.toString().trim().split("\n");
}

describe("bash", () => {
  test.each([
    [
      [""],
      [
        "stream",
        "batch",
        "recover",
        "config",
        "doctor",
        "health",
        "inspect",
        "completions",
        "--version",
        "-V",
        "--help",
        "-h",
      ],
    ],
    [["st"], ["stream"]],
    [
      ["config", ""],
      ["validate", "explain", "secrets", "schema", "init", "--help", "-h"],
    ],
    [["config", "ini"], ["init"]],
    [["stream", "--a"], ["--accept-gap"]],
    [
      ["stream", "-c", "orders.toml", "--log-format", ""],
      ["json", "text"],
    ],
    [
      ["completions", ""],
      ["bash", "zsh", "fish", "--help", "-h"],
    ],
    [["config", "init", "--so"], ["--source"]],
  ] as const)("%j", (words, expected) => {
    expect(completed(...words)).toEqual([...expected]);
  });

  test("files after -c", () => {
    const path = fileWith("", "pipe.toml");
    expect(completed("stream", "-c", path.slice(0, -3))).toEqual([path]);
  });
});

test("the command prints the script", async () => {
  const cli = fakeCli();
  expect(await runCli(["completions", "zsh"], cli)).toBe(0);
  expect(cli.stdout()).toBe(script("zsh"));
});

test("zsh and fish know every command and its options", () => {
  const zsh = script("zsh");
  expect(zsh).toStartWith("#compdef twg\n");
  expect(zsh).toContain('"config init") compadd -- --source --sink --help -h ;;');
  const fish = script("fish");
  expect(fish).toContain("complete -c twg -f -n '__twg_at config' -a validate -d ");
  expect(fish).toContain("complete -c twg -n '__twg_in stream' -l log-format -x -a 'json text' -d ");
  // A quote in a description would end the word that holds it: what is left after taking escapes off must be in pairs.
  for (const line of fish.split("\n")) expect(line.replaceAll("\\'", "").split("'").length % 2).toBe(1);
});
