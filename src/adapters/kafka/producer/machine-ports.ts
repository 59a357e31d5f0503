/** What the machine is told and what it tells: its rules, answers of brokers, and whoever drives it. */
import type { Failure } from "../../../core/failure/failure.ts";
import type { Compression } from "../wire/records/seal.ts";

export interface ProducerRules {
  /** -1: all in-sync replicas; 1: the leader; 0: nobody, and nothing is known. */
  readonly acks: -1 | 0 | 1;
  readonly idempotent: boolean;
  readonly transactional: boolean;
  readonly compression: Compression;
  readonly lingerMs: number;
  /** A batch takes no further record above it, before compression. */
  readonly batchBytes: number;
  /** Largest batch that is sent at all. */
  readonly maxRecordBytes: number;
  /** Of one request, over the partitions of a broker; a larger batch goes alone. */
  readonly requestBytes: number;
  readonly deliveryTimeoutMs: number;
  readonly bufferBytes: number;
}

export interface PartitionAnswer {
  readonly errorCode: number;
  readonly baseOffset: bigint;
  readonly logStartOffset: bigint;
  readonly errorMessage: string | null;
  readonly recordErrors: readonly {
    readonly batchIndex: number;
    readonly batchIndexErrorMessage: string | null;
  }[];
}

/** What the driver has to do about an answer. */
export type Consequence = "none" | "refresh";

export interface MachineHost {
  /** Why the transaction can only be aborted, or the producer is of no use any more. */
  spoiled(failure: Failure, fatal: boolean): void;
  /** There is room again, or a batch is settled. */
  settled(): void;
  /** Pause before a batch is sent again, ms. */
  pause(sends: number): number;
}
