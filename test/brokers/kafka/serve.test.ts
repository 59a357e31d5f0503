/** Goal: the order server holds what it says, at once or by rate. Method: its parts on a clock of the test, and the command itself. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { FakeCluster } from "./cluster.ts";
import { ManualClock } from "./manual-clock.ts";
import { order } from "./orders.ts";
import { appendByRate, appendOrders, readOptions, serve } from "./serve.ts";

const options = (argv: string) => readOptions(argv.split(" ").filter((a) => a !== ""));

/** Ids in a partition, read from the uncompressed bytes. */
function ids(cluster: FakeCluster, partition: number): number[] {
  const text = cluster.log("orders", partition).entries.map((e) => Buffer.from(e.bytes).toString("latin1"));
  return [...text.join("").matchAll(/\{"id":(\d+),/g)].map((m) => Number(m[1]));
}

function topic(clock = new ManualClock()): FakeCluster {
  const cluster = new FakeCluster({ clock });
  cluster.createTopic("orders", { partitions: 6 });
  return cluster;
}

test("record i is in partition i % partitions, in order, all of them, however they are cut", () => {
  const cluster = topic();
  const o = options("--records 10001");
  for (const [from, to] of [
    [0, 7],
    [7, 8],
    [8, 9000],
    [9000, 10001],
  ] as const)
    appendOrders(cluster, o, from, to);
  for (let p = 0; p < 6; p++) {
    const expected = Array.from({ length: 10001 }, (_, i) => i).filter((i) => i % 6 === p);
    expect(ids(cluster, p)).toEqual(expected);
    expect(cluster.log("orders", p).end).toBe(BigInt(expected.length));
  }
});

test("a rate fills the topic by the clock and ends at the number of records", () => {
  const clock = new ManualClock();
  const cluster = topic(clock);
  const stop = appendByRate(cluster, options("--records 1500 --rate 1000"));
  const held = () => cluster.topic("orders").partitions.reduce((n, p) => n + Number(p.log.end), 0);
  clock.advance(500);
  expect(held()).toBe(500);
  clock.advance(5000);
  expect([held(), clock.waiting]).toEqual([1500, 0]);
  stop();
});

test("records are a pure function of seed and number, JSON of about 250 bytes, keyed by customer", () => {
  expect(order(1, 12345)).toEqual(order(1, 12345));
  expect(order(2, 12345)).not.toEqual(order(1, 12345));
  const sizes = Array.from({ length: 2000 }, (_, i) => order(1, i).value.length);
  const mean = sizes.reduce((a, b) => a + b, 0) / sizes.length;
  expect(mean).toBeGreaterThan(200);
  expect(mean).toBeLessThan(300);
  const { key, value, timestampMs } = order(1, 500);
  const json = JSON.parse(value) as {
    id: number;
    customer: string;
    ts: string;
    amount: string;
    items: { qty: number; price: string }[];
  };
  expect([json.id, json.customer, Date.parse(json.ts)]).toEqual([500, key, timestampMs]);
  const total = json.items.reduce((sum, item) => sum + item.qty * Math.round(Number(item.price) * 100), 0);
  expect(json.amount).toBe((total / 100).toFixed(2));
});

test("options are checked", () => {
  expect(options("")).toMatchObject({
    topic: "orders",
    partitions: 6,
    records: 200_000,
    rate: 0,
    compression: "none",
  });
  expect(options("--compression lz4 --topic x --port 7")).toMatchObject({
    compression: "lz4",
    topic: "x",
    port: 7,
  });
  expect(() => options("--partitions 0")).toThrow("--partitions");
  expect(() => options("--records many")).toThrow("--records");
  expect(() => options("--compression lzo")).toThrow("lzo");
});

test("serves on a free port, at once or by rate", () => {
  for (const argv of ["--records 60", "--records 60 --rate 10"]) {
    const server = serve(options(argv));
    expect(server.bootstrap[0]).toMatch(/^127\.0\.0\.1:\d+$/);
    server.close();
  }
  expect(systemClock.now()).toBeGreaterThan(0);
});

test("the command says when it is ready and ends on SIGTERM", async () => {
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, "serve.ts"), "--records", "1000", "--compression", "zstd"],
    {
      stdout: "pipe",
    },
  );
  const reader = child.stdout.getReader();
  const line = new TextDecoder().decode((await reader.read()).value);
  expect(line).toMatch(/^ready 127\.0\.0\.1:\d+ topic=orders partitions=6 records=1000 rate=0\n$/);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
});
