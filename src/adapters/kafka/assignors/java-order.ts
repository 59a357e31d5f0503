/**
 * The order in which a Java HashMap hands out string keys. Kafka's sticky assignors decide by it which of several
 * equal members keeps a partition more. A group whose leader moves between clients would else move partitions for
 * nothing.
 */

/** String.hashCode over UTF-16 units. */
function hash(text: string): number {
  let h = 0;
  for (let i = 0; i < text.length; i++) h = (Math.imul(31, h) + text.charCodeAt(i)) | 0;
  return h;
}

/** The keys in the map's order, given the order of insertion. */
export function javaMapOrder(keys: readonly string[]): string[] {
  let size = 16;
  while (keys.length > size * 0.75) size *= 2;
  const at = (key: string): number => {
    const h = hash(key);
    return (h ^ (h >>> 16)) & (size - 1);
  };
  // A stable sort: within a bucket the order of insertion stays, as it does when the table grows.
  return keys
    .map((key) => ({ key, at: at(key) }))
    .sort((a, b) => a.at - b.at)
    .map((e) => e.key);
}
