/**
 * One set of records on its way into topics: one transaction, under the identity that the claims of its streams gave.
 * Records go out while they come; `seal` adds the ranges that they stand for, and commits.
 *
 * Whatever goes wrong ends the set and its identity: it is refused, its streams are claimed anew, which settles what
 * became of the transaction, and what is not covered then is read again. So an end whose answer was lost is never
 * assumed either way, and never tried twice.
 */

import { isOutage } from "../../../core/coverage/outage.ts";
import { overlapsRange, unionRanges } from "../../../core/coverage/ranges.ts";
import { parseWindow } from "../../../core/coverage/windows.ts";
import type { TRANSACTION_POINTS } from "../../../core/delivery/crash-points.ts";
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import type { Authority, WriterIdentity } from "../../../core/ports/coverage.ts";
import type { SetFiles, SetRefusal } from "../../../core/ports/lane-parts.ts";
import type { RowOrigins } from "../../../core/ports/table-sink.ts";
import type { BytesColumn } from "../../../core/records/raw-batch.ts";
import type { Span, StreamKey } from "../../../core/records/stream.ts";
import { sleep } from "../../../core/time/clock.ts";
import { columnsOf } from "../producer/columns.ts";
import type { Delivery } from "../producer/delivery.ts";
import type { SendOptions } from "../producer/options.ts";
import type { KafkaProducer } from "../producer/producer.ts";
import type { RecordColumns } from "../wire/records/record-writer.ts";
import {
  type Held,
  type LaneTransactions,
  type LaneTransactionsOptions,
  type LaneTransactionsParts,
  sameIdentity,
} from "./lane-transactions.ts";
import { LeftOut } from "./left-out.ts";
import { encodeLanded, type Landed, RANGE_PARTITION, rangeKey, type SinkKey } from "./state.ts";

/** The moments of a transaction, in order; a test ends the process there. */
export type TransactionPoint = (typeof TRANSACTION_POINTS)[number];

/** Plain data: it crosses to the lane's thread. */
export interface TransactionSetOptions extends LaneTransactionsOptions {
  readonly key: SinkKey;
  readonly coverageTopic: string;
  /** Nothing is sent before the seal: other sets of the lane may come to their end before. */
  readonly late: boolean;
}

export interface TransactionSetParts extends LaneTransactionsParts {
  readonly hook?: (point: TransactionPoint) => void;
}

/** Records for one topic. `partition` null: by key. */
export interface SetRecords {
  readonly topic: string;
  readonly partition: number | null;
  readonly columns: RecordColumns;
  readonly bytes: number;
  /** Where they stood, if one that brokers will never take may be left out; null: none may. */
  readonly origins: RowOrigins | null;
}

/** So that what does not pass by itself is not tried in a circle at full speed. */
const REFUSAL_PAUSE_MS = 1_000;

export class TransactionSet {
  readonly #o: TransactionSetOptions;
  readonly #p: TransactionSetParts;
  readonly #lane: LaneTransactions;
  /** Of the open set; null: it has no records yet. */
  #writer: WriterIdentity | null = null;
  #begun = false;
  #queue: SetRecords[] = [];
  #queued = 0;
  #deliveries: Delivery[] = [];
  #byStream = new Map<StreamKey, { rows: number; bytes: number }>();
  readonly #leftOut = new LeftOut();
  #rows = 0;
  #size = 0;
  #refusal: SetRefusal | null = null;
  /** Whether claiming anew at once may well come to the same. */
  #pause = false;
  /** Why, where people have to look at it: told once. */
  #trouble: Failure | null = null;

  /** `lane`: shared with the other sets of the lane. */
  constructor(options: TransactionSetOptions, parts: TransactionSetParts, lane: LaneTransactions) {
    this.#o = options;
    this.#p = parts;
    this.#lane = lane;
  }

  get held(): number {
    return this.#queued + (this.#begun ? this.#lane.held : 0);
  }

  get size(): number {
    return this.#size;
  }

  /** Nothing of it will be committed: it had better end soon. */
  get refused(): boolean {
    return this.#refusal !== null;
  }

  open(id: string): void {
    if (this.#rows > 0) throw new Failure("internal.bug", `set ${id} begins while another is open`);
    this.#clear();
  }

  /** Whether records under this identity belong into the open set. */
  takes(writer: WriterIdentity | undefined): boolean {
    return writer === undefined || this.#writer === null || sameIdentity(this.#writer, writer);
  }

  /** Records that are the set's from now on. */
  add(stream: StreamKey, writer: WriterIdentity | undefined, rows: number, records: SetRecords): void {
    this.#writer ??= writer ?? null;
    this.#rows += rows;
    this.#size += records.bytes;
    const sizes = this.#byStream.get(stream) ?? { rows: 0, bytes: 0 };
    this.#byStream.set(stream, { rows: sizes.rows + rows, bytes: sizes.bytes + records.bytes });
    if (this.#refusal !== null) return;
    this.#queue.push(records);
    this.#queued += records.bytes;
  }

  /** Sends what was added; waits while the producer has no room. */
  async flush(): Promise<void> {
    if (this.#refusal === null && this.#queue.length > 0 && !this.#o.late)
      await this.#orRefuse(() => this.#send());
    this.#tellOnce();
  }

  async seal(spans: readonly Span[], authorities: readonly Authority[]): Promise<SetFiles | SetRefusal> {
    if (this.#refusal === null) await this.#orRefuse(() => this.#commit(spans, authorities));
    this.#tellOnce();
    const [refusal, pause, bytes] = [this.#refusal, this.#pause, this.#size];
    const rows = this.#rows - this.#leftOut.count;
    const told = this.#leftOut.told();
    this.#clear();
    if (refusal === null) return { targets: [], covered: true, rows, bytes, ...told };
    if (pause) await sleep(this.#p.clock, REFUSAL_PAUSE_MS);
    return refusal;
  }

  async abort(): Promise<void> {
    this.#drop();
    this.#clear();
  }

  #clear(): void {
    this.#writer = null;
    this.#begun = false;
    this.#queue = [];
    this.#queued = 0;
    this.#deliveries = [];
    this.#byStream = new Map();
    this.#leftOut.clear();
    this.#rows = 0;
    this.#size = 0;
    this.#refusal = null;
    this.#pause = false;
    this.#trouble = null;
  }

  #drop(): void {
    if (this.#begun && this.#writer !== null) this.#lane.spend(this.#writer);
    this.#begun = false;
  }

  /** Throws only what would be the same the next time. */
  async #orRefuse(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (e) {
      const failure = e instanceof Refused ? e.failure : asFailure(e);
      this.#drop();
      this.#queue = [];
      this.#queued = 0;
      const passes = e instanceof Refused || FENCED.has(failure.code) || isOutage(failure);
      if (!passes) throw failure;
      const fenced = e instanceof Refused ? e.reason : FENCED.has(failure.code) ? "fenced" : "gone";
      this.#refusal = { refused: fenced, detail: failure.message };
      this.#trouble = fenced === "gone" ? failure : null;
      this.#pause = !(e instanceof Refused) && failure.code !== "kafka.producer_fenced";
    }
  }

  /** What people have to see (an outage, a right that is missing) goes out as a failure, once. */
  #tellOnce(): void {
    const trouble = this.#trouble;
    this.#trouble = null;
    if (trouble !== null) throw trouble;
  }

  async #open(writer: WriterIdentity): Promise<KafkaProducer> {
    const producer = await this.#lane.producing(writer);
    if (!this.#begun) {
      producer.begin();
      this.#begun = true;
      this.#p.hook?.("copy_begun");
    }
    return producer;
  }

  async #send(): Promise<void> {
    if (this.#writer === null) throw new Failure("internal.bug", "records without a writer's identity");
    const producer = await this.#open(this.#writer);
    const signal = this.#lane.life;
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      this.#queued -= next.bytes;
      const to = {
        signal,
        ...(next.partition === null ? {} : { partition: next.partition }),
        ...this.#leavingOut(next),
      };
      this.#deliveries.push(await producer.send(next.topic, next.columns, to));
    }
  }

  #leavingOut({ origins, columns }: SetRecords): Pick<SendOptions, "leaveOut"> {
    if (origins === null) return {};
    const bytesOf = (column: BytesColumn | null, row: number) =>
      column === null ? 0 : column.offsets[row + 1]! - column.offsets[row]!;
    return {
      leaveOut: (row, failure) => {
        const bytes = bytesOf(columns.key, row) + bytesOf(columns.value, row);
        return this.#leftOut.add(origins, row, bytes, failure);
      },
    };
  }

  async #commit(spans: readonly Span[], authorities: readonly Authority[]): Promise<void> {
    const writer = this.#proven(spans, authorities);
    await this.#send();
    const producer = await this.#open(writer);
    const signal = this.#lane.life;
    await producer.flush(signal);
    for (const delivery of this.#deliveries) await delivery.done;
    const fault = this.#leftOut.fault(this.#rows);
    if (fault !== null) throw fault;
    this.#p.hook?.("rows_copied");
    const landed = this.#landing(this.#leftOut.without(spans), authorities);
    const records = [...landed].map(([stream, l]) => ({
      key: rangeKey(this.#o.key, stream, l.generation),
      value: encodeLanded(l.landed),
    }));
    // Behind the records: an open transaction holds up whoever reads the coverage, and lasts no longer there than it must.
    const to = { partition: RANGE_PARTITION, signal };
    const told = await producer.send(this.#o.coverageTopic, columnsOf(records), to);
    await producer.flush(signal);
    await told.done;
    this.#p.hook?.("before_commit");
    await producer.commit(signal);
    this.#begun = false;
    this.#p.hook?.("commit_answered");
    for (const [stream, l] of landed) this.#lane.landed.set(stream, l);
  }

  /** Every stream is written under one identity, which is the set's. */
  #proven(spans: readonly Span[], authorities: readonly Authority[]): WriterIdentity {
    const streams = new Set(spans.map((s) => s.stream));
    let writer = this.#writer;
    for (const a of authorities) {
      if (a.stream === undefined || !streams.delete(a.stream)) continue;
      const beyond = beyondLease(a, spans);
      if (beyond !== null) throw new Refused("fenced", new Failure("kafka.producer_fenced", beyond));
      writer ??= a.writer ?? null;
      if (writer === null || a.writer === undefined || !sameIdentity(writer, a.writer)) {
        const detail = `${a.stream} was claimed anew while the set was open`;
        throw new Refused("fenced", new Failure("kafka.producer_fenced", detail));
      }
    }
    if (writer === null || streams.size > 0)
      throw new Refused(
        "fenced",
        new Failure("kafka.producer_fenced", "a set without the right to its streams"),
      );
    this.#writer = writer;
    return writer;
  }

  /** What stands covered with this set, by stream. */
  #landing(spans: readonly Span[], authorities: readonly Authority[]): Map<StreamKey, Held> {
    const all = new Map<StreamKey, Held>();
    for (const a of authorities) {
      const { stream } = a;
      if (stream === undefined) continue;
      const generation = partOf(a);
      const known = this.#lane.landed.get(stream);
      const before = known?.generation === generation ? known.landed : NOTHING;
      let { ranges } = before;
      for (const span of spans.filter((s) => s.stream === stream)) {
        if (overlapsRange(ranges, span)) {
          const detail = `${stream} [${span.from}, ${span.next}) is covered in part`;
          throw new Refused("overlap", new Failure("kafka.producer_fenced", detail));
        }
        ranges = unionRanges(ranges, [{ from: span.from, next: span.next }]);
      }
      const { why } = this.#leftOut;
      if (why !== null && ranges.length > MOST_RANGES) throw why;
      const { rows = 0, bytes = 0 } = this.#byStream.get(stream) ?? {};
      const less = this.#leftOut.of(stream);
      const landed = {
        ranges,
        rows: before.rows + rows - less.rows,
        bytes: before.bytes + bytes - less.bytes,
      };
      all.set(stream, { generation, landed });
    }
    return all;
  }
}

/** Under which number ranges stand: see state.ts. */
const partOf = (a: Authority): number => (a.kind === "generation" ? a.generation : -a.lease);

/** Why a lease does not allow one of the spans of its stream; null: it does, or it is none. */
function beyondLease(a: Authority, spans: readonly Span[]): string | null {
  if (a.kind === "generation") return null;
  const w = parseWindow(a.window);
  const beyond = spans.find(
    (s) =>
      s.stream === a.stream &&
      (w?.stream !== s.stream || s.from < w.from || w.next === null || w.next < s.next),
  );
  return beyond === undefined
    ? null
    : `${beyond.stream} [${beyond.from}, ${beyond.next}) is not within ${a.window}`;
}

/** Of a stream: what is covered is one record, which must not grow by what is left out until no topic takes it. */
const MOST_RANGES = 4_096;

const NOTHING: Landed = { ranges: [], rows: 0, bytes: 0 };

/** The set may not be written: not a failure, but an answer. */
class Refused extends Error {
  readonly reason: SetRefusal["refused"];
  readonly failure: Failure;

  constructor(reason: SetRefusal["refused"], failure: Failure) {
    super(failure.message);
    this.reason = reason;
    this.failure = failure;
  }
}

/** In the second protocol brokers tell an old epoch from a transaction that can only be aborted by nothing. */
const FENCED: ReadonlySet<string> = new Set(["kafka.producer_fenced", "kafka.transaction_failed"]);
