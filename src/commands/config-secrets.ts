/** `twg config secrets`: which secrets a configuration uses and whether a backend has them. Never a value. */
import type { RefStatus } from "../core/config/resolve.ts";
import { type Cli, outJson } from "./cli.ts";
import { askSecrets, loadConfig } from "./config-file.ts";
import type { Style } from "./style.ts";
import { renderTable } from "./table.ts";

const STYLE_OF: Readonly<Record<RefStatus["state"], Style>> = {
  present: "green",
  missing: "red",
  empty: "yellow",
  unreadable: "red",
};

/** Exit 2 if any is not present. */
export async function runConfigSecrets(
  options: { config: string; json: boolean },
  cli: Cli,
): Promise<number> {
  const config = await loadConfig(options.config);
  const statuses = (await askSecrets(config, cli.environment)).map((a) => a.status);
  const ok = statuses.every((s) => s.state === "present");
  if (options.json) outJson(cli, { file: options.config, ok, secrets: statuses.map(jsonStatus) });
  else if (statuses.length === 0) cli.out(`${options.config} uses no secrets\n`);
  else cli.out(secretsTable(statuses, cli));
  return ok ? 0 : 2;
}

function jsonStatus(s: RefStatus) {
  return {
    name: s.name,
    backend: s.backend,
    place: s.place,
    path: s.path,
    status: s.state,
    reason: s.reason,
  };
}

function secretsTable(statuses: readonly RefStatus[], cli: Cli): string {
  const columns = [
    { head: "NAME" },
    { head: "BACKEND" },
    { head: "PATH" },
    { head: "STATUS" },
    { head: "PLACE" },
  ];
  const rows = statuses.map((s) => [
    s.name,
    s.backend,
    s.path,
    { text: s.state, style: STYLE_OF[s.state] },
    s.reason === "" ? s.place : `${s.place} ${s.reason}`,
  ]);
  return renderTable(columns, rows, cli.outColour);
}
