/** Damaged record batches through the header scan of the control thread: bounds that hold, or a coded Failure. */
import { scanBatches } from "../../src/adapters/kafka/source-scan.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import { damage, draws, pick } from "./draws.ts";
import { goldenVectors } from "./records-target.ts";
import type { FuzzTarget } from "./target.ts";

let vectors: readonly Uint8Array[] | null = null;

function run(n: number): boolean {
  vectors ??= goldenVectors();
  const draw = draws(n);
  const bytes = damage(pick(draw, vectors), draw);
  try {
    const { end, need } = scanBatches(bytes);
    if (end < 0 || end > bytes.length) throw new Error(`whole batches up to ${end} of ${bytes.length} bytes`);
    if (need !== 0 && end + need <= bytes.length)
      throw new Error(`a cut batch of ${need} bytes that is there`);
    return false;
  } catch (e) {
    if (e instanceof Failure && e.code.startsWith("kafka.")) return true;
    throw e;
  }
}

export const scanTarget: FuzzTarget = { name: "scan", run };
