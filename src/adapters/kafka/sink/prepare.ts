/** Proves at the start that the cluster can be reached and keeps coverage, before anything is fetched. */
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import { type Clock, sleep } from "../../../core/time/clock.ts";
import { type KafkaClient, placeOf } from "../client.ts";
import { isWorthAnotherTry } from "../client-retry.ts";
import type { KafkaSinkSettings } from "./settings.ts";
import { prepareCoverageTopic, type TopicRules } from "./targets.ts";

const PAUSE_MS = 250;

/**
 * Brokers that are not up yet are waited for as long as a connection may take; what will not pass is told at once. The
 * topics that streams go to are looked at when the streams are claimed.
 */
export async function prepareSink(
  client: KafkaClient,
  settings: KafkaSinkSettings,
  rules: TopicRules,
  clock: Clock,
): Promise<void> {
  const until = clock.monotonic() + settings.connectTimeoutMs;
  for (;;) {
    try {
      await client.refresh([], client.life);
      return await prepareCoverageTopic(client, rules, clock, client.life);
    } catch (e) {
      const failure = asFailure(e);
      if (!isWorthAnotherTry(failure, "starting")) throw failure;
      if (clock.monotonic() + PAUSE_MS >= until) throw unreachable(settings, failure);
      await sleep(clock, PAUSE_MS, client.life);
    }
  }
}

function unreachable(settings: KafkaSinkSettings, failure: Failure): Failure {
  const at = settings.bootstrap.map(placeOf).join(", ");
  const text = `the sink's brokers were not ready within ${settings.connectTimeoutMs} ms: ${failure.message}`;
  return new Failure("kafka.unreachable", text, {
    at,
    cause: failure,
    // An outage, only longer: where the sink stands beside another it is waited for beside the work.
    retry: true,
    ...(failure.hint === null ? {} : { hint: failure.hint }),
  });
}
