/** Goal: a refused login has the secrets read again, and no more often than it should. Method: events and a clock of ours. */
import { expect, test } from "bun:test";
import { watchSecrets } from "../../src/commands/secret-watch.ts";
import type { Code } from "../../src/core/failure/codes.ts";
import { Failure, toWire } from "../../src/core/failure/failure.ts";
import type { TwgEvent } from "../../src/core/observe/events.ts";
import { ManualClock } from "../brokers/kafka/manual-clock.ts";

const troubled = (code: Code): TwgEvent => ({
  e: "source.troubled",
  failure: toWire(new Failure(code, "x")),
});

function world() {
  const clock = new ManualClock();
  const told: TwgEvent[] = [];
  const reads: PromiseWithResolvers<void>[] = [];
  const watch = watchSecrets({ emit: (e) => told.push(e) }, clock, () => {
    const read = Promise.withResolvers<void>();
    reads.push(read);
    return read.promise;
  });
  /** The read under way ends. */
  const end = async () => {
    reads.at(-1)?.resolve();
    await Bun.sleep(0);
  };
  return { clock, told, reads, watch, end };
}

test("a refused login and a refused certificate, at most every ten seconds", async () => {
  const { clock, told, reads, watch, end } = world();
  watch.observer.emit(troubled("kafka.auth_failed"));
  expect(reads.length).toBe(1);
  await end();
  clock.advance(9_999);
  watch.observer.emit(troubled("kafka.auth_failed"));
  expect(reads.length).toBe(1);
  clock.advance(1);
  watch.observer.emit(troubled("net.tls_expired"));
  expect(reads.length).toBe(2);
  expect(told.length).toBe(3);
});

test("so does a sink's login, of a lane or of its coverage", async () => {
  const { clock, reads, watch, end } = world();
  const failure = toWire(new Failure("kafka.auth_failed", "x"));
  watch.observer.emit({ e: "sink.troubled", sink: "raw", failure });
  await end();
  clock.advance(10_000);
  watch.observer.emit({ e: "coverage.troubled", failure });
  expect(reads.length).toBe(2);
});

test("an outage is no reason", () => {
  const { reads, watch } = world();
  watch.observer.emit(troubled("net.refused"));
  watch.observer.emit({ e: "source.healthy" });
  expect(reads.length).toBe(0);
});

test("by hand at any time, but one at a time", async () => {
  const { reads, watch, end } = world();
  watch.reread();
  watch.reread();
  expect(reads.length).toBe(1);
  await end();
  watch.reread();
  expect(reads.length).toBe(2);
});
