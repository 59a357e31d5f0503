/** Prometheus text exposition format 0.0.4: `# HELP`, `# TYPE`, one sample a line, a line feed at the end. */
import type { Family, Sample } from "../../core/observe/metrics.ts";

export const PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** In help text only the backslash and the line feed are escaped. */
function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}

function number(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (value === Infinity) return "+Inf";
  return value === -Infinity ? "-Inf" : String(value);
}

/** Labels of a series never change and are written at every scrape: rendered once. Not for histogram buckets. */
const rendered = new WeakMap<Sample["labels"], string>();

function labelText(labels: Sample["labels"]): string {
  const known = rendered.get(labels);
  if (known !== undefined) return known;
  const text = labels.map(([k, v]) => `${k}="${escapeLabel(v)}"`).join(",");
  const wrapped = text === "" ? "" : `{${text}}`;
  rendered.set(labels, wrapped);
  return wrapped;
}

function sampleLine(name: string, s: Sample): string {
  return `${name}${s.suffix}${labelText(s.labels)} ${number(s.value)}\n`;
}

/** Families without a series are left out: a type line alone says nothing. */
export function prometheusText(families: readonly Family[]): string {
  const parts: string[] = [];
  for (const f of families) {
    const samples = f.samples();
    if (samples.length === 0) continue;
    parts.push(`# HELP ${f.name} ${escapeHelp(f.help)}\n# TYPE ${f.name} ${f.type}\n`);
    for (const s of samples) parts.push(sampleLine(f.name, s));
  }
  return parts.join("");
}
