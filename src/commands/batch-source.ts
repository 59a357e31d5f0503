/** Which kind of source a configuration has: its type names one, and which it is stands beside its options. */
export function isBatch({ source }: { readonly source: object }): boolean {
  return "type" in source && source.type === "files";
}
