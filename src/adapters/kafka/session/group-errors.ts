/** What the coordinator's error codes mean to a member: one table for both protocols. */
import { Failure } from "../../../core/failure/failure.ts";
import { kafkaError } from "../wire/errors.ts";

export type GroupVerdict =
  | "ok"
  /** Again after a pause. */
  | "again"
  /** Find the coordinator, then again. */
  | "coordinator"
  /** The group forms anew: join, with what we own. */
  | "rebalance"
  /** The generation is over and went on without us: what we own is lost, the member id stands. */
  | "generation"
  /** The coordinator does not know us any more: what we own and the member id are lost. */
  | "unknown"
  /** Here is your id, join with it. */
  | "member_id"
  /** Another process uses our instance id. */
  | "fenced"
  | "fatal";

const VERDICTS: ReadonlyMap<string, GroupVerdict> = new Map([
  ["NONE", "ok"],
  ["COORDINATOR_LOAD_IN_PROGRESS", "again"],
  ["REQUEST_TIMED_OUT", "again"],
  ["UNKNOWN_SERVER_ERROR", "again"],
  ["COORDINATOR_NOT_AVAILABLE", "coordinator"],
  ["NOT_COORDINATOR", "coordinator"],
  ["REBALANCE_IN_PROGRESS", "rebalance"],
  ["ILLEGAL_GENERATION", "generation"],
  ["UNKNOWN_MEMBER_ID", "unknown"],
  ["FENCED_MEMBER_EPOCH", "unknown"],
  ["STALE_MEMBER_EPOCH", "unknown"],
  ["MEMBER_ID_REQUIRED", "member_id"],
  ["FENCED_INSTANCE_ID", "fenced"],
  // Its former holder has not left yet, or lives: it is told apart by time.
  ["UNRELEASED_INSTANCE_ID", "again"],
]);

export function groupVerdict(errorCode: number): GroupVerdict {
  const { name, retriable } = kafkaError(errorCode);
  return VERDICTS.get(name) ?? (retriable ? "again" : "fatal");
}

const HINTS: Readonly<Record<string, string>> = {
  INCONSISTENT_GROUP_PROTOCOL:
    "The other members of the group share no assignor with us, or speak another protocol. Set source.assignors, or source.group_protocol, to what they use",
  INVALID_SESSION_TIMEOUT:
    "The brokers allow group.min.session.timeout.ms to group.max.session.timeout.ms. Set source.session_timeout_ms within",
  GROUP_MAX_SIZE_REACHED: "The brokers' group.max.size is reached: run fewer processes",
  UNSUPPORTED_ASSIGNOR: "The brokers' group.consumer.assignors lacks it. Leave source.server_assignor out",
};

export function groupRefused(group: string, errorCode: number, message: string | null): Failure {
  const { name } = kafkaError(errorCode);
  if (name === "GROUP_AUTHORIZATION_FAILED") {
    return new Failure("kafka.group_denied", `group ${group}: no permission (${name})`, {
      at: "source.group",
      hint: "Grant READ on the group to this user",
    });
  }
  const hint = HINTS[name];
  const text = message === null || message === "" ? name : `${name}: ${message}`;
  return new Failure("kafka.group_refused", `group ${group} does not take us: ${text}`, {
    at: "source.group",
    ...(hint === undefined ? {} : { hint }),
  });
}

export function fencedInstance(group: string, instanceId: string): Failure {
  return new Failure(
    "kafka.instance_fenced",
    `another member of group ${group} has the instance id ${instanceId}`,
    {
      at: "source.group_instance_id",
      hint: "Give each process an instance id of its own. Nothing is lost: what was not acknowledged is read again by the other one",
    },
  );
}
