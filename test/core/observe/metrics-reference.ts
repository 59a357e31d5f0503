/**
 * The reference page of the metrics, made from their declarations:
 * `bun test/core/observe/metrics-reference.ts` writes it, the test beside this file checks that it is current.
 */
import { writeFileSync } from "node:fs";
import { declareMeters } from "../../../src/core/observe/metric-catalogue.ts";
import { Registry } from "../../../src/core/observe/metrics.ts";

export const REFERENCE_FILE = new URL("../../../docs/reference/metrics.md", import.meta.url).pathname;

const HEAD = `# Metrics

Served as Prometheus text (format 0.0.4) at \`/metrics\`. Which of them to alert on: [operations](../operations.md).

Names say nothing of the transport. What operators act on may lag and never leads: a sink's records count once they
are durable and covered, lag is measured to the acknowledged position. Positions are 64 bits wide and Prometheus
numbers are doubles: beyond 2^53 the last digits are rounded, \`/stats\` has them in full.

A series appears when it is first touched: no errors of a code, no series of that code.

| metric | type | labels | meaning |
|---|---|---|---|
`;

export function metricsReference(): string {
  const registry = new Registry();
  declareMeters(registry);
  const rows = registry.families().map((f) => {
    const labels = f.labels.map((l) => `\`${l}\``).join(", ");
    return `| \`${f.name}\` | ${f.type} | ${labels} | ${f.help.replaceAll("|", "\\|")} |\n`;
  });
  return HEAD + rows.join("");
}

if (import.meta.main) writeFileSync(REFERENCE_FILE, metricsReference());
