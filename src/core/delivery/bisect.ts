/**
 * Which rows of a set a sink refuses, found by halving: a sink says that something in a set is not to its liking, and
 * seldom what. Halves that it takes stay taken, so the rest of the set lands; what is left in the end are single rows.
 *
 * Rows are refused one by one, tables all at once. Where more rows are refused than `most`, or not one of many is taken,
 * it is the sink that changed: then nothing is told of rows, and whoever called meets the failure.
 */

/** Sets of fewer rows say nothing about the sink. */
const MANY = 10;

export interface RefusedRow<F> {
  readonly row: number;
  readonly why: F;
}

export type Bisected<F> =
  | { readonly refused: readonly RefusedRow<F>[] }
  /** Not the rows are at fault: the last answer of the sink, and the rows that it had refused by then. */
  | { readonly sink: F; readonly refused: readonly RefusedRow<F>[] };

/**
 * `take`: rows [from, next) go into the sink, or it answers why not and has none of them; what it throws ends the search.
 * Called for rows in their order, then once more for each that was refused as long as one of them is taken: a row may refer to one that
 * came behind it.
 */
export async function bisect<F>(
  rows: number,
  most: number,
  take: (from: number, next: number) => Promise<F | null>,
): Promise<Bisected<F>> {
  let refused: RefusedRow<F>[] = [];
  const open: [from: number, next: number][] = halves(0, rows);
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    const [from, next] = part;
    const why = await take(from, next);
    if (why === null) continue;
    if (next - from > 1) open.push(...halves(from, next));
    else {
      refused.push({ row: from, why });
      if (refused.length > most) return { sink: why, refused };
    }
  }
  if (refused.length === rows && rows >= MANY) return { sink: refused.at(-1)!.why, refused };
  for (let before = rows; refused.length > 0 && refused.length < before; ) {
    before = refused.length;
    refused = await again(refused, take);
  }
  return { refused };
}

/** The first one last. */
function halves(from: number, next: number): [number, number][] {
  const middle = from + Math.ceil((next - from) / 2);
  const both: [number, number][] = [
    [middle, next],
    [from, middle],
  ];
  return both.filter(([a, b]) => a < b);
}

async function again<F>(
  refused: readonly RefusedRow<F>[],
  take: (from: number, next: number) => Promise<F | null>,
): Promise<RefusedRow<F>[]> {
  const left: RefusedRow<F>[] = [];
  for (const { row } of refused) {
    const why = await take(row, row + 1);
    if (why !== null) left.push({ row, why });
  }
  return left;
}
