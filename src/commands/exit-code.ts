/** Exit codes: 0 done, 1 runtime, 2 configuration (the command line included), 3 environment. */
import type { FailureKind } from "../core/failure/code-spec.ts";

const OF_KIND: Readonly<Record<FailureKind, number>> = { runtime: 1, config: 2, environment: 3 };

export function exitCodeOf(failure: { readonly kind: FailureKind }): number {
  return OF_KIND[failure.kind];
}
