/** Why records were not written, in words for whoever reads the failure. */
import type { Code } from "../../../core/failure/codes.ts";
import { Failure } from "../../../core/failure/failure.ts";
import { errorName } from "../wire/errors.ts";
import type { PendingBatch } from "./batch.ts";
import type { PartitionAnswer } from "./machine-ports.ts";
import type { Verdict } from "./verdict.ts";

export function tooLarge(at: string, bytes: number, allowed: number): Failure {
  return new Failure("kafka.record_too_large", `a record of about ${bytes} bytes, ${allowed} are allowed`, {
    at,
    hint: "Raise the producer's largest record, and max.message.bytes of the topic",
  });
}

export function noDate(at: string, timestamp: number): Failure {
  return new Failure("kafka.record_refused", `a timestamp of ${timestamp} ms is no date`, {
    at,
    hint: "Timestamps are milliseconds since 1970; are these nanoseconds?",
  });
}

function codeOf(errorCode: number): "kafka.topic_denied" | "kafka.record_refused" | "kafka.broker_error" {
  const name = errorName(errorCode);
  if (name.endsWith("AUTHORIZATION_FAILED")) return "kafka.topic_denied";
  return name === "INVALID_RECORD" || name === "INVALID_TIMESTAMP"
    ? "kafka.record_refused"
    : "kafka.broker_error";
}

export function refusedFailure(code: Code, batch: PendingBatch, answer: PartitionAnswer): Failure {
  const bad = answer.recordErrors[0];
  const which =
    bad === undefined
      ? ""
      : `; record ${bad.batchIndex} of ${batch.count}: ${bad.batchIndexErrorMessage ?? "no reason given"}`;
  const text = answer.errorMessage === null ? "" : `: ${answer.errorMessage}`;
  return new Failure(
    code,
    `the broker refused a batch of ${batch.count} records with ${errorName(answer.errorCode)}${text}${which}`,
    {
      at: batch.place,
      retry: false,
    },
  );
}

export function sequenceLost(batch: PendingBatch, confirmed: bigint, answer: PartitionAnswer): Failure {
  return new Failure(
    "kafka.sequence_lost",
    `the broker does not know what came before a batch (${errorName(answer.errorCode)}), although it confirmed up to offset ${confirmed}`,
    {
      at: batch.place,
      hint: "Records that were confirmed are gone there; an unclean leader election does that",
    },
  );
}

export function outOfTime(batch: PendingBatch, ms: number): Failure {
  if (batch.sends === 0) {
    return new Failure("kafka.delivery_timeout", `not sent within ${ms} ms`, {
      at: batch.place,
      hint: "Nothing of it was written. Is the partition's leader up, and are the brokers as fast as the records come?",
    });
  }
  return new Failure(
    "kafka.delivery_unknown",
    `sent ${batch.sends} times and not confirmed within ${ms} ms`,
    {
      at: batch.place,
      hint: "It may have been written",
    },
  );
}

/** The code for what a broker refuses for good. */
export function codeOfRefusal(verdict: Verdict, errorCode: number): Code {
  if (verdict === "fenced") return "kafka.producer_fenced";
  return verdict === "abortable" ? "kafka.transaction_failed" : codeOf(errorCode);
}
