/** Names that are ours: those of metadata columns. The one rule, for schemas, keys of payloads and tables alike. */

/** `prefix`: in lower case, as configurations hold it. Engines take names that differ in nothing but case for one. */
export function isReserved(name: string, prefix: string): boolean {
  return name.toLowerCase().startsWith(prefix);
}
