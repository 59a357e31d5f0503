/** Shell scripts parse, and shellcheck has nothing to say where it is installed. */
import { type Check, output, readText, repositoryFiles } from "./check.ts";

export const shell: Check = {
  name: "shell scripts",
  async run(repo) {
    const scripts: string[] = [];
    for (const f of await repositoryFiles(repo)) {
      const named = f.endsWith(".sh");
      const extensionless = /^(\.ci|\.githooks)\//.test(f);
      if (named || (extensionless && (await readText(repo, f)).startsWith("#!/usr/bin/env bash")))
        scripts.push(f);
    }
    const problems: string[] = [];
    for (const f of scripts) {
      const parsed = await output(["bash", "-n", f], repo);
      if (!parsed.ok) problems.push(parsed.stderr.trim());
    }
    if (Bun.which("shellcheck") === null)
      return { problems, notes: ["shellcheck is not installed: scripts were only parsed"] };
    // SC2317 takes functions that a trap calls for unreachable.
    const done = await output(
      ["shellcheck", "--external-sources", "--format=gcc", "--exclude=SC2317", ...scripts],
      repo,
    );
    if (!done.ok)
      problems.push(
        ...done.stdout.trim().split("\n"),
        ...(done.stderr.trim() === "" ? [] : [done.stderr.trim()]),
      );
    return { problems };
  },
};
