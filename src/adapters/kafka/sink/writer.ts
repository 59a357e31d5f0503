/** The raw sink's end in a lane: records into topics as they came, straight from their columns. */
import type { RawBatch } from "../../../core/records/raw-batch.ts";
import { ownedColumns } from "./columns.ts";
import type { LaneTransactions } from "./lane-transactions.ts";
import type { HeaderChoice } from "./metadata-headers.ts";
import type { TransactionSetParts } from "./set.ts";
import { TopicWriter, type TopicWriterOptions } from "./topic-writer.ts";

/** Plain data: it crosses to the lane's thread. */
export interface KafkaWriterOptions extends TopicWriterOptions {
  readonly headers: HeaderChoice;
}

export class KafkaWriter extends TopicWriter<RawBatch> {
  /** `lane`: shared with the other writers of the lane. */
  constructor(options: KafkaWriterOptions, parts: TransactionSetParts, lane: LaneTransactions) {
    super(options, parts, lane, (batch) => ({
      stream: batch.stream,
      owned: ownedColumns(batch, options.headers),
      offsets: batch.offsets,
    }));
  }
}
