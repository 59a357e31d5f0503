/** What a producer can be told, with the defaults of Kafka's own clients unless a reason is given. */
import { Failure } from "../../../core/failure/failure.ts";
import type { Compression } from "../wire/records/seal.ts";
import type { ProducerRules } from "./machine-ports.ts";

export interface ProducerOptions {
  /** "all" (default): every in-sync replica has it. "leader": one has. "none": nothing is known. */
  readonly acks?: "all" | "leader" | "none";
  /** No record twice and none out of order, whatever has to be sent again. Default: true with acks "all". */
  readonly idempotent?: boolean;
  /** Default "none". */
  readonly compression?: "none" | "gzip" | "snappy" | "lz4" | "zstd";
  /** Of gzip (default 6) and zstd (default 3). */
  readonly compressionLevel?: number;
  /** A batch waits so long for further records. Default 5, as in Kafka 4. */
  readonly lingerMs?: number;
  /** Bytes of a batch before compression. Default 1,000,000, which fits the brokers' default limit of 1 MiB. */
  readonly batchBytes?: number;
  /** Largest record, in bytes. Default 1 MiB; raise it together with max.message.bytes of the topic. */
  readonly maxRecordBytes?: number;
  /**
   * Bytes of one request; a larger record goes alone. Default 2 MiB: a broker takes the requests of a connection one
   * after the other, and with larger ones it and the producer wait for each other in turn (measured: a quarter slower).
   */
  readonly requestBytes?: number;
  /** Memory of records that are not confirmed. `send` waits for room. Default 32 MiB. */
  readonly bufferBytes?: number;
  /** From the call to the confirmation, lingering and repetitions included. Default 120,000. */
  readonly deliveryTimeoutMs?: number;
  /** How long a broker may wait for its replicas. Default 30,000. */
  readonly ackTimeoutMs?: number;
  /** Present: transactions, with this id, which must be the same over restarts and no other producer's. */
  readonly transactionalId?: string;
  /** Longest transaction; the coordinator aborts one that is older. Default 60,000. */
  readonly transactionTimeoutMs?: number;
  /** Default 300,000. */
  readonly metadataRefreshMs?: number;
}

const LEVELS = { none: 0, gzip: 6, snappy: 0, lz4: 0, zstd: 3 } as const;
const ACKS = { all: -1, leader: 1, none: 0 } as const;

export function compressionOf(o: ProducerOptions): Compression {
  const name = o.compression ?? "none";
  return { codec: name === "none" ? null : name, level: o.compressionLevel ?? LEVELS[name] };
}

/** Throws config.conflict for what cannot stand together. */
export function rulesOf(o: ProducerOptions): ProducerRules {
  const acks = ACKS[o.acks ?? "all"];
  const transactional = o.transactionalId !== undefined;
  const idempotent = o.idempotent ?? acks === -1;
  if ((idempotent || transactional) && acks !== -1)
    throw new Failure("config.conflict", 'an idempotent or transactional producer needs acks "all"');
  if (transactional && !idempotent)
    throw new Failure("config.conflict", "a transactional producer is idempotent");
  const batchBytes = o.batchBytes ?? 1_000_000;
  return {
    acks,
    idempotent,
    transactional,
    compression: compressionOf(o),
    lingerMs: o.lingerMs ?? 5,
    batchBytes,
    maxRecordBytes: o.maxRecordBytes ?? 1_048_576,
    requestBytes: o.requestBytes ?? 2_097_152,
    bufferBytes: Math.max(o.bufferBytes ?? 33_554_432, 2 * batchBytes),
    deliveryTimeoutMs: o.deliveryTimeoutMs ?? 120_000,
  };
}

export interface SendOptions {
  /** All rows go there. Default: by key, and without one to any. */
  readonly partition?: number;
  /**
   * A row that brokers will never take (too large, or refused for what it is), and nothing was written of it: true, go on
   * without it. Absent or false: the call fails, and with it a transaction.
   */
  readonly leaveOut?: (row: number, failure: Failure) => boolean;
  readonly signal: AbortSignal;
}
