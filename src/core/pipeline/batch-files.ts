/** What a batch job knows of one file: its identity, what of it is covered, and how far the work has come. */
import { subtractRanges } from "../coverage/ranges.ts";
import { Failure } from "../failure/failure.ts";
import type { FileWork, Hashed, RowRange } from "../ports/batch-lane.ts";
import type { Authority, Claim, Range } from "../ports/coverage.ts";
import { type FileCoverage, fileCoverage, isComplete } from "../records/file-stream.ts";
import type { StreamKey } from "../records/stream.ts";

export type FileState = "waiting" | "hashing" | "hashed" | "cutting" | "cut" | "done" | "skipped";

export class BatchFile {
  readonly work: FileWork;
  state: FileState = "waiting";
  /** Hash tasks without an answer. */
  hashing = 0;
  stream: StreamKey | null = null;
  sha256 = "";
  authority: Authority | null = null;
  rank: number | null = null;
  coverage: FileCoverage = { rows: [], total: null };
  /** Another file of the job with the same content, which lands instead. */
  twin: BatchFile | null = null;
  /** Checks of all blocks, and how many of them were compared with what was cut. */
  readonly #checks: BigUint64Array;
  readonly #parts: Uint8Array;
  #compared = 0;
  /** Pieces that lanes hold, and bytes of them that are done, by the share of rows or pieces. */
  pieces = 0;
  /** Rows so far, of this run. */
  rows = 0;
  rejected = 0;

  constructor(work: FileWork, blocks: number, parts: number) {
    this.work = work;
    this.#checks = new BigUint64Array(blocks);
    this.#parts = new Uint8Array(32 * parts);
  }

  /** All parts hashed: the digest's input; null: not yet. */
  takeHashed({ from, parts, blocks }: Hashed, partBytes: number, blockBytes: number): Uint8Array | null {
    this.#parts.set(parts, (from / partBytes) * 32);
    this.#checks.set(blocks, from / blockBytes);
    return --this.hashing === 0 ? this.#parts : null;
  }

  claimed(claim: Claim): void {
    this.authority = claim.authority;
    this.coverage = fileCoverage(claim.covered);
  }

  /** Bytes of the file that were cut, in whole blocks. */
  cutBytes(blockBytes: number): number {
    return Math.min(this.work.bytes, this.#compared * blockBytes);
  }

  get isComplete(): boolean {
    return isComplete(this.coverage);
  }

  /** For lanes that read the file by themselves. */
  get checks(): BigUint64Array {
    return this.#checks;
  }

  /** Throws files.changed unless the blocks that were cut are those that were hashed. */
  compare(blocks: BigUint64Array, whole: boolean): void {
    const same = blocks.every((b, i) => b === this.#checks[this.#compared + i]);
    this.#compared += blocks.length;
    if (!same || (whole && this.#compared !== this.#checks.length))
      throw new Failure("files.changed", "the file changed between being hashed and being read", {
        at: this.work.name,
        hint: "Give files that nobody writes to any more; run again when it is at rest",
      });
  }

  /** Whether all of these rows are covered. */
  holds(firstRow: number, rows: number): boolean {
    const r: Range = { from: BigInt(firstRow), next: BigInt(firstRow + rows) };
    return rows > 0 && subtractRanges([r], this.coverage.rows).length === 0;
  }
}

/** Row groups of a Parquet file, read by lanes; null: a file that is cut. The last one stands for its end too. */
export function rangesOf({ file, layout }: FileWork): readonly RowRange[] | null {
  if (layout.format !== "parquet") return null;
  const { groups } = layout;
  if (groups.length === 0) return [{ file, group: 0, firstRow: 0, rows: 0, last: true }];
  let firstRow = 0;
  return groups.map((rows, group) => {
    const range = { file, group, firstRow, rows, last: group === groups.length - 1 };
    firstRow += rows;
    return range;
  });
}
