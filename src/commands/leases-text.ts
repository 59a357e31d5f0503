/** Who is at work in a sink, and on what: for people. */
import { formatDuration } from "../core/observe/quantities.ts";
import type { CoverageSummary, HolderSummary } from "./coverage-summary.ts";
import { printable } from "./style.ts";

/** Shown of each kind: a topic of a thousand partitions has as many heads. */
const MOST = 20;

/** "" where nobody is there. `now`: wall time, ms. */
export function leasesText({ holders, leases }: CoverageSummary, now: number): string {
  if (holders.length === 0) return "";
  const lines = holders.flatMap((h) => {
    const mine = leases.filter((l) => l.holder === h.instance);
    const windows = mine.flatMap((l) => (l.next === null ? [] : [`${placeOf(l)} [${l.from}, ${l.next})`]));
    const heads = mine.flatMap((l) => (l.next === null ? [`${placeOf(l)} from ${l.from}`] : []));
    return [
      `  ${holderText(h, now)}`,
      ...(windows.length === 0 ? [] : [`    leases ${listed(windows)}`]),
      ...(heads.length === 0 ? [] : [`    keeps to itself ${listed(heads)}`]),
    ];
  });
  return `open in\n${lines.map(printable).join("\n")}\n`;
}

const placeOf = (l: CoverageSummary["leases"][number]): string =>
  l.incarnation === 0
    ? `${l.topic}/${l.partition}`
    : `${l.topic}/${l.partition} (incarnation ${l.incarnation})`;

function holderText(
  { instance, role, hostname, pid, life, since, beat }: HolderSummary,
  now: number,
): string {
  const runs = { alive: "running", dead: "gone", unknown: "of another machine" }[life];
  return `${instance} (${role}): pid ${pid} on ${hostname}, ${runs}, for ${formatDuration(Math.max(0, now - since))}, ${beat} writes`;
}

function listed(texts: readonly string[]): string {
  const more = texts.length - MOST;
  return `${texts.slice(0, MOST).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
