/** What the lane's end of a sink beside the primary one is made of. */
import type { Span } from "../records/stream.ts";
import type { Authority } from "./coverage.ts";
import type { SetFiles, SetRefusal } from "./lane-parts.ts";

/** What goes into such a sink: raw records, or what was made of them. */
export interface BranchBatch {
  readonly span: Span;
  readonly rows: number;
  /** Wall time of arrival, ms. */
  readonly ingestTs: number;
  /** Of raw records: offsets as pairs of int32, low half first. What is without is taken whole or not at all. */
  readonly offsets?: Int32Array;
}

/** As a RawWriter; `write` may come while a `flush` is under way. */
export interface BranchWriter<B extends BranchBatch> {
  open(id: string): void;
  write(batch: B, authority: Authority, from?: number): number;
  /** No more rows come: what was gathered moves on with the next `flush`. */
  complete?(): void;
  flush(): Promise<void>;
  readonly held: number;
  readonly largest: number;
  seal(spans: readonly Span[], authorities: readonly Authority[]): Promise<SetFiles | SetRefusal>;
  abort(): Promise<void>;
}
