/**
 * Kafka's error codes: the name, whether Kafka's own clients hold it to be retriable, and what a consumer does about
 * it. One place decides; callers look at `action` and never at numbers of their own.
 */

export type ErrorAction =
  | "ok"
  /** The same request again after a pause. */
  | "retry"
  /** Fetch metadata first: leader, topic or topic id have changed. */
  | "refresh"
  /** Find the group's coordinator anew, then again. */
  | "coordinator"
  /** Open a new fetch session at once; no data was lost. */
  | "session"
  /** The position is outside of the log: the out-of-range policy decides. */
  | "reset"
  /** The broker holds damaged data: stop at this offset and say so; neither skip nor spin. */
  | "corrupt"
  /** The principal lacks a permission; only an operator can change that. */
  | "denied"
  /** Credentials or mechanism were refused. */
  | "login"
  /** Another version of the request is needed. */
  | "version"
  /** Membership of the group has changed. */
  | "rejoin"
  /** Every known broker is stale: begin at the bootstrap addresses again (KIP-1102). */
  | "rebootstrap"
  /** Not retryable. */
  | "fail";

export interface KafkaError {
  readonly code: number;
  readonly name: string;
  /** As Kafka's Java client classes it. */
  readonly retriable: boolean;
  readonly action: ErrorAction;
}

type Row = readonly [code: number, name: string, retriable: boolean, action: ErrorAction];

/** Kafka 4.4.0. UNKNOWN_SERVER_ERROR is retried although Kafka calls it not retriable: its own consumer fetches again. */
const ROWS: readonly Row[] = [
  [-1, "UNKNOWN_SERVER_ERROR", false, "retry"],
  [0, "NONE", false, "ok"],
  [1, "OFFSET_OUT_OF_RANGE", false, "reset"],
  [2, "CORRUPT_MESSAGE", true, "corrupt"],
  [3, "UNKNOWN_TOPIC_OR_PARTITION", true, "refresh"],
  [4, "INVALID_FETCH_SIZE", false, "fail"],
  [5, "LEADER_NOT_AVAILABLE", true, "refresh"],
  [6, "NOT_LEADER_OR_FOLLOWER", true, "refresh"],
  [7, "REQUEST_TIMED_OUT", true, "retry"],
  [8, "BROKER_NOT_AVAILABLE", false, "refresh"],
  [9, "REPLICA_NOT_AVAILABLE", true, "refresh"],
  [10, "MESSAGE_TOO_LARGE", false, "fail"],
  [11, "STALE_CONTROLLER_EPOCH", false, "fail"],
  [12, "OFFSET_METADATA_TOO_LARGE", false, "fail"],
  [13, "NETWORK_EXCEPTION", true, "refresh"],
  [14, "COORDINATOR_LOAD_IN_PROGRESS", true, "retry"],
  [15, "COORDINATOR_NOT_AVAILABLE", true, "coordinator"],
  [16, "NOT_COORDINATOR", true, "coordinator"],
  [17, "INVALID_TOPIC_EXCEPTION", false, "fail"],
  [18, "RECORD_LIST_TOO_LARGE", false, "fail"],
  [19, "NOT_ENOUGH_REPLICAS", true, "retry"],
  [20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", true, "retry"],
  [21, "INVALID_REQUIRED_ACKS", false, "fail"],
  [22, "ILLEGAL_GENERATION", false, "rejoin"],
  [23, "INCONSISTENT_GROUP_PROTOCOL", false, "fail"],
  [24, "INVALID_GROUP_ID", false, "fail"],
  [25, "UNKNOWN_MEMBER_ID", false, "rejoin"],
  [26, "INVALID_SESSION_TIMEOUT", false, "fail"],
  [27, "REBALANCE_IN_PROGRESS", false, "rejoin"],
  [28, "INVALID_COMMIT_OFFSET_SIZE", false, "fail"],
  [29, "TOPIC_AUTHORIZATION_FAILED", false, "denied"],
  [30, "GROUP_AUTHORIZATION_FAILED", false, "denied"],
  [31, "CLUSTER_AUTHORIZATION_FAILED", false, "denied"],
  [32, "INVALID_TIMESTAMP", false, "fail"],
  [33, "UNSUPPORTED_SASL_MECHANISM", false, "login"],
  [34, "ILLEGAL_SASL_STATE", false, "login"],
  [35, "UNSUPPORTED_VERSION", false, "version"],
  [36, "TOPIC_ALREADY_EXISTS", false, "fail"],
  [37, "INVALID_PARTITIONS", false, "fail"],
  [38, "INVALID_REPLICATION_FACTOR", false, "fail"],
  [39, "INVALID_REPLICA_ASSIGNMENT", false, "fail"],
  [40, "INVALID_CONFIG", false, "fail"],
  [41, "NOT_CONTROLLER", true, "refresh"],
  [42, "INVALID_REQUEST", false, "fail"],
  [43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", false, "version"],
  [44, "POLICY_VIOLATION", false, "fail"],
  [45, "OUT_OF_ORDER_SEQUENCE_NUMBER", false, "fail"],
  [46, "DUPLICATE_SEQUENCE_NUMBER", false, "fail"],
  [47, "INVALID_PRODUCER_EPOCH", false, "fail"],
  [48, "INVALID_TXN_STATE", false, "fail"],
  [49, "INVALID_PRODUCER_ID_MAPPING", false, "fail"],
  [50, "INVALID_TRANSACTION_TIMEOUT", false, "fail"],
  [51, "CONCURRENT_TRANSACTIONS", true, "retry"],
  [52, "TRANSACTION_COORDINATOR_FENCED", false, "fail"],
  [53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", false, "denied"],
  [54, "SECURITY_DISABLED", false, "login"],
  [55, "OPERATION_NOT_ATTEMPTED", false, "retry"],
  [56, "KAFKA_STORAGE_ERROR", true, "refresh"],
  [57, "LOG_DIR_NOT_FOUND", false, "fail"],
  [58, "SASL_AUTHENTICATION_FAILED", false, "login"],
  [59, "UNKNOWN_PRODUCER_ID", false, "fail"],
  [60, "REASSIGNMENT_IN_PROGRESS", false, "retry"],
  [61, "DELEGATION_TOKEN_AUTH_DISABLED", false, "fail"],
  [62, "DELEGATION_TOKEN_NOT_FOUND", false, "fail"],
  [63, "DELEGATION_TOKEN_OWNER_MISMATCH", false, "fail"],
  [64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", false, "fail"],
  [65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", false, "denied"],
  [66, "DELEGATION_TOKEN_EXPIRED", false, "login"],
  [67, "INVALID_PRINCIPAL_TYPE", false, "login"],
  [68, "NON_EMPTY_GROUP", false, "fail"],
  [69, "GROUP_ID_NOT_FOUND", false, "fail"],
  [70, "FETCH_SESSION_ID_NOT_FOUND", true, "session"],
  [71, "INVALID_FETCH_SESSION_EPOCH", true, "session"],
  [72, "LISTENER_NOT_FOUND", true, "refresh"],
  [73, "TOPIC_DELETION_DISABLED", false, "fail"],
  [74, "FENCED_LEADER_EPOCH", true, "refresh"],
  [75, "UNKNOWN_LEADER_EPOCH", true, "retry"],
  [76, "UNSUPPORTED_COMPRESSION_TYPE", false, "version"],
  [77, "STALE_BROKER_EPOCH", false, "fail"],
  [78, "OFFSET_NOT_AVAILABLE", true, "retry"],
  [79, "MEMBER_ID_REQUIRED", false, "rejoin"],
  [80, "PREFERRED_LEADER_NOT_AVAILABLE", true, "refresh"],
  [81, "GROUP_MAX_SIZE_REACHED", false, "fail"],
  [82, "FENCED_INSTANCE_ID", false, "rejoin"],
  [83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", true, "refresh"],
  [84, "ELECTION_NOT_NEEDED", true, "retry"],
  [85, "NO_REASSIGNMENT_IN_PROGRESS", false, "fail"],
  [86, "GROUP_SUBSCRIBED_TO_TOPIC", false, "fail"],
  [87, "INVALID_RECORD", false, "fail"],
  [88, "UNSTABLE_OFFSET_COMMIT", true, "retry"],
  [89, "THROTTLING_QUOTA_EXCEEDED", true, "retry"],
  [90, "PRODUCER_FENCED", false, "fail"],
  [91, "RESOURCE_NOT_FOUND", false, "fail"],
  [92, "DUPLICATE_RESOURCE", false, "fail"],
  [93, "UNACCEPTABLE_CREDENTIAL", false, "fail"],
  [94, "INCONSISTENT_VOTER_SET", false, "fail"],
  [95, "INVALID_UPDATE_VERSION", false, "fail"],
  [96, "FEATURE_UPDATE_FAILED", false, "fail"],
  [97, "PRINCIPAL_DESERIALIZATION_FAILURE", false, "login"],
  [98, "SNAPSHOT_NOT_FOUND", false, "fail"],
  [99, "POSITION_OUT_OF_RANGE", false, "fail"],
  [100, "UNKNOWN_TOPIC_ID", true, "refresh"],
  [101, "DUPLICATE_BROKER_REGISTRATION", false, "fail"],
  [102, "BROKER_ID_NOT_REGISTERED", false, "fail"],
  [103, "INCONSISTENT_TOPIC_ID", true, "refresh"],
  [104, "INCONSISTENT_CLUSTER_ID", false, "fail"],
  [105, "TRANSACTIONAL_ID_NOT_FOUND", false, "fail"],
  [106, "FETCH_SESSION_TOPIC_ID_ERROR", true, "session"],
  [107, "INELIGIBLE_REPLICA", false, "fail"],
  [108, "NEW_LEADER_ELECTED", false, "fail"],
  [109, "OFFSET_MOVED_TO_TIERED_STORAGE", false, "fail"],
  [110, "FENCED_MEMBER_EPOCH", false, "rejoin"],
  [111, "UNRELEASED_INSTANCE_ID", false, "fail"],
  [112, "UNSUPPORTED_ASSIGNOR", false, "fail"],
  [113, "STALE_MEMBER_EPOCH", false, "rejoin"],
  [114, "MISMATCHED_ENDPOINT_TYPE", false, "fail"],
  [115, "UNSUPPORTED_ENDPOINT_TYPE", false, "fail"],
  [116, "UNKNOWN_CONTROLLER_ID", false, "fail"],
  [117, "UNKNOWN_SUBSCRIPTION_ID", false, "fail"],
  [118, "TELEMETRY_TOO_LARGE", false, "fail"],
  [119, "INVALID_REGISTRATION", false, "fail"],
  [120, "TRANSACTION_ABORTABLE", false, "fail"],
  [121, "INVALID_RECORD_STATE", false, "fail"],
  [122, "SHARE_SESSION_NOT_FOUND", true, "retry"],
  [123, "INVALID_SHARE_SESSION_EPOCH", true, "retry"],
  [124, "FENCED_STATE_EPOCH", false, "fail"],
  [125, "INVALID_VOTER_KEY", false, "fail"],
  [126, "DUPLICATE_VOTER", false, "fail"],
  [127, "VOTER_NOT_FOUND", false, "fail"],
  [128, "INVALID_REGULAR_EXPRESSION", false, "fail"],
  [129, "REBOOTSTRAP_REQUIRED", false, "rebootstrap"],
  [130, "STREAMS_INVALID_TOPOLOGY", false, "fail"],
  [131, "STREAMS_INVALID_TOPOLOGY_EPOCH", false, "fail"],
  [132, "STREAMS_TOPOLOGY_FENCED", false, "fail"],
  [133, "SHARE_SESSION_LIMIT_REACHED", true, "retry"],
  [134, "GROUP_DELETION_FAILED", false, "fail"],
  [135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", false, "fail"],
  [136, "CONTROLLER_ID_NOT_REGISTERED", false, "fail"],
];

const BY_CODE = new Map<number, KafkaError>(
  ROWS.map(([code, name, retriable, action]) => [code, { code, name, retriable, action }]),
);

/** All codes that we know, in their order. */
export const KAFKA_ERRORS: readonly KafkaError[] = [...BY_CODE.values()];

/** A code that a later Kafka may bring is not retryable: unknown means no. */
export function kafkaError(code: number): KafkaError {
  return BY_CODE.get(code) ?? { code, name: `UNKNOWN_ERROR_${code}`, retriable: false, action: "fail" };
}

export function errorName(code: number): string {
  return kafkaError(code).name;
}

/** Codes that our own code names. */
export const ERROR = {
  NONE: 0,
  OFFSET_OUT_OF_RANGE: 1,
  CORRUPT_MESSAGE: 2,
  UNKNOWN_TOPIC_OR_PARTITION: 3,
  LEADER_NOT_AVAILABLE: 5,
  NOT_LEADER_OR_FOLLOWER: 6,
  REQUEST_TIMED_OUT: 7,
  MESSAGE_TOO_LARGE: 10,
  COORDINATOR_LOAD_IN_PROGRESS: 14,
  COORDINATOR_NOT_AVAILABLE: 15,
  NOT_COORDINATOR: 16,
  NOT_ENOUGH_REPLICAS: 19,
  INVALID_TOPIC_EXCEPTION: 17,
  RECORD_LIST_TOO_LARGE: 18,
  ILLEGAL_GENERATION: 22,
  INCONSISTENT_GROUP_PROTOCOL: 23,
  INVALID_GROUP_ID: 24,
  UNKNOWN_MEMBER_ID: 25,
  REBALANCE_IN_PROGRESS: 27,
  TOPIC_AUTHORIZATION_FAILED: 29,
  GROUP_AUTHORIZATION_FAILED: 30,
  UNSUPPORTED_SASL_MECHANISM: 33,
  ILLEGAL_SASL_STATE: 34,
  UNSUPPORTED_VERSION: 35,
  TOPIC_ALREADY_EXISTS: 36,
  INVALID_REQUEST: 42,
  UNSUPPORTED_FOR_MESSAGE_FORMAT: 43,
  OUT_OF_ORDER_SEQUENCE_NUMBER: 45,
  DUPLICATE_SEQUENCE_NUMBER: 46,
  INVALID_PRODUCER_EPOCH: 47,
  INVALID_TXN_STATE: 48,
  INVALID_PRODUCER_ID_MAPPING: 49,
  CONCURRENT_TRANSACTIONS: 51,
  TRANSACTION_COORDINATOR_FENCED: 52,
  SASL_AUTHENTICATION_FAILED: 58,
  UNKNOWN_PRODUCER_ID: 59,
  GROUP_ID_NOT_FOUND: 69,
  FETCH_SESSION_ID_NOT_FOUND: 70,
  INVALID_FETCH_SESSION_EPOCH: 71,
  FENCED_LEADER_EPOCH: 74,
  UNKNOWN_LEADER_EPOCH: 75,
  UNSUPPORTED_COMPRESSION_TYPE: 76,
  MEMBER_ID_REQUIRED: 79,
  FENCED_INSTANCE_ID: 82,
  INVALID_RECORD: 87,
  PRODUCER_FENCED: 90,
  UNKNOWN_TOPIC_ID: 100,
  INCONSISTENT_TOPIC_ID: 103,
  FETCH_SESSION_TOPIC_ID_ERROR: 106,
  FENCED_MEMBER_EPOCH: 110,
  UNRELEASED_INSTANCE_ID: 111,
  STALE_MEMBER_EPOCH: 113,
  TRANSACTION_ABORTABLE: 120,
} as const;
