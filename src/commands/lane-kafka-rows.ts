/** A Kafka sink of what is made of records, in a lane: rejects as they came, or rows in an encoding that grows with the table. */
import { KafkaRejectWriter } from "../adapters/kafka/sink/reject-writer.ts";
import { KafkaRowWriter, type RowEncoding } from "../adapters/kafka/sink/row-writer.ts";
import { encodeJsonColumns } from "../core/codecs/json/encode.ts";
import type { Codecs } from "../core/compression/codec.ts";
import { asFailure, Failure } from "../core/failure/failure.ts";
import type { DerivedBatch } from "../core/pipeline/derived.ts";
import type { BranchWriter } from "../core/ports/branch-parts.ts";
import { type Clock, sleep } from "../core/time/clock.ts";
import type { ColumnField, TableBatch } from "../core/types/table-batch.ts";
import type { KafkaLaneSink } from "./lane-config.ts";
import type { NewSchema } from "./lane-schemas.ts";
import { kafkaWriterParts, laneTransactions } from "./lane-writers.ts";
import { rowEncoding } from "./row-encoding.ts";
import type { RowEncode, RowSchema } from "./row-schemas.ts";

export interface KafkaRowsContext {
  /** Of the lane's life. */
  readonly instance: string;
  readonly codecs: Codecs;
  readonly clock: Clock;
  /** Resolves once the registry has the schema of these columns. */
  readonly register: (schema: NewSchema) => Promise<RowSchema>;
  /** The sink takes nothing for now; null: it does. */
  readonly block: (failure: Failure | null) => void;
}

/** A registry that refused, or was away, is asked again after so long, ms. */
const RETRY_MS = 5_000;
/** Longest that other sinks wait with their rows for a registry that is slow, ms. */
const PATIENCE_MS = 5_000;
const NOTHING = new Uint8Array(0);

export class KafkaRows {
  #sink: KafkaLaneSink;
  readonly #c: KafkaRowsContext;
  readonly #transactions: NonNullable<ReturnType<typeof laneTransactions>>;
  #encoding: RowEncoding | null = null;
  #attempt = 0;

  constructor(sink: KafkaLaneSink, context: KafkaRowsContext) {
    this.#sink = sink;
    this.#c = context;
    this.#transactions = laneTransactions(sink, context.instance, context.codecs)!;
  }

  renew(sink: KafkaLaneSink): void {
    this.#sink = sink;
    this.#transactions.renew(sink.writer.settings);
  }

  /** Of rejects, or of rows whose columns `fit` was told last. */
  writer(): BranchWriter<DerivedBatch> {
    const { encode, writer } = this.#sink;
    const parts = kafkaWriterParts(this.#sink, this.#c.instance, this.#c.codecs);
    if (encode === null) return new KafkaRejectWriter(writer, parts, this.#transactions);
    if (this.#encoding === null) throw new Failure("internal.bug", "rows before their columns are known");
    return new KafkaRowWriter(writer, parts, this.#transactions, this.#encoding);
  }

  /** Resolves when rows of these columns can be written, or when that is tried again beside the work. */
  async fit(fields: readonly ColumnField[], selected: (table: TableBatch) => TableBatch): Promise<void> {
    const { encode } = this.#sink;
    const attempt = ++this.#attempt;
    // Tombstones may come before any schema does.
    if (encode === null || encode.format === "json" || fields.length === 0) {
      this.#encoding = { envelope: NOTHING, encode: (table) => encodeJsonColumns(selected(table)) };
      return;
    }
    this.#c.block(
      new Failure("sink.behind", `the schema of ${encode.subject} is being registered`, { retry: true }),
    );
    const registered = this.#register(attempt, encode, fields, selected);
    await Promise.race([registered, sleep(this.#c.clock, PATIENCE_MS)]);
  }

  async #register(
    attempt: number,
    encode: RowEncode,
    fields: readonly ColumnField[],
    selected: (table: TableBatch) => TableBatch,
  ): Promise<void> {
    try {
      const schema = await this.#c.register({ sink: this.#sink.writer.key.sink, encode, fields });
      // The table has grown on meanwhile, and is registered as it is then.
      if (attempt !== this.#attempt) return;
      const { envelope, encode: rows } = rowEncoding(encode, schema, fields);
      this.#encoding = { envelope, encode: (table) => rows(selected(table)) };
      this.#c.block(null);
    } catch (e) {
      if (attempt !== this.#attempt) return;
      const failure = asFailure(e);
      this.#c.block(failure);
      if (failure.code === "encode.unsupported") return;
      this.#c.clock.after(RETRY_MS, () => {
        if (attempt === this.#attempt) void this.#register(attempt, encode, fields, selected);
      });
    }
  }
}
