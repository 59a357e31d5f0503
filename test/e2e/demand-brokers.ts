/** What every file of end-to-end tests begins with. */
import { expect, test } from "bun:test";
import { CLUSTERS, MAIN } from "./real-kafka.ts";

/** A loud line where the brokers are missing, and a failure where that is not allowed (TWG_STRICT). */
export function demandBrokers(what: string): void {
  const strict = process.env.TWG_STRICT === "1";
  if (MAIN === null)
    console.error(`SKIP: no real Kafka brokers (scripts/with-servers.sh): ${what} not tried`);
  test.skipIf(MAIN === null && !strict)(`${what}: there are real brokers`, () => {
    expect(CLUSTERS.length).toBeGreaterThan(0);
  });
}
