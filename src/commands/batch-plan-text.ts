/** The plan of a batch job for people: what would be read, as what, and where it would land. */
import { formatBytes } from "../core/observe/quantities.ts";
import type { FileWork } from "../core/ports/batch-lane.ts";
import { schemaDocument } from "../core/types/schema-file.ts";
import type { BatchConfig } from "./batch-config.ts";
import { lanesOfBatch } from "./batch-parts.ts";
import type { BatchPlan } from "./batch-plan.ts";
import { printable } from "./style.ts";
import { renderTable } from "./table.ts";

const SHOWN_FILES = 50;

export function planText(config: BatchConfig, plan: BatchPlan): string {
  const { source, sink } = config;
  const rows = plan.works.slice(0, SHOWN_FILES).map((w) => [w.name, formatBytes(w.bytes), howRead(w)]);
  const more = plan.works.length - rows.length;
  const total = plan.works.reduce((n, w) => n + w.bytes, 0);
  return [
    renderTable([{ head: "file" }, { head: "size", align: "right" }, { head: "read as" }], rows, false),
    more > 0 ? `... and ${more} more\n` : "",
    `${plan.works.length} files, ${formatBytes(total)}\n`,
    `\nschema (${plan.schemaFrom}):\n${schemaDocument(plan.schema)}`,
    `\nlands in ${placeText(sink)}, `,
    `${lanesOfBatch(config)} lanes; metadata columns: ${source.metadata}\n`,
    `at most ${source.max_rejects} rows may be refused; they would go to ${rejectsPlace(sink)}\n`,
    "nothing was read beyond the begin of the files, and nothing was written\n",
  ].join("");
}

/** Where it lands; nothing of a database's url, which may hold a password. */
function placeText(sink: BatchConfig["sink"]): string {
  if (sink.type === "parquet")
    return `${printable(sink.path)} as Parquet, ${sink.compression}, files of about ${formatBytes(sink.roll_bytes)}`;
  const how =
    sink.mode === "append"
      ? "every row added"
      : `the latest row of each ${(sink.key ?? []).map(printable).join(", ")}`;
  return `the table ${printable(sink.table)} of a database, ${how}, transactions of about ${formatBytes(sink.commit_bytes)}`;
}

export function rejectsPlace(sink: BatchConfig["sink"]): string {
  if (sink.type === "parquet") return "_rejects there";
  return `the table ${printable(sink.rejects ?? `${sink.state_schema}.reject`)}`;
}

function howRead({ layout, compression, encoding }: FileWork): string {
  const parts = [layoutText(layout)];
  if (compression !== "none") parts.push(compression);
  if (encoding !== "utf-8") parts.push(encoding);
  return parts.join(", ");
}

function layoutText(layout: FileWork["layout"]): string {
  if (layout.format === "parquet") {
    const { length } = layout.groups;
    return `parquet, ${length} row ${length === 1 ? "group" : "groups"}`;
  }
  if (layout.format === "avro") return layout.codec === "null" ? "avro" : `avro, ${layout.codec} blocks`;
  if (layout.format !== "csv")
    return layout.format === "ndjson" && layout.array ? "json array" : layout.format;
  const mark = JSON.stringify(String.fromCharCode(layout.dialect.delimiter));
  const { length } = layout.columns;
  return `csv, delimiter ${mark}, ${length} ${length === 1 ? "column" : "columns"}, ${layout.header ? "header" : "no header"}`;
}
