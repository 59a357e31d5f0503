/** Goal: who enters a sink beside others is known from the source alone. Method: each way to read a topic. */
import { expect, test } from "bun:test";
import type { ResolvedConfig } from "../../src/commands/config-file.ts";
import { isShared } from "../../src/commands/sink-parts.ts";

const source = (s: object) => s as ResolvedConfig["source"];

test("only members of a group share a sink", () => {
  expect(isShared(source({ group_protocol: "classic" }))).toBe(false);
  expect(isShared(source({ group: "g", group_protocol: "none" }))).toBe(false);
  expect(isShared(source({ group: "g", group_protocol: "classic" }))).toBe(true);
  expect(isShared(source({ group: "g", group_protocol: "consumer" }))).toBe(true);
});
