/**
 * The files of deploy/ are what their systems accept: systemd's own verdict on the unit, YAML that parses; and the image
 * is what its users are told: nobody's root, no shell, a health check by twg, this version.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Check, output, readJson, readText, repositoryFiles } from "./check.ts";

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
    if ((await repositoryFiles(repo)).includes(DOCKERFILE)) {
      const image = await checkImage(repo);
      problems.push(...image.problems.map((p) => `${DOCKERFILE}: ${p}`));
      notes.push(...image.notes);
    }
    return { problems, notes };
  },
};

const DOCKERFILE = "Dockerfile.distroless";

/** test/machines puts it there. */
function hadolintOf(repo: string): string | null {
  const ours = join(repo, ".cache/hadolint/bin/hadolint");
  return existsSync(ours) ? ours : Bun.which("hadolint");
}

async function checkImage(repo: string): Promise<{ problems: string[]; notes: string[] }> {
  const { version } = await readJson<{ version: string }>(repo, "package.json");
  const problems = imageProblems(await readText(repo, DOCKERFILE), version);
  const hadolint = hadolintOf(repo);
  if (hadolint === null)
    return { problems, notes: [`${DOCKERFILE}: no hadolint here, so only our own rules were applied`] };
  const linted = await output([hadolint, "--no-color", join(repo, DOCKERFILE)], repo);
  return { problems: [...problems, ...linted.stdout.split("\n").filter((l) => l.trim() !== "")], notes: [] };
}

/** What an image without a shell must say of itself, in the stage that is shipped. */
export function imageProblems(text: string, version: string): string[] {
  const lines = text.replaceAll(/\\\n\s*/g, " ").split("\n");
  const start = lines.findLastIndex((l) => /^FROM\s/.test(l));
  const stage = lines.slice(start);
  const all = (name: string) =>
    stage.filter((l) => l.startsWith(`${name} `)).map((l) => l.slice(name.length + 1).trim());
  const problems: string[] = [];
  const expect = (holds: boolean, problem: string) => {
    if (!holds) problems.push(problem);
  };
  expect(/^FROM scratch$/.test(stage[0] ?? ""), "the shipped stage is not FROM scratch");
  expect(/^[1-9]\d*(:[1-9]\d*)?$/.test(all("USER").at(-1) ?? ""), "USER is no number above 0");
  expect(all("RUN").length === 0, "RUN needs a shell, which the image lacks");
  for (const name of ["ENTRYPOINT", "CMD"] as const)
    expect(all(name).at(-1)?.startsWith("[") ?? false, `${name} is not a JSON list: it would need a shell`);
  const check = all("HEALTHCHECK").at(-1) ?? "";
  expect(/CMD \["\/usr\/local\/bin\/twg", "health",/.test(check), "HEALTHCHECK does not ask by twg health");
  expect(
    all("LABEL").some((l) => l.includes(`org.opencontainers.image.version="${version}"`)),
    `no label says version ${version}`,
  );
  return problems;
}

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
