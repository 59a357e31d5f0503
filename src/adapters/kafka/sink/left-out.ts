/**
 * Records of a set that brokers will never take, however often they are asked: too large for the topic, or refused for what they
 * are. In a sink beside the primary one the rest of the set lands, and their positions stay holes of one, which recovery
 * fills once the topic takes them (decision 0040).
 *
 * Records are refused one by one, topics all at once: with more than a few, or where not one of many is taken, it is the topic
 * that is at fault, and the set is refused as a whole.
 */
import { leftOutRows, withHoles } from "../../../core/delivery/refused-origins.ts";
import { Failure } from "../../../core/failure/failure.ts";
import type { RefusedRows } from "../../../core/ports/lane.ts";
import type { RefusedOrigin, RowOrigins } from "../../../core/ports/table-sink.ts";
import { int64At } from "../../../core/records/int64-at.ts";
import { type Span, type StreamKey, streamParts } from "../../../core/records/stream.ts";

/** Each is a range more in the record of what is covered, and some requests. */
const MOST = 100;
/** Sets of fewer records say nothing about the topic. */
const MANY = 10;

export class LeftOut {
  #rows: (RefusedOrigin & { readonly bytes: number; readonly failure: Failure })[] = [];

  get count(): number {
    return this.#rows.length;
  }

  /** False: too many. */
  add({ stream, offsets }: RowOrigins, row: number, bytes: number, failure: Failure): boolean {
    if (this.#rows.length >= MOST) return false;
    this.#rows.push({ code: failure.code, stream, offset: int64At(offsets, row), bytes, failure });
    return true;
  }

  /** Why the topic is at fault and not the records; null: it is not. `records`: of the set. */
  fault(records: number): Failure | null {
    return this.count === records && records >= MANY ? this.#rows[0]!.failure : null;
  }

  /** Why they are not in the topic, for people; null: there are none. */
  get why(): Failure | null {
    const first = this.#rows[0];
    if (first === undefined) return null;
    const { topic, partition } = streamParts(first.stream);
    const more = this.count === 1 ? "" : `, and ${this.count - 1} more of the set`;
    const { at, code, message } = first.failure;
    return new Failure(code, `${topic}/${partition}@${first.offset}${more}: ${message}`, {
      ...(at === null ? {} : { at }),
      hint: "A gap of this sink: raise max.message.bytes of its topic, or change what it takes, and recovery fills it",
      cause: first.failure,
    });
  }

  without(spans: readonly Span[]): readonly Span[] {
    return withHoles(spans, this.#rows);
  }

  /** Records of a stream, and their bytes. */
  of(stream: StreamKey): { readonly rows: number; readonly bytes: number } {
    const own = this.#rows.filter((r) => r.stream === stream);
    return { rows: own.length, bytes: own.reduce((n, r) => n + r.bytes, 0) };
  }

  told(): { readonly leftOut?: RefusedRows } {
    return leftOutRows(this.#rows, this.why);
  }

  clear(): void {
    this.#rows = [];
  }
}
