// Goal: the reference page names every metric as it is. Method: the page made anew from the declarations.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { metricsReference, REFERENCE_FILE } from "./metrics-reference.ts";

test("docs/reference/metrics.md is current", () => {
  expect(readFileSync(REFERENCE_FILE, "utf8")).toBe(metricsReference());
});
