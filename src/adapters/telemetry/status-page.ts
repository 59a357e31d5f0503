/**
 * The status page: one HTML document made on the server, without a script, a font or an image from anywhere. It
 * reloads itself; its content security policy allows nothing but its own style.
 */
import type { HealthNode, HealthReport } from "../../core/observe/health.ts";
import { formatBytes, formatCount, formatDuration } from "../../core/observe/quantities.ts";
import type { Stats } from "./stats.ts";

const REFRESH_S = 5;
/** Partitions shown, those with the most lag first: a page for people, `/stats` has them all. */
export const MAX_ROWS = 500;

const STYLE = `body{font:14px/1.5 system-ui,sans-serif;margin:2rem;color:#222;background:#fff}
table{border-collapse:collapse;margin:.5rem 0 1.5rem}td,th{padding:.2rem .8rem;border-bottom:1px solid #ddd;text-align:left}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.ok{color:#176f2c}.degraded{color:#8a5a00}.failed{color:#b3261e}
.has{fill:#7fb58a}.gap{fill:#d32f2f}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}td,th{border-color:#333}.ok{color:#5fce7a}.degraded{color:#e0b04c}.failed{color:#ff7b72}}`;

export const PAGE_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (c) => ESCAPES[c] ?? c);
}

/** A cell; numbers stand on the right. Text is escaped here and nowhere else. */
function cell(value: string | number, tag: "td" | "th" = "td", right = typeof value === "number"): string {
  return `<${tag}${right ? ' class="n"' : ""}>${escapeHtml(String(value))}</${tag}>`;
}

function table(head: readonly (readonly [string, boolean])[], rows: readonly string[]): string {
  const top = head.map(([name, right]) => cell(name, "th", right)).join("");
  return `<table><thead><tr>${top}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
}

function healthRow(name: string, n: HealthNode): string {
  const state = `<td class="${n.state}">${n.state}</td>`;
  return `<tr>${cell(name)}${state}${cell(n.reason ?? "")}${cell(n.detail ?? "")}${cell(n.since)}</tr>`;
}

function healthTable(h: HealthReport): string {
  const rows = Object.entries(h.parts).flatMap(([part, n]) => [
    healthRow(part, n),
    ...Object.entries(n.children ?? {}).map(([child, c]) => healthRow(`${part} / ${child}`, c)),
  ]);
  return table(
    [
      ["part", false],
      ["state", false],
      ["reason", false],
      ["detail", false],
      ["since", false],
    ],
    rows,
  );
}

function partitionTable(stats: Stats): string {
  const shown = [...stats.partitions].sort((a, b) => (b.lag ?? -1) - (a.lag ?? -1)).slice(0, MAX_ROWS);
  const rows = shown.map((p) => {
    const cells = [
      cell(p.topic),
      cell(p.partition),
      cell(p.lane),
      cell(p.position, "td", true),
      cell(p.acknowledged, "td", true),
      cell(p.end ?? "?", "td", true),
      cell(p.lag === null ? "?" : formatCount(p.lag), "td", true),
      cell(formatCount(Math.round(p.records_per_second)), "td", true),
    ];
    return `<tr>${cells.join("")}</tr>`;
  });
  const left = stats.partitions.length - shown.length;
  const head = ["position", "acknowledged", "end", "lag", "rec/s"].map((n) => [n, true] as const);
  const more = left > 0 ? `<p>${left} partitions with less lag are not shown; /stats has them all.</p>` : "";
  return table([["topic", false], ["partition", true], ["lane", true], ...head], rows) + more;
}

function sinkTable(stats: Stats): string {
  const rows = stats.sinks.map((s) => {
    const cells = [
      formatCount(s.rows),
      formatBytes(s.bytes),
      formatCount(s.files),
      formatCount(Math.round(s.rows_per_second)),
    ];
    return `<tr>${cell(s.sink)}${cells.map((c) => cell(c, "td", true)).join("")}</tr>`;
  });
  return table(
    [
      ["sink", false],
      ["rows", true],
      ["bytes", true],
      ["files", true],
      ["rows/s", true],
    ],
    rows,
  );
}

/** A strip for each partition in which a sink lacks something: what the primary sink has from left to right, gaps in red. */
function gapStrips(stats: Stats): string {
  const lacking = stats.sinks.filter((s) => (s.lacks?.gaps ?? 0) > 0);
  if (lacking.length === 0) return "";
  const rows = lacking.flatMap(({ sink, lacks }) =>
    (lacks?.parts ?? []).map((p) => {
      const place = `${cell(sink)}${cell(p.topic)}${cell(p.partition)}`;
      const missing = p.missing.reduce((n, r) => n + BigInt(r.next) - BigInt(r.from), 0n);
      return `<tr>${place}<td>${strip(p)}</td>${cell(String(missing), "td", true)}</tr>`;
    }),
  );
  const facts = lacking.map((s) => {
    const age = s.lacks?.oldest_ms ?? null;
    return `${s.sink} lacks ${s.lacks?.positions} positions in ${s.lacks?.gaps} ranges${age === null ? "" : `, the oldest for ${formatDuration(age)}`}`;
  });
  const head = [
    ["sink", false],
    ["topic", false],
    ["partition", true],
    ["covered, gaps in red", false],
    ["missing", true],
  ] as const;
  return `<h2>Gaps</h2><p>${facts.map(escapeHtml).join("<br>")}</p>${table(head, rows)}`;
}

type Strip = NonNullable<Stats["sinks"][number]["lacks"]>["parts"][number];

function strip({ from, next, missing }: Strip): string {
  const [begin, end] = [BigInt(from), BigInt(next)];
  const whole = end > begin ? end - begin : 1n;
  /** In thousandths of the strip. */
  const at = (position: string) => Number(((BigInt(position) - begin) * 1000n) / whole);
  const bars = missing.map((r) => {
    const x = at(r.from);
    // What is too short to be seen is shown all the same.
    return `<rect class="gap" x="${x}" width="${Math.max(3, at(r.next) - x)}" height="10"/>`;
  });
  const label = escapeHtml(`positions ${from} to ${next}`);
  return `<svg width="300" height="10" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label="${label}"><rect class="has" width="1000" height="10"/>${bars.join("")}</svg>`;
}

/** What recovery does, who fills which windows, and from where on streams are live ingest's own. */
function recoverySection({ recovery }: Stats): string {
  if (recovery === undefined) return "";
  const facts = [
    recovery.state,
    `${recovery.behind} positions behind, ${recovery.free} of them free`,
    `${formatCount(recovery.records)} records read again`,
    `${formatCount(Math.round(recovery.records_per_second))} rec/s, ${formatBytes(recovery.bytes_per_second)}/s of raw files`,
    `${formatCount(recovery.windows)} windows done`,
  ];
  const rows = recovery.leases.slice(0, MAX_ROWS).map((l) => {
    const range = l.next === null ? `from ${l.from}` : `${l.from} to ${l.next}`;
    const silent = l.silent_ms === null ? "?" : formatDuration(l.silent_ms);
    const cells = [cell(l.sink), cell(l.kind), cell(l.topic), cell(l.partition), cell(range), cell(l.holder)];
    return `<tr>${cells.join("")}${cell(silent, "td", true)}</tr>`;
  });
  const head = ["sink", "lease", "topic", "partition", "positions", "holder", "silent for"].map(
    (name) => [name, name === "partition" || name === "silent for"] as const,
  );
  const leases = rows.length === 0 ? "" : table(head, rows);
  return `<h2>Recovery</h2><p>${facts.map(escapeHtml).join(" &middot; ")}</p>${leases}`;
}

export function statusPage(stats: Stats): string {
  const rate = `${formatCount(Math.round(stats.records_per_second))} rec/s, ${formatBytes(stats.bytes_per_second)}/s`;
  const lag = stats.lag === null ? "?" : formatCount(stats.lag);
  const facts = [
    `up ${formatDuration(stats.uptime_ms)}`,
    `${formatCount(stats.records)} records`,
    rate,
    `lag ${lag}`,
    `${formatBytes(stats.bytes_in_flight)} in flight${stats.budget_bytes === null ? "" : ` of ${formatBytes(stats.budget_bytes)}`}`,
    `${formatBytes(stats.resident_bytes)} resident`,
  ];
  const title = escapeHtml(`twg ${stats.pipeline}`);
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="${REFRESH_S}">
<meta name="viewport" content="width=device-width"><title>${title}</title><style>${STYLE}</style></head><body>
<h1>${title} <small class="${stats.health.state}">${stats.health.state}</small></h1>
<p>${facts.map(escapeHtml).join(" &middot; ")} &middot; version ${escapeHtml(stats.version)}</p>
<h2>Health</h2>${healthTable(stats.health)}<h2>Partitions</h2>${partitionTable(stats)}<h2>Sinks</h2>${sinkTable(stats)}${recoverySection(stats)}${gapStrips(stats)}
</body></html>
`;
}
