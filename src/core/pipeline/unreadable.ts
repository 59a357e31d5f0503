/**
 * Counts how often the same bytes could not be read. A corrupt answer is often the network's or a broker's passing
 * fault; the same bytes again and again are not.
 */
const MAX_TRIES = 3;

export class UnreadableBytes {
  readonly #seen = new Map<number, { readonly position: bigint; readonly times: number }>();

  /** Notes a failure at the position; true if fetching the same bytes once more is no use. */
  hopeless(stream: number, position: bigint): boolean {
    const before = this.#seen.get(stream);
    const times = before?.position === position ? before.times + 1 : 1;
    this.#seen.set(stream, { position, times });
    return times > MAX_TRIES;
  }
}
