/** Schemas of tables that are folders of files are kept by the control thread (core/coverage/live-table.ts); lanes ask it. */
import { type Grown, growTables, type LiveTable } from "../core/coverage/live-table.ts";
import { asFailure, Failure, type FailureWire, toWire } from "../core/failure/failure.ts";
import { type RawMetadata, rawOriginFields } from "../core/pipeline/raw-origins.ts";
import type { Clock } from "../core/time/clock.ts";
import { isReserved } from "../core/types/reserved.ts";
import type { ColumnField } from "../core/types/table-batch.ts";
import { type Answered, answered, LaneAsks } from "./lane-asks.ts";

/** From a lane's thread: the columns of its rows, without metadata. */
export interface AskTable {
  readonly t: "ask_table";
  readonly n: number;
  readonly fields: readonly ColumnField[];
}

/** `fields`: without metadata, in all tables but those that are named. Sinks by their number. */
export interface GrownLaneTables {
  readonly fields: readonly ColumnField[];
  readonly refused: readonly (readonly [sink: number, differences: readonly string[]])[];
  readonly failed: readonly (readonly [sink: number, failure: FailureWire])[];
}

/** To it. */
export type AnswerTable = Answered<GrownLaneTables> & { readonly t: "table" };

export class AskedTables extends LaneAsks<AskTable> {
  grow(fields: readonly ColumnField[]): Promise<GrownLaneTables> {
    return this.ask((n) => ({ t: "ask_table", n, fields }));
  }
}

/** A sink of decoded rows whose table the control thread keeps. */
export interface KeptTable {
  readonly sink: number;
  readonly table: Pick<LiveTable, "grow">;
  readonly metadata: RawMetadata;
}

export interface KeptTablesOptions {
  /** Of metadata columns. */
  readonly prefix: string;
  readonly clock: Clock;
}

/** A lane's rows do not wait longer for one sink's store; what was asked goes on and is known the next time. */
const ANSWER_MS = 2_000;

/** In the control thread. */
export class KeptTables {
  readonly #tables: ReadonlyMap<number, KeptTable>;
  readonly #o: KeptTablesOptions;

  constructor(tables: readonly KeptTable[], options: KeptTablesOptions) {
    this.#tables = new Map(tables.map((t) => [t.sink, t]));
    this.#o = options;
  }

  async answer({ n, fields }: AskTable): Promise<AnswerTable> {
    return { t: "table", ...(await answered(n, () => this.#grown(fields))) };
  }

  async #grown(fields: readonly ColumnField[]): Promise<GrownLaneTables> {
    const sinks = [...this.#tables.keys()];
    const grown = await growTables(sinks, fields, (sink, wanted) => this.#grow(sink, wanted));
    return {
      fields: grown.fields,
      refused: [...grown.refused],
      failed: [...grown.failed].map(([sink, e]) => [sink, toWire(asFailure(e))]),
    };
  }

  async #grow(sink: number, wanted: readonly ColumnField[]): Promise<Grown> {
    const { table, metadata } = this.#tables.get(sink)!;
    const { prefix } = this.#o;
    const grown = await this.#inTime(table.grow([...wanted, ...rawOriginFields(metadata, prefix)]));
    if (!("fields" in grown)) return grown;
    return { fields: grown.fields.filter((f) => !isReserved(f.name, prefix)) };
  }

  #inTime(grown: Promise<Grown>): Promise<Grown> {
    return new Promise((resolve, reject) => {
      const late = () =>
        reject(
          new Failure("coverage.unavailable", `the store of the table's schema took over ${ANSWER_MS} ms`),
        );
      const timer = this.#o.clock.after(ANSWER_MS, late);
      grown.then(resolve, reject).finally(() => timer.cancel());
    });
  }
}
