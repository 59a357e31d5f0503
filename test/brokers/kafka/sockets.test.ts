/** Goal: the cluster speaks over real sockets. Method: a plain TCP client that waits for bytes, never for time. */
import { afterEach, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { decodeResponse, encodeRequest } from "../../../src/adapters/kafka/wire/protocol.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { buildBatch } from "./batch-builder.ts";
import { FakeCluster } from "./cluster.ts";
import { type Listening, listenCluster } from "./sockets.ts";

const open: (Listening | Socket)[] = [];
afterEach(() => {
  for (const o of open.splice(0)) "close" in o ? o.close() : o.destroy();
});

function start(brokers = 1): FakeCluster {
  const cluster = new FakeCluster({ clock: systemClock, brokers });
  cluster.createTopic("t", { partitions: brokers });
  open.push(listenCluster(cluster));
  return cluster;
}

function dial(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket));
    socket.once("error", reject);
    open.push(socket);
  });
}

/** Reads one response, size included in the count but not in the result. */
function response(socket: Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0);
    socket.on("close", () => reject(new Error("closed")));
    socket.on("data", (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (bytes.length >= 4 && bytes.length >= 4 + bytes.readInt32BE(0)) resolve(bytes.subarray(4));
    });
  });
}

test("several brokers on free ports that Metadata names", async () => {
  const cluster = start(3);
  const socket = await dial(cluster.broker(2).port);
  socket.write(encodeRequest("Metadata", 12, 1, "t", { topics: null }));
  const body = decodeResponse("Metadata", 12, await response(socket));
  expect(body.brokers.map((b) => b.port)).toEqual(cluster.brokers.map((b) => b.port));
  expect(new Set(body.brokers.map((b) => b.port)).size).toBe(3);
});

test("a response far above the socket's buffers arrives whole", async () => {
  const cluster = start();
  const value = new Uint8Array(16 << 20).map((_, i) => i);
  cluster.append("t", 0, buildBatch({ records: [{ value }] }));
  const socket = await dial(cluster.broker(1).port);
  const topics = [{ topic: "t", partitions: [{ partitionMaxBytes: 1 }] }];
  socket.write(encodeRequest("Fetch", 12, 1, "t", { topics }));
  const records = decodeResponse("Fetch", 12, await response(socket)).responses[0]!.partitions[0]!.records!;
  expect(Buffer.compare(records, cluster.log("t", 0).entries[0]!.bytes)).toBe(0);
});

test("a killed broker cuts and refuses; revived, it is back on its port", async () => {
  const cluster = start();
  const { port } = cluster.broker(1);
  const socket = await dial(port);
  const lost = response(socket).catch((e: Error) => e.message);
  socket.on("error", () => {});
  cluster.kill(1);
  expect(await lost).toBe("closed");
  expect(await dial(port).catch((e: NodeJS.ErrnoException) => e.code)).toBe("ECONNREFUSED");
  cluster.revive(1);
  const again = await dial(port);
  again.write(encodeRequest("Metadata", 1, 1, "t", { topics: [] }));
  expect((await response(again)).length).toBeGreaterThan(4);
});

test("what no broker takes ends the connection in order", async () => {
  const cluster = start();
  const socket = await dial(cluster.broker(1).port);
  const ended = new Promise((resolve) => socket.on("end", () => resolve("end")));
  socket.write("GET / HTTP/1.1\r\n\r\n");
  expect(await ended).toBe("end");
});
