/** A target that must be caught: it fails in three ways at known cases. Proves that the fuzzer can see. */
import type { FuzzTarget } from "./target.ts";

/** Every thousandth case: throws, kills its process, or never ends. */
const THROWS = 100;
const DIES = 400;
const HANGS = 700;

function run(n: number): boolean {
  const place = ((n % 1000) + 1000) % 1000;
  if (place === THROWS) throw new Error("canary: a failure that is not allowed");
  if (place === DIES) process.kill(process.pid, "SIGSEGV");
  while (place === HANGS);
  return place % 2 === 0;
}

export const canaryTarget: FuzzTarget = { name: "canary", run };
