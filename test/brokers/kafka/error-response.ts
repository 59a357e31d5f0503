/** An error for a whole request, in the shape of its API. Errors of one partition are `FakeCluster.failPartition`. */
import type {
  ApiName,
  DecodedRequest,
  Draft,
  ResponseOf,
} from "../../../src/adapters/kafka/wire/protocol.ts";

export function topLevelError(request: DecodedRequest, code: number): Draft<ResponseOf<ApiName>> {
  switch (request.api) {
    case "FindCoordinator":
      return {
        errorCode: code,
        nodeId: -1,
        port: -1,
        coordinators: request.body.coordinatorKeys.map((key) => ({
          key,
          errorCode: code,
          nodeId: -1,
          port: -1,
        })),
      };
    case "OffsetFetch":
      return {
        errorCode: code,
        groups: request.body.groups.map(({ groupId }) => ({ groupId, errorCode: code })),
      };
    case "JoinGroup":
    case "SyncGroup":
    case "Heartbeat":
    case "LeaveGroup":
    case "ConsumerGroupHeartbeat":
    case "Fetch":
    case "Metadata":
    case "ApiVersions":
    case "InitProducerId":
    case "AddOffsetsToTxn":
    case "EndTxn":
    case "ListGroups":
    case "SaslHandshake":
    case "SaslAuthenticate":
      return { errorCode: code };
    default:
      throw new Error(`${request.api} has no error for the whole request`);
  }
}
