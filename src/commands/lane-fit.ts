/**
 * The tables of a lane's sinks of decoded rows, made fit for columns that are new. Who judges what a table can become: a
 * server's table itself, and for a folder of files the schema that the control thread keeps (core/coverage/live-table.ts).
 * A schema that one of them refuses costs its own records; a sink of which nothing is known for now, or whose table somebody
 * changed, misses rows, alone.
 */
import { Failure, fromWire } from "../core/failure/failure.ts";
import type { TableFit } from "../core/pipeline/decode-stage.ts";
import type { Clock } from "../core/time/clock.ts";
import type { ColumnField } from "../core/types/table-batch.ts";
import type { GrownLaneTables } from "./lane-tables.ts";

export interface FittedSink {
  /** As the control thread counts. */
  readonly sink: number;
  readonly name: string;
  /** kept: by the control thread. server: its table judges. any: it takes any columns. fixed: its own never change. */
  readonly judge: "kept" | "server" | "any" | "fixed";
  /** Rows go into its table now. */
  readonly fitted: boolean;
  /** Why the columns do not fit the server's table; null: they do, or it is not theirs to say why nothing lands in it. */
  tried(fields: readonly ColumnField[]): Promise<Unfit | null>;
  /** Rows have these columns from now on. A server that cannot be asked is tried again beside the work. */
  fit(fields: readonly ColumnField[]): Promise<void>;
  /** Takes nothing until it is made fit again. */
  block(failure: Failure): void;
}

export interface Unfit {
  readonly message: string;
  /** Rows went into the table before, whoever wrote them. */
  readonly tableFitted: boolean;
}

export interface LaneTablesParts {
  readonly clock: Clock;
  readonly grow: (fields: readonly ColumnField[]) => Promise<GrownLaneTables>;
  /** What is known of a table may be more by now. */
  readonly refit: () => void;
  /** All rows have the columns of one file: whatever a server's table does not take, the table is at fault. */
  readonly oneFile: boolean;
}

/** A sink of whose table nothing is known is asked about again after so long, ms. */
const RETRY_MS = 5_000;

export class LaneTables {
  readonly #sinks: readonly FittedSink[];
  readonly #p: LaneTablesParts;
  #fields: readonly ColumnField[] = [];
  #asking = false;

  constructor(sinks: readonly FittedSink[], parts: LaneTablesParts) {
    this.#sinks = sinks;
    this.#p = parts;
  }

  async fit(fields: readonly ColumnField[], judged: boolean): Promise<TableFit> {
    if (judged && !this.#p.oneFile) {
      const differences = await this.#refusedByServers(fields);
      if (differences.length > 0) return { differences };
    }
    const kept = this.#sinks.some((s) => s.judge === "kept");
    const grown = kept ? await this.#p.grow(fields) : { fields, refused: [], failed: [] };
    if (judged && grown.refused.length > 0) return { differences: grown.refused.flatMap(([, d]) => d) };
    this.#fields = grown.fields;
    const blocked = new Map<number, Failure>();
    for (const [sink, differences] of grown.refused) blocked.set(sink, mismatch(differences));
    for (const [sink, failure] of grown.failed) blocked.set(sink, fromWire(failure));
    await Promise.all(
      this.#sinks.map(async (s) => {
        const failure = blocked.get(s.sink);
        if (failure === undefined) await s.fit(grown.fields);
        else s.block(failure);
      }),
    );
    if (blocked.size > 0) this.#askLater();
    return { fields: grown.fields };
  }

  /** A table that took rows before, or every table where there are only such. One that never fitted may be the wrong one. */
  async #refusedByServers(fields: readonly ColumnField[]): Promise<readonly string[]> {
    const servers = this.#sinks.filter((s) => s.judge === "server");
    const alone = this.#sinks.every((s) => s.judge === "server" || s.judge === "fixed");
    const asked = servers.filter((s) => alone || s.fitted);
    const answers = await Promise.all(
      asked.map(async (s) => ({ fitted: s.fitted, unfit: await s.tried(fields) })),
    );
    const no = answers.filter((a) => a.unfit !== null);
    const all = alone && no.length === servers.length;
    const some = no.some((a) => a.fitted || a.unfit!.tableFitted);
    return some || all ? no.map((a) => a.unfit!.message) : [];
  }

  #askLater(): void {
    if (this.#asking) return;
    this.#asking = true;
    this.#p.clock.after(RETRY_MS, () => void this.#ask());
  }

  async #ask(): Promise<void> {
    const { refused, failed } = await this.#p.grow(this.#fields);
    this.#asking = false;
    if (refused.length + failed.length > 0) this.#askLater();
    else this.#p.refit();
  }
}

function mismatch(differences: readonly string[]): Failure {
  return new Failure("table.mismatch", `its rows do not fit what is stored: ${differences.join("; ")}`, {
    hint: "Give the sink a new path for rows of the new kind",
  });
}
