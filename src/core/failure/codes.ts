/**
 * The closed list of error codes. A code is stable: operators alert on it and scripts match it, so it is never
 * renamed or reused. `kind` decides the exit code of the process (2 config, 3 environment, 1 runtime) and
 * `retry` says whether the same call may succeed later without anybody changing anything. Unknown means "no".
 */
export type FailureKind = "config" | "environment" | "runtime";

export interface CodeSpec {
  readonly kind: FailureKind;
  readonly retry: boolean;
  /** One line for the reference page: what it means and what to look at first. */
  readonly meaning: string;
}

const spec = (kind: FailureKind, retry: boolean, meaning: string): CodeSpec => ({ kind, retry, meaning });

export const CODES = {
  // internal
  "internal.bug": spec("runtime", false, "A state that the code holds to be impossible. Please report it."),
  "internal.cancelled": spec("runtime", false, "The operation was given up because its caller stopped."),
  "internal.stalled": spec("runtime", false, "No progress for longer than the stall limit although there was work."),
  // bytes
  "bytes.short": spec("runtime", false, "A message ends before the field that it declares."),
  "bytes.limit": spec("runtime", false, "A declared length or count is above the limit for its place."),
  "bytes.invalid": spec("runtime", false, "A field holds a value that its format does not allow."),
} as const satisfies Record<string, CodeSpec>;

export type Code = keyof typeof CODES;
