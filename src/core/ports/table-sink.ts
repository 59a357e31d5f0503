/** The lane's end of a sink of decoded rows. The same turns as a raw writer's, over columns. */
import type { RejectCode } from "../codecs/rows.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import type { TableBatch } from "../types/table-batch.ts";
import type { Authority } from "./coverage.ts";
import type { SetFiles, SetRefusal } from "./lane-parts.ts";

/** A value that the sink cannot hold as it is. */
export interface RefusedCell {
  /** Within the batch. */
  readonly row: number;
  readonly code: RejectCode;
  readonly column: string;
  /** What was seen and what is allowed. */
  readonly reason: string;
}

/** A refused row. */
export interface RefusedOrigin {
  readonly code: string;
  readonly stream: StreamKey;
  readonly offset: bigint;
}

/** Of a batch's rows where their records stood, for a sink that finds out late that it cannot have one. */
export interface RowOrigins {
  readonly stream: StreamKey;
  /** Positions as pairs of int32, low half first. */
  readonly offsets: Int32Array;
}

/** A row that the sink had taken, and whose server refuses it. */
export interface LateRefusal {
  readonly stream: StreamKey;
  readonly offset: bigint;
  readonly code: string;
  /** Null: the server names none. */
  readonly column: string | null;
  /** In the server's words, and what else it says. */
  readonly reason: string;
  readonly more: Readonly<Record<string, string>>;
  /** As they were sent, by column: text where the type has a plain one. */
  readonly fields: () => Readonly<Record<string, string | null>>;
}

export interface LateRefusals {
  /** So many may be refused. A few more are looked for, to be told; never all of them. */
  readonly most: number;
  /** Lines of the rows for the rejects, at each try to end the set. Throws where there are more than `most`: nothing of the set lands. */
  lines(rows: readonly LateRefusal[]): readonly string[];
}

/** One per lane. Holds the open set. */
export interface TableSink {
  /** Begins a set under this id, unique over all processes that ever write the sink. */
  open(id: string): void;
  /**
   * Takes the rows, synchronously: the batch's arrays may be reused on return. All batches have one schema. Rows that it
   * refuses, in ascending order, are told and not taken.
   */
  write(batch: TableBatch, refuse: (cell: RefusedCell) => void, origins?: RowOrigins): void;
  /** Lines of refused rows; they become durable with the set. `of`: the one row, where its position is known. */
  reject(lines: Uint8Array, rows: number, of?: RefusedOrigin): void;
  /** Moves on what is complete. After a retryable Failure nothing is lost: calling it again goes on. */
  flush(): Promise<void>;
  /** Bytes in memory for the open set, and its bytes in all, against `roll_bytes`. */
  readonly held: number;
  readonly size: number;
  /**
   * Ends the set, which stands for `spans`, and makes it durable. Retryable like flush. `late`: what to do with rows that only
   * the server refuses; absent: the sink writes its own lines of them.
   */
  seal(
    spans: readonly Span[],
    authorities: readonly Authority[],
    late?: LateRefusals,
  ): Promise<SetFiles | SetRefusal>;
  /** Drops the open set. */
  abort(): Promise<void>;
}
