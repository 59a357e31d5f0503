/**
 * Goal: the codec and Values go into a bundle without apache-arrow, or anything else that is not in this folder of
 * sources. Method: bundle them for a browser, and look at every import on the way.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";

test("Avro and Values are bundled from this project's files alone", async () => {
  const src = join(import.meta.dir, "../../../../src/core");
  const imports: string[] = [];
  const built = await Bun.build({
    entrypoints: [
      ...["compile", "encode-value", "encode-columns", "container"].map((n) =>
        join(src, `codecs/avro/${n}.ts`),
      ),
      join(src, "types/value-cells.ts"),
      join(src, "types/value-json.ts"),
    ],
    target: "browser",
    plugins: [
      {
        name: "imports",
        setup(build) {
          build.onResolve({ filter: /.*/ }, ({ path }) => {
            imports.push(path);
            return undefined;
          });
        },
      },
    ],
  });
  expect(built.success).toBe(true);
  expect(imports.length).toBeGreaterThan(20);
  expect(imports.filter((p) => !p.startsWith(".") && !p.startsWith("/"))).toEqual([]);
});
