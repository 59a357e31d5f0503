/** The files of deploy/ are what their systems accept: systemd's own verdict on the unit, YAML that parses. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Check, output, readText, repositoryFiles } from "./check.ts";

/** systemd's exposure level, 0 to 10; below 2 it says OK. */
const MAX_EXPOSURE = 2;

export const deploy: Check = {
  name: "deployment files",
  async run(repo) {
    const files = (await repositoryFiles(repo)).filter((f) => f.startsWith("deploy/"));
    const problems: string[] = [];
    const notes: string[] = [];
    for (const file of files) {
      const text = await readText(repo, file);
      if (/\.ya?ml$/.test(file)) problems.push(...yamlProblems(file, text));
      else if (!file.endsWith(".service")) continue;
      else if (Bun.which("systemd-analyze") === null)
        notes.push(`${file}: no systemd-analyze here, so it was not verified`);
      else problems.push(...(await unitProblems(file, text)));
    }
    return { problems, notes };
  },
};

function yamlProblems(file: string, text: string): string[] {
  try {
    Bun.YAML.parse(text);
    return [];
  } catch (e) {
    return [`${file}: ${e instanceof Error ? e.message : String(e)}`];
  }
}

export async function unitProblems(file: string, text: string): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "twg-unit-"));
  try {
    // systemd looks whether the program exists; twg is not installed where it is built.
    const unit = join(folder, "twg.service");
    writeFileSync(unit, text.replaceAll("/usr/local/bin/twg", "/bin/true"));
    const verified = await output(["systemd-analyze", "verify", "--man=no", unit], folder);
    const said = `${verified.stdout}${verified.stderr}`.split("\n").filter((l) => l.includes("twg.service"));
    const security = await output(
      ["systemd-analyze", "security", "--offline=true", "--no-pager", unit],
      folder,
    );
    const exposure = /exposure level for \S+: ([\d.]+)/.exec(security.stdout)?.[1];
    if (exposure === undefined) said.push("systemd-analyze security gave no level");
    else if (Number(exposure) > MAX_EXPOSURE)
      said.push(`exposure level ${exposure}, at most ${MAX_EXPOSURE}`);
    return said.map((l) => `${file}: ${l}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
