/** A proxy between client and server that can lose, hold and cut what goes through it, at a text in the bytes. */
import { connect, createServer, type Server, type Socket } from "node:net";

export type Trouble =
  /** Passes the first piece from the client that holds the text on, and ends both sides when the server has answered it. */
  | { readonly kind: "lose_answer"; readonly text: string }
  /** Ends both sides in place of passing the first piece that holds the text on. */
  | { readonly kind: "cut_before"; readonly text: string }
  /** Passes the first piece from the client that holds the text on, and ends both sides before it is answered. */
  | { readonly kind: "cut_behind"; readonly text: string }
  /** Ends both sides after so many bytes from the client. */
  | { readonly kind: "cut_after_bytes"; readonly bytes: number }
  /** Passes nothing of the server any more once the client has said the text; both sides stay. */
  | { readonly kind: "silence_after"; readonly text: string }
  /** In one piece with the server's answer that holds the text comes the end of the session, as when it is terminated. */
  | { readonly kind: "terminated_after"; readonly text: string };

/** ErrorResponse, FATAL 57P01. */
const TERMINATED = (() => {
  const fields = Buffer.from("SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0", "latin1");
  const head = Buffer.from("E\0\0\0\0", "latin1");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
})();

export class TroubledProxy {
  /** Troubles to come, in order: each waits for the first piece that it fits. None: all passes. */
  readonly troubles: Trouble[] = [];
  /** How many of them came to pass. */
  happened = 0;
  #port = 0;
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  private constructor(host: string, port: number) {
    this.#server = createServer((client) => this.#pair(client, connect({ host, port })));
  }

  static async before(host: string, port: number): Promise<TroubledProxy> {
    const proxy = new TroubledProxy(host, port);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    const address = proxy.#server.address();
    if (address !== null && typeof address === "object") proxy.#port = address.port;
    return proxy;
  }

  get port(): number {
    return this.#port;
  }

  #pair(client: Socket, server: Socket): void {
    let seen = 0;
    let losing = false;
    let silent = false;
    const end = () => {
      for (const s of [client, server]) {
        this.#open.delete(s);
        s.destroy();
      }
    };
    client.on("data", (chunk: Buffer) => {
      seen += chunk.length;
      const trouble = this.#met(chunk, seen, "client");
      if (trouble?.kind === "cut_before" || trouble?.kind === "cut_after_bytes") return end();
      if (trouble?.kind === "cut_behind") {
        server.end(chunk);
        client.destroy();
        return;
      }
      losing ||= trouble?.kind === "lose_answer";
      silent ||= trouble?.kind === "silence_after";
      server.write(chunk);
    });
    server.on("data", (chunk: Buffer) => {
      if (losing) end();
      else if (this.#met(chunk, 0, "server") !== undefined) {
        client.end(Buffer.concat([chunk, TERMINATED]));
        server.destroy();
      } else if (!silent) client.write(chunk);
    });
    for (const s of [client, server]) {
      this.#open.add(s);
      s.on("close", end);
      s.on("error", end);
    }
  }

  /** The next trouble if this piece meets it. */
  #met(chunk: Buffer, seen: number, from: "client" | "server"): Trouble | undefined {
    const trouble = this.troubles[0];
    if (trouble === undefined || (trouble.kind === "terminated_after") !== (from === "server"))
      return undefined;
    const meets =
      trouble.kind === "cut_after_bytes" ? seen > trouble.bytes : chunk.includes(trouble.text, 0, "latin1");
    if (!meets) return undefined;
    this.happened++;
    return this.troubles.shift();
  }

  close(): void {
    this.#server.close();
    for (const s of this.#open) s.destroy();
  }
}
