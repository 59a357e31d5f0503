// Goal: what is generated and checked in is current. Method: generate again and compare, byte for byte.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { generatedFiles } from "../../scripts/reference-pages.ts";

const root = join(import.meta.dir, "../..");

test.each([...generatedFiles()])("%s is current (else run `bun scripts/generate.ts`)", (path, text) => {
  expect(readFileSync(join(root, path), "utf8")).toBe(text);
});
