/** Codes of the Kafka producer and of the sink that uses it. See codes.ts. */
import { spec } from "./code-spec.ts";

export const KAFKA_PRODUCER_CODES = {
  "kafka.record_too_large": spec(
    "runtime",
    false,
    "A record is larger than the producer, the topic or the broker takes.",
  ),
  "kafka.record_refused": spec(
    "runtime",
    false,
    "The broker, or the producer for it, refuses a record as it is.",
  ),
  "kafka.delivery_timeout": spec(
    "environment",
    true,
    "Records could not be sent within the delivery time-out; nothing of them was written.",
  ),
  "kafka.delivery_unknown": spec(
    "environment",
    false,
    "Records were sent and not confirmed in time: they may have been written.",
  ),
  "kafka.sequence_lost": spec(
    "environment",
    false,
    "A partition has lost records that it had confirmed to this producer.",
  ),
  "kafka.producer_fenced": spec(
    "environment",
    false,
    "Another producer uses the same transactional id and has taken its place.",
  ),
  "kafka.transaction_failed": spec(
    "runtime",
    true,
    "The transaction can only be aborted; then it can begin again.",
  ),
  "kafka.transaction_unknown": spec(
    "environment",
    false,
    "The outcome of the end of a transaction could not be learned in time.",
  ),
  "kafka.coverage_topic": spec(
    "environment",
    false,
    "The topic named as coverage_topic cannot keep coverage: it must be compacted and have two partitions.",
  ),
  "kafka.sink_is_source": spec(
    "config",
    false,
    "The sink would write into a topic that is read, or its coverage is read: name another topic.",
  ),
  "kafka.sink_recreated": spec(
    "environment",
    false,
    "A topic that the sink wrote to is gone or was made anew, and records of it count as landed.",
  ),
} as const;
