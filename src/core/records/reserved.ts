/** Names that are ours: those of metadata columns. */

/** Engines take names that differ in nothing but case for one. */
export function isReserved(name: string, prefix: string): boolean {
  return name.toLowerCase().startsWith(prefix.toLowerCase());
}
