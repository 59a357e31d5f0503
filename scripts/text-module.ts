/** Compiles wasm/text.ts (AssemblyScript) into the module that src/core/codecs holds as base64. */
import { join } from "node:path";
import { main } from "assemblyscript/asc";

const FLAGS = ["-O3", "--noAssert", "--runtime", "stub", "--importMemory", "--enable", "simd"];

/** The source file that holds the module. */
export async function textModule(): Promise<string> {
  let binary: Uint8Array | null = null;
  const source = join(import.meta.dir, "..", "wasm");
  const { error, stderr } = await main(["text.ts", "--baseDir", source, "--outFile", "text.wasm", ...FLAGS], {
    writeFile(name: string, content: Uint8Array | string) {
      if (name === "text.wasm" && typeof content !== "string") binary = content;
    },
  });
  if (error !== null || binary === null) throw new Error(`wasm/text.ts: ${error?.message}\n${stderr}`);
  const lines = Buffer.from(binary)
    .toString("base64")
    .match(/.{1,100}/g)!
    .map((line) => `  "${line}",`);
  return `/** Compiled from wasm/text.ts by scripts/generate.ts. Do not edit. */\nexport const TEXT_MODULE: string = [\n${lines.join("\n")}\n].join("");\n`;
}
