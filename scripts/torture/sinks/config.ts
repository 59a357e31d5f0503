/** The configuration of each process of a run with several sinks. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Protocol } from "../group-member.ts";
import type { Place } from "./place.ts";

export interface SinksConfig {
  readonly folder: string;
  readonly topic: string;
  readonly protocol: Protocol;
  readonly sessionMs: number;
  readonly leaseMs: number;
  readonly places: readonly Place[];
  readonly bootstrap: readonly string[];
  /** In place of the brokers where only recovery reads the file. */
  readonly away: string;
}

const COLUMNS = [
  { name: "n", type: "int64" },
  { name: "what", type: "string" },
];

/**
 * `slot`: what its next life finds of it, a folder and, in every other, a name in the group. Members of the others fill gaps
 * as well, and recoveries of the others do so for as long as they run.
 */
export function config(c: SinksConfig, kind: "ingest" | "recovery", slot: number, serial: number): string {
  const role = slot % 2 === 0 ? "ingest" : kind === "ingest" ? "both" : "recovery";
  const decodes = c.places.some((p) => p.section.includes('receives = "decoded"'));
  const schema = join(c.folder, "orders.json");
  if (decodes) writeFileSync(schema, JSON.stringify({ columns: COLUMNS }));
  return `[pipeline]
name = "torture"
role = "${role}"
state_dir = "${join(c.folder, "state", `${kind}-${slot}`)}"
max_bytes = "8MiB"
lanes = ${1 + (serial % 2)}

[source]
type = "kafka"
bootstrap = ${JSON.stringify(kind === "ingest" ? c.bootstrap : [c.away])}
topics = ["${c.topic}"]
group = "g-${c.topic}"
group_protocol = "${c.protocol}"
${kind === "ingest" && slot % 2 === 0 ? `group_instance_id = "i-${slot}"\n` : ""}session_timeout_ms = ${c.sessionMs}
fetch_max_bytes = "256KiB"
partition_max_bytes = "64KiB"
${decodes ? `\n[decode]\nformat = "json"\nschema_file = "${schema}"\n` : ""}
[recovery]
window_bytes = "512KiB"
lease_ms = ${c.leaseMs}
poll_ms = 500
poll_max_ms = 2000

${c.places.map(({ name, section }) => `[[sink]]\nname = "${name}"\n${name === "raw" ? 'role = "primary_raw"\n' : ""}${section}\n`).join("\n")}
[observability]
listen = "off"
`;
}
