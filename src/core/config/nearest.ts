/** The known name that a mistyped one most likely means. */

/** Null unless some name is within a third of its length (at least 1, at most 4 edits), ignoring case and `-`/`_`. */
export function nearest(name: string, known: Iterable<string>): string | null {
  const wanted = folded(name.slice(0, 100));
  let best: string | null = null;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const limit = Math.min(4, Math.max(1, Math.ceil(candidate.length / 3)));
    if (Math.abs(candidate.length - wanted.length) > limit) continue;
    const distance = editDistance(wanted, folded(candidate));
    if (distance <= limit && distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function folded(name: string): string {
  return name.toLowerCase().replaceAll("-", "_");
}

/** Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours cost one each. */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let cost = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      next.push(cost);
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}
