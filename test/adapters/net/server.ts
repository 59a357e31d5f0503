/** A plain TCP server of the tests on a free port of the loopback; `closers` gets what ends it. */
import { createServer, type Server, type Socket } from "node:net";

export function listen(closers: (() => void)[], onSocket: (socket: Socket) => void): Promise<number> {
  return new Promise((resolve) => {
    const server: Server = createServer((socket) => {
      socket.on("error", () => {});
      onSocket(socket);
    });
    closers.push(() => server.close());
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
}
