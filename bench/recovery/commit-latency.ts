/** Proxies before PostgreSQL: one lets each COMMIT wait (a disk far away, a standby that answers late), one goes away. */
import { connect, createServer, type Socket } from "node:net";

/** As the client of twg writes it. */
const COMMIT = "COMMIT\0";

export interface LatencyProxy {
  readonly port: number;
  /** Commits that were let wait. */
  readonly commits: number;
  stop(): void;
}

export function commitLatency(port: number, ms: number): Promise<LatencyProxy> {
  return proxied(port, async (bytes, proxy) => {
    if (!bytes.includes(COMMIT)) return;
    proxy.commits++;
    await Bun.sleep(ms);
  });
}

/** It is gone, and stays away, once so many bytes have gone to the server. */
export function goneAfter(port: number, bytes: number): Promise<LatencyProxy> {
  let left = bytes;
  return proxied(port, async (some, proxy) => {
    left -= some.length;
    if (left < 0) proxy.stop();
  });
}

type Mutable = { -readonly [K in keyof LatencyProxy]: LatencyProxy[K] };

/** `before`: what is waited for before bytes of a client go on. */
async function proxied(
  port: number,
  before: (bytes: Buffer, proxy: Mutable) => Promise<void>,
): Promise<LatencyProxy> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    for (const s of [client, upstream]) {
      sockets.add(s);
      s.setNoDelay(true);
      s.on("error", () => {});
      s.on("close", () => {
        sockets.delete(s);
        client.destroy();
        upstream.destroy();
      });
    }
    upstream.pipe(client);
    let last: Promise<unknown> = Promise.resolve();
    client.on("data", (bytes: Buffer) => {
      const sent = last.then(async () => {
        await before(bytes, proxy);
        if (!upstream.write(bytes)) await new Promise((resolve) => upstream.once("drain", resolve));
      });
      last = sent;
      // What waits here is bounded by what goes on.
      client.pause();
      void sent.then(() => client.resume());
    });
  });
  const proxy: Mutable = {
    port: 0,
    commits: 0,
    stop: () => {
      server.close();
      for (const s of sockets) s.destroy();
    },
  };
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  proxy.port = typeof address === "object" && address !== null ? address.port : 0;
  return proxy;
}
