/** Goal: the network in memory delivers in order, late and in pieces, the same way for the same seed. Method: clock and chance of the test. */
import { expect, test } from "bun:test";
import { encodeRequest } from "../../../src/adapters/kafka/wire/protocol.ts";
import type { Failure } from "../../../src/core/failure/failure.ts";
import type { Connection } from "../../../src/core/ports/net.ts";
import { FakeCluster } from "./cluster.ts";
import { ManualClock, seededChance } from "./manual-clock.ts";
import { type MemoryNetOptions, memoryNet } from "./memory-net.ts";

interface Seen {
  readonly pieces: { readonly atMs: number; readonly bytes: Uint8Array }[];
  closed: Error | null | "open";
}

function setUp(seed: number, options: Partial<MemoryNetOptions> = {}) {
  const clock = new ManualClock();
  const cluster = new FakeCluster({ clock });
  cluster.createTopic("t", { partitions: 50 });
  const net = memoryNet(cluster, {
    clock,
    chance: seededChance(seed),
    delayMs: [1, 20],
    piece: [1, 50],
    ...options,
  });
  return { clock, cluster, net };
}

async function dial(world: ReturnType<typeof setUp>): Promise<{ connection: Connection; seen: Seen }> {
  const { clock, cluster, net } = world;
  const seen: Seen = { pieces: [], closed: "open" };
  const [host, port] = cluster.bootstrap[0]!.split(":");
  const dialled = net.dial(
    { host: host!, port: Number(port), tls: null, timeoutMs: 1000, signal: new AbortController().signal },
    {
      data: (chunk) => seen.pieces.push({ atMs: clock.monotonic(), bytes: chunk.slice() }),
      close: (error) => {
        seen.closed = error;
      },
    },
  );
  clock.drain();
  return { connection: await dialled, seen };
}

const ask = encodeRequest("Metadata", 1, 5, "t", { topics: null });

async function run(seed: number): Promise<Seen> {
  const world = setUp(seed);
  const { connection, seen } = await dial(world);
  connection.write(ask);
  world.clock.drain();
  return seen;
}

test("a response of many pieces arrives whole and in order; one seed gives one run, another another", async () => {
  const [a, b, c] = [await run(1), await run(1), await run(2)];
  const whole = Buffer.concat(a.pieces.map((p) => p.bytes));
  expect(a.pieces.length).toBeGreaterThan(10);
  expect(whole.readInt32BE(0)).toBe(whole.length - 4);
  expect(b).toEqual(a);
  expect(c.pieces.map((p) => p.bytes.length)).not.toEqual(a.pieces.map((p) => p.bytes.length));
  expect(Buffer.concat(c.pieces.map((p) => p.bytes))).toEqual(whole);
  const times = a.pieces.map((p) => p.atMs);
  expect(times).toEqual([...times].sort((x, y) => x - y));
  // There and back takes at least 1 ms each, and pieces have delays of their own.
  expect(times[0]).toBeGreaterThanOrEqual(2);
  expect(new Set(times).size).toBeGreaterThan(3);
});

test("the bytes of a write are the writer's again as soon as it returns", async () => {
  const world = setUp(3);
  const { connection, seen } = await dial(world);
  const bytes = ask.slice();
  connection.write(bytes);
  bytes.fill(0);
  world.clock.drain();
  expect(seen.pieces.length).toBeGreaterThan(0);
});

test("a paused connection gets nothing until it resumes, then everything", async () => {
  const world = setUp(4);
  const { connection, seen } = await dial(world);
  connection.pause();
  connection.write(ask);
  world.clock.drain();
  expect(seen.pieces.length).toBe(0);
  connection.resume();
  const whole = Buffer.concat(seen.pieces.map((p) => p.bytes));
  expect(whole.readInt32BE(0)).toBe(whole.length - 4);
});

test("a broker's death is a reset at the client; later dials are refused until it is back", async () => {
  const world = setUp(5);
  const { seen } = await dial(world);
  world.cluster.kill(1);
  world.clock.drain();
  expect((seen.closed as Failure).code).toBe("net.closed");
  const again = dial(world);
  expect(((await again.catch((e: unknown) => e)) as Failure).code).toBe("net.refused");
  world.cluster.revive(1);
  expect((await dial(world)).seen.closed).toBe("open");
});

test("an orderly end is told as such; a client that closes hears no more and the broker forgets it", async () => {
  const world = setUp(6);
  const polite = await dial(world);
  polite.connection.write(Uint8Array.of(0, 0, 0, 1)); // a size that no broker takes
  world.clock.drain();
  expect(polite.seen.closed).toBeNull();
  const other = await dial(world);
  other.connection.write(ask);
  other.connection.close();
  other.connection.write(ask);
  other.connection.close();
  world.clock.drain();
  expect([other.seen.closed, other.seen.pieces.length]).toEqual(["open", 0]);
  expect(world.cluster.broker(1).connections.size).toBe(0);
});

test("a dial can be given up, before it begins and while it lasts", async () => {
  const { clock, cluster, net } = setUp(7);
  const events = { data: () => {}, close: () => {} };
  for (const early of [true, false]) {
    const abort = new AbortController();
    if (early) abort.abort();
    const { host, port } = cluster.broker(1);
    const dialled = net.dial({ host, port, tls: null, timeoutMs: 1, signal: abort.signal }, events);
    abort.abort();
    expect(((await dialled.catch((e: unknown) => e)) as Failure).code).toBe("internal.cancelled");
  }
  clock.drain();
  expect(cluster.broker(1).connections.size).toBe(0);
});
