/** Waiting for something that must come true; the limit only ends what hangs and is far above any real wait. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  limitMs = 60_000,
): Promise<NonNullable<T>> {
  for (const end = performance.now() + limitMs; performance.now() < end; await Bun.sleep(50)) {
    const seen = await look();
    if (seen !== false && seen !== null && seen !== undefined) return seen as NonNullable<T>;
  }
  throw new Error(`waited ${limitMs / 1000} s in vain for: ${what}`);
}
