/** A fuzz target: case number in, nothing bad out. Case `n` is one input for ever, on any machine. */
export interface FuzzTarget {
  readonly name: string;
  /** Runs case `n`. Returns whether the input was refused with an allowed Failure; throws what must not happen. */
  run(n: number): boolean | Promise<boolean>;
}
