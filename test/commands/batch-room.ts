/** A folder of inputs and the configuration of a batch job over them, as the command line would give it. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { localFiles } from "../../src/adapters/files/locate.ts";
import { type BatchConfig, type BatchOptions, batchConfig } from "../../src/commands/batch-config.ts";
import { type BatchPlan, planBatch } from "../../src/commands/batch-plan.ts";

export const DEFAULTS: BatchOptions = {
  to: "out",
  name: "batch",
  create: false,
  dryRun: false,
  printSchema: false,
  json: false,
  logLevel: "info",
};

export class BatchRoom {
  readonly path: string = mkdtempSync(join(tmpdir(), "twg-plan-"));

  put(name: string, content: string | Uint8Array): string {
    const path = join(this.path, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  }

  config(inputs: readonly string[], options: Partial<BatchOptions> = {}): Promise<BatchConfig> {
    return batchConfig(inputs, { ...DEFAULTS, ...options }, {});
  }

  async plan(inputs: readonly string[], options: Partial<BatchOptions> = {}): Promise<BatchPlan> {
    return planBatch(await this.config(inputs, options), inputs.flatMap(localFiles));
  }

  end(): void {
    rmSync(this.path, { recursive: true });
  }
}
