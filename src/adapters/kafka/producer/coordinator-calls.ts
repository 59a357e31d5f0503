/** Requests to a coordinator, asked again until it answers with an outcome: it loads, moves, or is still at the last one. */
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import type { Chance } from "../../../core/time/chance.ts";
import { type Clock, sleep } from "../../../core/time/clock.ts";
import { CONTROL, type CoordinatorKind, type KafkaClient } from "../client.ts";
import type { BrokerLink } from "../client-link.ts";
import { Backoff, isWorthAnotherTry } from "../client-retry.ts";
import { ERROR, errorName, kafkaError } from "../wire/errors.ts";

export interface CallParts {
  readonly client: KafkaClient;
  readonly clock: Clock;
  readonly chance: Chance;
  /** Longest for one call with all its repetitions. */
  readonly timeoutMs: number;
}

/** A transaction that was just ended takes the coordinator some milliseconds: short pauses, without growing. */
const CONCURRENT_PAUSE_MS = 20;

/** What the request came to: an error code, 0 for success. */
type Asked = (link: BrokerLink, signal: AbortSignal) => Promise<number>;

export async function askCoordinator(
  parts: CallParts,
  kind: CoordinatorKind,
  key: string,
  what: string,
  signal: AbortSignal,
  ask: Asked,
): Promise<number> {
  const { client, clock } = parts;
  const backoff = new Backoff(parts.chance);
  const until = clock.monotonic() + parts.timeoutMs;
  for (;;) {
    let code: number | null = null;
    let trouble: Failure | null = null;
    let pause = 0;
    try {
      const broker = await client.coordinator(key, signal, kind);
      code = await ask(await client.link(broker, CONTROL, signal), signal);
    } catch (e) {
      trouble = asFailure(e);
      if (!isWorthAnotherTry(trouble, "running")) throw trouble;
      client.forgetCoordinator(key, kind);
    }
    if (code !== null) {
      const { action } = kafkaError(code);
      if (action === "coordinator" || action === "refresh") client.forgetCoordinator(key, kind);
      else if (action !== "retry") return code;
      if (code === ERROR.CONCURRENT_TRANSACTIONS) pause = CONCURRENT_PAUSE_MS;
    }
    if (pause === 0) pause = backoff.next();
    if (clock.monotonic() + pause >= until) throw outOfTime(what, parts.timeoutMs, code, trouble);
    await sleep(clock, pause, signal);
  }
}

function outOfTime(what: string, ms: number, code: number | null, trouble: Failure | null): Failure {
  const last = code === null ? (trouble?.message ?? "no answer") : errorName(code);
  return new Failure("kafka.timeout", `${what} had no outcome within ${ms} ms; the last answer: ${last}`, {
    ...(trouble === null ? {} : { cause: trouble }),
  });
}
