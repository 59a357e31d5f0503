/**
 * Secrets that were replaced while we run heal a connection by themselves: when a peer refuses a login or a certificate,
 * they are read again, as SIGHUP would do, before the next try or soon after.
 */
import type { TwgEvent } from "../core/observe/events.ts";
import type { Observer } from "../core/ports/observer.ts";
import type { Clock } from "../core/time/clock.ts";

/** A secret that is wrong for good must not have its folder read with every try. */
const SHORTEST_PAUSE_MS = 10_000;

/** Failures that another secret, certificate or key may heal. */
const HEALED: ReadonlySet<string> = new Set([
  "kafka.auth_failed",
  "net.tls_untrusted",
  "net.tls_expired",
  "net.tls_client_cert",
  "net.tls_material",
  "oidc.refused",
  "registry.denied",
  "sasl.credentials_invalid",
  "sasl.server_unproven",
]);

export interface SecretWatch {
  /** To be told of every event besides. */
  readonly observer: Observer;
  /** Reads again now. */
  reread(): void;
}

/** `reread` reports its own failures. */
export function watchSecrets(inner: Observer, clock: Clock, reread: () => Promise<void>): SecretWatch {
  let last = Number.NEGATIVE_INFINITY;
  let reading = false;
  const run = () => {
    if (reading) return;
    reading = true;
    last = clock.monotonic();
    void reread().finally(() => {
      reading = false;
    });
  };
  const noticed = (event: TwgEvent) => {
    if (event.e !== "source.troubled" && event.e !== "sink.troubled" && event.e !== "coverage.troubled")
      return;
    if (!HEALED.has(event.failure.code)) return;
    if (clock.monotonic() - last >= SHORTEST_PAUSE_MS) run();
  };
  return {
    observer: {
      emit(event) {
        inner.emit(event);
        noticed(event);
      },
    },
    reread: run,
  };
}
