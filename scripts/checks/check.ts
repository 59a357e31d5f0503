/** What a check is: it looks at the repository in a folder and says what is wrong, one line a problem. */
export interface Findings {
  /** Any of these fails the check. */
  readonly problems: readonly string[];
  /** Worth a line in the summary, no failure. */
  readonly notes?: readonly string[];
}

export interface Check {
  readonly name: string;
  run(repo: string): Promise<Findings>;
}

export interface Output {
  readonly ok: boolean;
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. */
export async function output(argv: readonly string[], cwd: string, stdin?: string): Promise<Output> {
  const input = stdin === undefined ? ("ignore" as const) : Buffer.from(stdin);
  const run = Bun.spawn([...argv], { cwd, stdin: input, stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([
    new Response(run.stdout).text(),
    new Response(run.stderr).text(),
  ]);
  const code = await run.exited;
  return { ok: code === 0, code, stdout, stderr };
}

/** A program that says what is wrong itself: its output becomes the problems. */
export function programCheck(name: string, argv: readonly string[]): Check {
  return {
    name,
    async run(repo) {
      const done = await output(argv, repo);
      const lines = `${done.stdout}\n${done.stderr}`.split("\n").filter((l) => l.trim() !== "");
      return {
        problems: done.ok ? [] : lines.length > 0 ? lines : [`${argv.join(" ")} ended with ${done.code}`],
      };
    },
  };
}

/** Files that git tracks or would track, relative to the repository, sorted. */
export async function repositoryFiles(repo: string): Promise<string[]> {
  const done = await output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], repo);
  if (!done.ok) throw new Error(`git ls-files failed: ${done.stderr}`);
  const names = new Set(done.stdout.split("\0").filter((f) => f !== ""));
  const there = await Promise.all(
    [...names].map(async (f) => ((await Bun.file(`${repo}/${f}`).exists()) ? f : "")),
  );
  return there.filter((f) => f !== "").sort();
}

export async function readText(repo: string, file: string): Promise<string> {
  return await Bun.file(`${repo}/${file}`).text();
}

export async function readJson<T>(repo: string, file: string): Promise<T> {
  return (await Bun.file(`${repo}/${file}`).json()) as T;
}
