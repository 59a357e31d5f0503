/**
 * Goal: members that share a store and died elsewhere leave it after a while, and nobody who lives does. Method: keepers
 * on one object in memory, a simulated clock, a host that knows nothing of the others.
 */
import { expect, test } from "bun:test";
import { MemoryVersionedStore, sharedObject } from "../../../src/adapters/coverage/memory.ts";
import { CoverageKeeper } from "../../../src/core/coverage/keeper.ts";
import { asFailure } from "../../../src/core/failure/failure.ts";
import type { ObjectStore } from "../../../src/core/ports/object-store.ts";
import { drive } from "../../contract/drive.ts";
import { SimTime } from "../../sim/clock.ts";

const LEASE = 1_000;
const time = new SimTime();
const shared = sharedObject();

async function member(
  instance: string,
  life: "unknown" | "alive" | "dead" = "unknown",
): Promise<CoverageKeeper> {
  const self = { hostname: instance, pid: 1, bootId: "b", pidNamespace: "n", startTime: "1" };
  const keeper = new CoverageKeeper(
    { instance, leaseMs: LEASE, minIntervalMs: 0, shared: true },
    {
      versions: new MemoryVersionedStore(shared),
      objects: {} as unknown as ObjectStore,
      clock: time.clock(null),
      host: { self, isAlive: () => life },
    },
  );
  await drive(time, keeper.open());
  return keeper;
}

const owners = (k: CoverageKeeper) => k.state.owners.map((o) => o.instance).sort();

test("after 40 leases without a write a member elsewhere is out; one that writes stays; one that wakes is told", async () => {
  const a = await member("a");
  const b = await member("b");
  const dead = await member("dead");
  await drive(time, dead.claim(["s"], 3));
  for (let lease = 0; lease <= 41; lease++) {
    await drive(time, a.heartbeat());
    await drive(time, b.heartbeat());
    if (lease === 39) expect(owners(a)).toEqual(["a", "b", "dead"]);
    time.nowMs += LEASE;
  }
  await drive(time, a.heartbeat());
  expect(owners(a)).toEqual(["a", "b"]);
  expect(a.state.streams.get("s")?.owner).toBeNull();
  const late = await drive(
    time,
    dead.heartbeat().then(
      () => "none",
      (e) => asFailure(e).code,
    ),
  );
  expect(late).toBe("coverage.fenced");
});

test("one that surely is dead is out at the next heartbeat, one that surely lives never is", async () => {
  const c = await member("c", "alive");
  const d = await member("d", "alive");
  time.nowMs += 100 * LEASE;
  await drive(time, c.heartbeat());
  time.nowMs += 100 * LEASE;
  await drive(time, c.heartbeat());
  expect(owners(c)).toContain("d");
  expect(d.fenced).toBeNull();
  const e = await member("e", "dead");
  await drive(time, e.heartbeat());
  expect(owners(e)).toEqual(["e"]);
});
