/** What is known of an error code. */
export type FailureKind = "config" | "environment" | "runtime";

export interface CodeSpec {
  readonly kind: FailureKind;
  readonly retry: boolean;
  /** One line for the reference page: what it means and what to look at first. */
  readonly meaning: string;
}

export const spec = (kind: FailureKind, retry: boolean, meaning: string): CodeSpec => ({
  kind,
  retry,
  meaning,
});
