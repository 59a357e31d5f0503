/** EndTxn (key 26). v5 answers with the producer id and epoch of the next transaction (KIP-890). */
import { type ApiSpec, field } from "../spec.ts";

export const endTxn: ApiSpec = {
  key: 26,
  request: {
    versions: [0, 5],
    flexible: 3,
    fields: [
      field("transactionalId", "string", 0),
      field("producerId", "int64", 0),
      field("producerEpoch", "int16", 0),
      field("committed", "bool", 0),
    ],
  },
  response: {
    versions: [0, 5],
    flexible: 3,
    fields: [
      field("throttleTimeMs", "int32", 0),
      field("errorCode", "int16", 0),
      field("producerId", "int64", 5, { preset: -1n }),
      field("producerEpoch", "int16", 5, { preset: -1 }),
    ],
  },
};

export interface EndTxnRequest {
  readonly transactionalId: string;
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly committed: boolean;
}

export interface EndTxnResponse {
  readonly throttleTimeMs: number;
  readonly errorCode: number;
  /** -1: not told. */
  readonly producerId: bigint;
  readonly producerEpoch: number;
}
