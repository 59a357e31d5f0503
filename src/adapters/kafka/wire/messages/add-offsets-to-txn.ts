/** AddOffsetsToTxn (key 25): tells the coordinator that a group's offsets will be part of the transaction. */
import { type ApiSpec, field } from "../spec.ts";

export const addOffsetsToTxn: ApiSpec = {
  key: 25,
  request: {
    versions: [0, 4],
    flexible: 3,
    fields: [
      field("transactionalId", "string", 0),
      field("producerId", "int64", 0),
      field("producerEpoch", "int16", 0),
      field("groupId", "string", 0),
    ],
  },
  response: {
    versions: [0, 4],
    flexible: 3,
    fields: [field("throttleTimeMs", "int32", 0), field("errorCode", "int16", 0)],
  },
};

export interface AddOffsetsToTxnRequest {
  readonly transactionalId: string;
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly groupId: string;
}

export interface AddOffsetsToTxnResponse {
  readonly throttleTimeMs: number;
  readonly errorCode: number;
}
