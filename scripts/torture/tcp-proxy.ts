/** A TCP proxy before a server that holds, slows or cuts what goes through it for as long as it is told to. */
import { connect, createServer, type Server, type Socket } from "node:net";
import type { SeededChance } from "../../test/sim/chance.ts";

export type TcpTrouble =
  | { readonly t: "pass" }
  /** Nothing goes through; connections stay open, and new ones are taken. */
  | { readonly t: "hang" }
  /** Each piece is late by so much. */
  | { readonly t: "slow"; readonly ms: number }
  /** All connections end, and new ones at once. */
  | { readonly t: "cut" }
  /** So many of the pieces, of 1, are the end of their connection: before the server has them, or after it answered. */
  | { readonly t: "flaky"; readonly share: number };

const PASS: TcpTrouble = { t: "pass" };

export class TcpProxy {
  readonly port: number;
  #trouble: TcpTrouble = PASS;
  readonly #server: Server;
  readonly #chance: SeededChance;
  readonly #open = new Set<Socket>();
  /** Those who wait for the end of a hang. */
  #waiting: (() => void)[] = [];

  private constructor(server: Server, port: number, chance: SeededChance) {
    this.#server = server;
    this.port = port;
    this.#chance = chance;
  }

  /** `port` 0: any free one. */
  static async start(
    upstream: { readonly host: string; readonly port: number },
    chance: SeededChance,
    port = 0,
  ): Promise<TcpProxy> {
    let proxy: TcpProxy | null = null;
    const server = createServer((client) => proxy?.accept(client, upstream));
    await new Promise<void>((go, fail) => {
      server.once("error", fail);
      server.listen(port, "127.0.0.1", go);
    });
    const address = server.address();
    proxy = new TcpProxy(server, typeof address === "object" && address !== null ? address.port : 0, chance);
    return proxy;
  }

  set trouble(trouble: TcpTrouble) {
    this.#trouble = trouble;
    if (trouble.t === "cut") for (const s of this.#open) s.destroy();
    if (trouble.t !== "hang") for (const go of this.#waiting.splice(0)) go();
  }

  accept(client: Socket, upstream: { readonly host: string; readonly port: number }): void {
    if (this.#trouble.t === "cut") {
      client.destroy();
      return;
    }
    const server = connect(upstream);
    const end = () => {
      for (const s of [client, server]) {
        this.#open.delete(s);
        s.destroy();
      }
    };
    for (const s of [client, server]) {
      this.#open.add(s);
      s.on("error", end);
      s.on("close", end);
    }
    this.#pass(client, server);
    this.#pass(server, client);
  }

  /** Piece after piece; the sender is held while one is under way. */
  #pass(from: Socket, to: Socket): void {
    from.on("data", (piece: Buffer) => {
      from.pause();
      void this.#held().then(() => {
        const trouble = this.#trouble;
        if (trouble.t === "flaky" && this.#chance.next() < trouble.share) from.destroy();
        else if (!to.destroyed) {
          to.write(piece);
          from.resume();
        }
      });
    });
  }

  async #held(): Promise<void> {
    while (this.#trouble.t === "hang") await new Promise<void>((go) => this.#waiting.push(go));
    if (this.#trouble.t === "slow") await Bun.sleep(this.#trouble.ms);
  }

  async stop(): Promise<void> {
    this.trouble = PASS;
    for (const s of this.#open) s.destroy();
    await new Promise<void>((go) => this.#server.close(() => go()));
  }
}
