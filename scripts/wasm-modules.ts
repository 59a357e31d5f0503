/** Compiles wasm/*.ts (AssemblyScript) into the modules that src/core/codecs holds as base64. */
import { join } from "node:path";
import { main } from "assemblyscript/asc";

const FLAGS = ["-O3", "--noAssert", "--runtime", "stub", "--importMemory", "--enable", "simd"];

interface Module {
  readonly source: string;
  readonly file: string;
  readonly name: string;
}

const MODULES: readonly Module[] = [
  { source: "text.ts", file: "src/core/codecs/text-module.ts", name: "TEXT_MODULE" },
  { source: "records.ts", file: "src/core/codecs/json/record-module.ts", name: "RECORD_MODULE" },
];

/** The source files that hold the modules, by path. */
export async function wasmModules(): Promise<readonly (readonly [string, string])[]> {
  const files: (readonly [string, string])[] = [];
  for (const { source, file, name } of MODULES) {
    const lines = (await compiled(source)).match(/.{1,100}/g)!.map((line) => `  "${line}",`);
    files.push([
      file,
      `/** Compiled from wasm/${source} by scripts/generate.ts. Do not edit. */\nexport const ${name}: string = [\n${lines.join("\n")}\n].join("");\n`,
    ]);
  }
  return files;
}

/** As base64. */
async function compiled(file: string): Promise<string> {
  let binary: Uint8Array | null = null;
  const folder = join(import.meta.dir, "..", "wasm");
  const { error, stderr } = await main([file, "--baseDir", folder, "--outFile", "module.wasm", ...FLAGS], {
    writeFile(name: string, content: Uint8Array | string) {
      if (name === "module.wasm" && typeof content !== "string") binary = content;
    },
  });
  if (error !== null || binary === null) throw new Error(`wasm/${file}: ${error?.message}\n${stderr}`);
  return Buffer.from(binary).toString("base64");
}
