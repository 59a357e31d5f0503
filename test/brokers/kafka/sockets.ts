/** The test cluster behind real sockets on 127.0.0.1. A killed broker refuses connections until it is revived. */
import type { Socket, TCPSocketListener } from "bun";
import type { Broker, FakeCluster } from "./cluster.ts";
import { BrokerConnection } from "./connection.ts";

export interface Listening {
  /** host:port of all brokers. */
  readonly bootstrap: string[];
  close(): void;
}

export interface ListenTls {
  readonly cert: string;
  readonly key: string;
  /** Present: clients must show a certificate of this authority. */
  readonly ca?: string;
}

interface Peer {
  readonly connection: BrokerConnection;
  /** What the kernel has not taken yet. */
  queue: Uint8Array[];
  ending: boolean;
}

function flush(socket: Socket<Peer>): void {
  const peer = socket.data;
  while (peer.queue.length > 0) {
    const head = peer.queue[0]!;
    const sent = socket.write(head);
    // A closed socket takes nothing; its close event follows.
    if (sent < head.length) {
      if (sent > 0) peer.queue[0] = head.subarray(sent);
      return;
    }
    peer.queue.shift();
  }
  if (peer.ending) socket.end();
}

function listen(
  cluster: FakeCluster,
  broker: Broker,
  port: number,
  tls: ListenTls | null,
): TCPSocketListener<Peer> {
  return Bun.listen<Peer>({
    hostname: broker.host,
    port,
    ...(tls === null
      ? {}
      : { tls: { ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: tls.ca !== undefined } }),
    socket: {
      open(socket) {
        const connection = new BrokerConnection(cluster, broker.id, {
          send(bytes) {
            socket.data.queue.push(bytes);
            if (socket.data.queue.length === 1) flush(socket);
          },
          close(reset) {
            if (reset) socket.terminate();
            else {
              socket.data.ending = true;
              flush(socket);
            }
          },
        });
        socket.data = { connection, queue: [], ending: false };
      },
      data(socket, chunk) {
        socket.data.connection.receive(chunk);
      },
      drain: flush,
      close(socket) {
        socket.data?.connection.gone();
      },
      error(socket, error) {
        // Also what a handler of ours throws: a client must not be left waiting for it.
        cluster.complain(`node ${broker.id}: ${error.stack ?? error.message}`);
        socket.data?.connection.gone();
        socket.terminate();
      },
    },
  });
}

/** Listens for every broker. `port` 0: any free ones; else broker n gets port + n - 1. The ports become those of the cluster. */
export function listenCluster(cluster: FakeCluster, port = 0, tls: ListenTls | null = null): Listening {
  const listeners = new Map<number, TCPSocketListener<Peer>>();
  const start = (broker: Broker, at: number) => {
    const listener = listen(cluster, broker, at, tls);
    broker.port = listener.port;
    listeners.set(broker.id, listener);
  };
  for (const broker of cluster.brokers) start(broker, port === 0 ? 0 : port + broker.id - 1);
  cluster.onBroker.push((broker) => {
    if (broker.alive && !listeners.has(broker.id)) start(broker, broker.port);
    if (!broker.alive) {
      listeners.get(broker.id)?.stop(true);
      listeners.delete(broker.id);
    }
  });
  return {
    bootstrap: cluster.bootstrap,
    close() {
      for (const listener of listeners.values()) listener.stop(true);
      listeners.clear();
    },
  };
}
