/** An array that somebody else may still hold: its memory moves to a new one, and the old one has no elements any more. */

interface Whole {
  readonly buffer: ArrayBuffer;
}

/** `array` views all of its buffer. `fresh`: where the other one has sent the memory away, to a Worker say. */
export function renewed<A extends Whole>(array: A, fresh: () => A): A {
  if (array.buffer.detached) return fresh();
  const Kind = array.constructor as new (buffer: ArrayBuffer) => A;
  return new Kind(array.buffer.transfer());
}
