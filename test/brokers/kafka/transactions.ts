/** The transaction coordinator of the test cluster, for all transactional ids: the first protocol (before KIP-890). */
import { ERROR } from "../../../src/adapters/kafka/wire/errors.ts";
import type { CommittedOffset } from "./cluster.ts";

export interface OpenTransaction {
  readonly partitions: Map<string, Set<number>>;
  /** group -> "topic/partition" -> offset: visible once it is committed. */
  readonly offsets: Map<string, Map<string, CommittedOffset>>;
}

interface Known {
  readonly producerId: bigint;
  epoch: number;
  open: OpenTransaction | null;
  /** How the last one ended, for an EndTxn that is sent again. */
  ended: "commit" | "abort" | null;
}

export interface Ended {
  readonly producerId: bigint;
  readonly epoch: number;
  readonly transaction: OpenTransaction;
}

export class Transactions {
  readonly #known = new Map<string, Known>();

  /** Raises the epoch of an id, which fences whoever had it. `abort`: what of it was open. */
  init(
    id: string,
    producer: { readonly id: bigint; readonly epoch: number },
    fresh: () => bigint,
  ): {
    readonly producerId: bigint;
    readonly epoch: number;
    readonly abort: Ended | null;
    readonly error: number;
  } {
    const known = this.#known.get(id);
    if (known === undefined) {
      const producerId = fresh();
      this.#known.set(id, { producerId, epoch: 0, open: null, ended: null });
      return { producerId, epoch: 0, abort: null, error: ERROR.NONE };
    }
    if (producer.id >= 0n && (producer.id !== known.producerId || producer.epoch !== known.epoch)) {
      return { producerId: -1n, epoch: -1, abort: null, error: ERROR.PRODUCER_FENCED };
    }
    const { open } = known;
    known.epoch++;
    known.open = null;
    known.ended = null;
    const { producerId, epoch } = known;
    return {
      producerId,
      epoch,
      abort: open === null ? null : { producerId, epoch, transaction: open },
      error: 0,
    };
  }

  /** 0, or why this producer may not do anything with the id. */
  check(id: string, producerId: bigint, epoch: number): number {
    const known = this.#known.get(id);
    if (known === undefined || known.producerId !== producerId) return ERROR.INVALID_PRODUCER_ID_MAPPING;
    return known.epoch === epoch ? ERROR.NONE : ERROR.PRODUCER_FENCED;
  }

  /** The open transaction, begun if there is none. Only after `check`. */
  open(id: string): OpenTransaction {
    const known = this.#known.get(id)!;
    known.open ??= { partitions: new Map(), offsets: new Map() };
    return known.open;
  }

  has(id: string, topic: string, partition: number): boolean {
    return this.#known.get(id)?.open?.partitions.get(topic)?.has(partition) === true;
  }

  /** Ends the open one; null: there is none and it ended that way before, or the error. */
  end(id: string, committed: boolean): Ended | null | number {
    const known = this.#known.get(id)!;
    const how = committed ? "commit" : "abort";
    if (known.open === null) return known.ended === how ? null : ERROR.INVALID_TXN_STATE;
    const transaction = known.open;
    known.open = null;
    known.ended = how;
    return { producerId: known.producerId, epoch: known.epoch, transaction };
  }
}
