/**
 * What a partition's leader remembers of idempotent producers, by Kafka's rules: the last five batches of each, so
 * that one that comes again is answered with where it stands, and a gap in the sequence is refused.
 */
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";

interface Remembered {
  readonly sequence: number;
  readonly last: number;
  readonly base: bigint;
}

interface ProducerState {
  epoch: number;
  batches: Remembered[];
}

export interface BatchIdentity {
  readonly producerId: bigint;
  readonly epoch: number;
  readonly sequence: number;
  readonly count: number;
}

export type SequenceVerdict =
  | { readonly kind: "append" }
  | { readonly kind: "duplicate"; readonly base: bigint }
  | { readonly kind: "refused"; readonly code: number };

const REMEMBERED = 5;

/** Sequences are int32 that wrap to 0. */
const plus = (sequence: number, n: number): number => (sequence + n) & 0x7fffffff;

export function identityOf(batch: Uint8Array): BatchIdentity {
  const view = new DataView(batch.buffer, batch.byteOffset, batch.byteLength);
  return {
    producerId: view.getBigInt64(43),
    epoch: view.getInt16(51),
    sequence: view.getInt32(53),
    count: view.getInt32(57),
  };
}

export class ProducerStates {
  readonly #producers = new Map<bigint, ProducerState>();

  judge(b: BatchIdentity): SequenceVerdict {
    if (b.producerId < 0n) return { kind: "append" };
    const known = this.#producers.get(b.producerId);
    if (known === undefined) return { kind: "append" };
    if (b.epoch < known.epoch) return { kind: "refused", code: ERROR.INVALID_PRODUCER_EPOCH };
    if (b.epoch > known.epoch) {
      return b.sequence === 0
        ? { kind: "append" }
        : { kind: "refused", code: ERROR.OUT_OF_ORDER_SEQUENCE_NUMBER };
    }
    const last = plus(b.sequence, b.count - 1);
    const twin = known.batches.find((r) => r.sequence === b.sequence && r.last === last);
    if (twin !== undefined) return { kind: "duplicate", base: twin.base };
    const newest = known.batches.at(-1);
    const next = newest === undefined ? 0 : plus(newest.last, 1);
    return b.sequence === next
      ? { kind: "append" }
      : { kind: "refused", code: ERROR.OUT_OF_ORDER_SEQUENCE_NUMBER };
  }

  appended(b: BatchIdentity, base: bigint): void {
    if (b.producerId < 0n) return;
    const known = this.#producers.get(b.producerId);
    const batches = known?.epoch === b.epoch ? known.batches : [];
    const last = plus(b.sequence, b.count - 1);
    const kept = [...batches, { sequence: b.sequence, last, base }].slice(-REMEMBERED);
    this.#producers.set(b.producerId, { epoch: b.epoch, batches: kept });
  }

  /** The leader has lost what it knew of them. */
  forget(): void {
    this.#producers.clear();
  }

  /** As the marker of a transaction's end does: a later epoch fences. */
  ended(producerId: bigint, epoch: number): void {
    const known = this.#producers.get(producerId);
    if (known === undefined || known.epoch < epoch) this.#producers.set(producerId, { epoch, batches: [] });
  }
}
