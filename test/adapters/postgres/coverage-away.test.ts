/**
 * Goal: recovery learns that the server of a sink is away, and goes on with its other sinks, where live ingest waits for the
 * server. Method: a port on which nobody listens.
 */
import { expect, test } from "bun:test";
import { createNet } from "../../../src/adapters/net/net.ts";
import { PostgresCoverage } from "../../../src/adapters/postgres/coverage.ts";
import { systemChance } from "../../../src/adapters/system/chance.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { systemSaslCrypto } from "../../../src/adapters/system/sasl-crypto.ts";
import { recoveryInstance } from "../../../src/core/coverage/windows.ts";
import { asFailure } from "../../../src/core/failure/failure.ts";

function coverageOf(instance: string, trouble: () => void): PostgresCoverage {
  const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = probe;
  probe.stop(true);
  const settings = {
    hosts: [{ host: "127.0.0.1", port }],
    user: "u",
    password: null,
    database: "d",
    applicationName: "twg test",
    sslMode: "disable" as const,
    channelBinding: "disable" as const,
    tls: {},
    connectTimeoutMs: 1_000,
    answerTimeoutMs: 1_000,
  };
  const host = {
    self: { hostname: "h", pid: 1, bootId: "b", pidNamespace: "n", startTime: "s" },
    isAlive: () => "unknown" as const,
  };
  const place = { settings, stateSchema: "twg", pipeline: "p", sink: "s", instance };
  return new PostgresCoverage(
    { ...place, leaseMs: 15_000, lockTimeoutMs: 1_000 },
    {
      ...{ net: createNet(systemClock), clock: systemClock, crypto: systemSaslCrypto },
      ...{ chance: systemChance, host, trouble },
    },
  );
}

test("recovery is told, and can leave the sink out", async () => {
  const coverage = coverageOf(recoveryInstance("a"), () => {});
  const failure = await coverage.open().then(() => null, asFailure);
  expect(failure?.code).toBe("net.refused");
  await coverage.close();
});

test("live ingest waits, and says so", async () => {
  const told = Promise.withResolvers<void>();
  const coverage = coverageOf("live", () => told.resolve());
  const opened = coverage.open().then(() => null, asFailure);
  await told.promise;
  await coverage.close();
  expect((await opened)?.code).toBe("internal.cancelled");
});
