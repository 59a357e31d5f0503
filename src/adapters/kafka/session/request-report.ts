import type { ApiName } from "../wire/protocol.ts";

/** One request that was sent, and what became of it. */
export interface RequestReport {
  readonly api: ApiName;
  /** From the moment it was written. */
  readonly ms: number;
  /** On the wire, sizes included. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** Code of the failure. */
  readonly error: string | null;
}
