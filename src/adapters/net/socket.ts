/**
 * One connection over the runtime's socket: connect, TLS handshake, then bytes both ways.
 * The states are `opening` (no caller yet), `open`, `closed`; each socket callback checks the state, since the
 * runtime may still call after we gave up. What the kernel does not take is copied to a queue and sent on drain.
 */
import type { Connection, ConnectionEvents, TlsOptions } from "../../core/ports/net.ts";
import type { Clock } from "../../core/time/clock.ts";
import { cancelled, netFailure, timeoutFailure } from "./net-failure.ts";

export interface Attempt {
  /** What is dialled: a literal address. */
  readonly address: string;
  /** The name the user gave: for messages, and for TLS where no `serverName` is set. */
  readonly host: string;
  readonly port: number;
  readonly tls: TlsOptions | null;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

type BunSocket = Bun.Socket<undefined>;

function isAddress(name: string): boolean {
  return name.includes(":") || /^\d{1,3}(\.\d{1,3}){3}$/.test(name);
}

/**
 * The certificate is always verified, whatever NODE_TLS_REJECT_UNAUTHORIZED says. A name goes out as SNI without
 * its trailing dot; an address never does (RFC 6066 section 3), it is only compared with the certificate.
 */
function tlsSettings(attempt: Attempt, tls: TlsOptions): Bun.TLSOptions {
  const name = (tls.serverName ?? attempt.host).replace(/\.$/, "");
  return {
    rejectUnauthorized: true,
    // Empty: no SNI, and the certificate is compared with the address that is dialled.
    serverName: isAddress(name) && name === attempt.address ? "" : name,
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls.key === undefined ? {} : { key: tls.key }),
  };
}

class SocketConnection implements Connection {
  readonly #socket: BunSocket;
  #queue: Uint8Array[] = [];
  closed = false;

  constructor(socket: BunSocket) {
    this.#socket = socket;
  }

  write(bytes: Uint8Array): void {
    if (this.closed) return;
    if (this.#queue.length > 0) {
      this.#queue.push(new Uint8Array(bytes));
      return;
    }
    const taken = Math.max(0, this.#socket.write(bytes));
    // Not `slice`: that of a Buffer is a view, and the caller may reuse its bytes.
    if (taken < bytes.length) this.#queue.push(new Uint8Array(bytes.subarray(taken)));
  }

  drain(): void {
    while (this.#queue.length > 0) {
      const head = this.#queue[0]!;
      const taken = Math.max(0, this.#socket.write(head));
      if (taken < head.length) {
        this.#queue[0] = head.subarray(taken);
        return;
      }
      this.#queue.shift();
    }
  }

  pause(): void {
    if (!this.closed) this.#socket.pause();
  }

  resume(): void {
    if (!this.closed) this.#socket.resume();
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.#queue = [];
    this.#socket.end();
  }
}

/** Resolves once bytes can flow (with TLS: verified). Rejects with a Failure. After that `events` gets every byte and one close. */
export function openSocket(attempt: Attempt, events: ConnectionEvents, clock: Clock): Promise<Connection> {
  const { host, port } = attempt;
  const section = attempt.tls?.section;
  return new Promise((resolve, reject) => {
    let state: "opening" | "open" | "closed" = "opening";
    let connection: SocketConnection | null = null;
    let lastError: unknown = null;
    let during = "connect";

    const settle = () => {
      timer.cancel();
      attempt.signal.removeEventListener("abort", onAbort);
    };
    const fail = (e: unknown) => {
      if (state !== "opening") return;
      state = "closed";
      settle();
      reject(netFailure(e, host, port, during, section));
    };
    const onAbort = () => {
      fail(cancelled(host, port));
    };
    const timer = clock.after(attempt.timeoutMs, () =>
      fail(timeoutFailure(host, port, attempt.timeoutMs, during)),
    );
    if (attempt.signal.aborted) {
      onAbort();
      return;
    }
    attempt.signal.addEventListener("abort", onAbort, { once: true });

    const ready = (socket: BunSocket) => {
      if (state !== "opening") {
        socket.terminate();
        return;
      }
      state = "open";
      settle();
      socket.setNoDelay(true);
      connection = new SocketConnection(socket);
      resolve(connection);
    };
    const ended = (e: unknown) => {
      if (state === "opening") {
        fail(e ?? Object.assign(new Error("closed"), { code: "ECONNRESET" }));
        return;
      }
      if (state === "closed" || connection === null) return;
      state = "closed";
      if (connection.closed) return;
      connection.closed = true;
      events.close(e === null || e === undefined ? null : netFailure(e, host, port, "read", section));
    };

    Bun.connect({
      hostname: attempt.address,
      port,
      ...(attempt.tls === null ? {} : { tls: tlsSettings(attempt, attempt.tls) }),
      socket: {
        binaryType: "uint8array",
        open(socket) {
          if (attempt.tls === null) ready(socket);
          else if (state !== "opening") socket.terminate();
          else during = "TLS handshake";
        },
        handshake(socket, success, error) {
          if (attempt.tls === null) return;
          if (success && (error === undefined || error === null)) ready(socket);
          else {
            fail(error);
            socket.terminate();
          }
        },
        data(_socket, chunk) {
          if (state === "open" && connection !== null && !connection.closed) events.data(chunk);
        },
        drain() {
          connection?.drain();
        },
        error(_socket, e) {
          lastError = e;
        },
        close(_socket, e) {
          ended(e ?? lastError);
        },
        connectError(_socket, e) {
          fail(e);
        },
      },
    }).catch(fail);
  });
}
