/** Bytes that are written one behind the other, in memory that grows to twice its size. */
const FIRST_BYTES = 4096;

export class GrowingBytes {
  protected bytes = new Uint8Array(FIRST_BYTES);
  length = 0;

  /** What was written; the next write may move it. */
  view(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }

  /** Room for `more` bytes. */
  protected reserve(more: number): void {
    const need = this.length + more;
    if (need <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(need, 2 * this.bytes.length));
    grown.set(this.view());
    this.bytes = grown;
  }
}
