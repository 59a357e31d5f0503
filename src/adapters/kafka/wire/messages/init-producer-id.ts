/** InitProducerId (key 22). v3 carries the epoch to raise (KIP-360); v6 two-phase commit (KIP-939). */
import { type ApiSpec, field } from "../spec.ts";

export const initProducerId: ApiSpec = {
  key: 22,
  request: {
    versions: [0, 6],
    flexible: 2,
    fields: [
      field("transactionalId", "string", 0, { nullable: 0 }),
      field("transactionTimeoutMs", "int32", 0),
      field("producerId", "int64", 3, { preset: -1n }),
      field("producerEpoch", "int16", 3, { preset: -1 }),
      field("enable2Pc", "bool", 6, { preset: false }),
      field("keepPreparedTxn", "bool", 6, { preset: false }),
    ],
  },
  response: {
    versions: [0, 6],
    flexible: 2,
    fields: [
      field("throttleTimeMs", "int32", 0),
      field("errorCode", "int16", 0),
      field("producerId", "int64", 0, { preset: -1n }),
      field("producerEpoch", "int16", 0),
      field("ongoingTxnProducerId", "int64", 6, { preset: -1n }),
      field("ongoingTxnProducerEpoch", "int16", 6, { preset: -1 }),
    ],
  },
};

export interface InitProducerIdRequest {
  readonly transactionalId: string | null;
  readonly transactionTimeoutMs: number;
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly enable2Pc: boolean;
  readonly keepPreparedTxn: boolean;
}

export interface InitProducerIdResponse {
  readonly throttleTimeMs: number;
  readonly errorCode: number;
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly ongoingTxnProducerId: bigint;
  readonly ongoingTxnProducerEpoch: number;
}
