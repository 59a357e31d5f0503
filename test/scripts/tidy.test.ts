/**
 * Goal: what a helper wants tidied is tidied behind every test of every file that uses it, failed ones too, and in the end
 * once. Method: two small test files and a helper in a folder of their own, run as all tests are.
 */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const REPO = resolve(import.meta.dir, "../..");

test("behind every test of every file, and once at the end", async () => {
  const folder = mkdtempSync(join(tmpdir(), "twg-tidy-"));
  const tidy = join(REPO, "test/tidy.ts");
  writeFileSync(
    join(folder, "helper.ts"),
    `import { tidyAfterTests, tidyAtEnd } from "${tidy}";
     tidyAfterTests(() => console.log("tidied"));
     tidyAtEnd(() => console.log("the end"));`,
  );
  for (const name of ["a", "b"])
    writeFileSync(
      join(folder, `${name}.test.ts`),
      `import { test } from "bun:test"; import "./helper.ts";
       test("good", () => console.log("good ${name}"));
       test("bad", () => { console.log("bad ${name}"); throw new Error("on purpose"); });`,
    );
  const files = ["a", "b"].map((name) => join(folder, `${name}.test.ts`));
  const child = Bun.spawn([process.execPath, "test", ...files], {
    cwd: REPO,
    stdout: "pipe",
    stderr: "ignore",
  });
  const said = (await new Response(child.stdout).text()).trim().split("\n").slice(1);
  rmSync(folder, { recursive: true });
  const each = (name: string) => [`good ${name}`, "tidied", `bad ${name}`, "tidied"];
  expect(said).toEqual([...each("a"), ...each("b"), "the end"]);
});
