/**
 * One connection over the runtime's socket: connect, TLS handshake, then bytes both ways.
 * The states are `opening` (no caller yet), `open`, `closed`; each socket callback checks the state, since the
 * runtime may still call after we gave up. What the kernel does not take is copied to a queue and sent on drain.
 */

import { Failure } from "../../core/failure/failure.ts";
import type { Connection, ConnectionEvents, StartTls, TlsOptions } from "../../core/ports/net.ts";
import type { Clock } from "../../core/time/clock.ts";
import { readOn } from "./direct-read.ts";
import { cancelled, netFailure, place, timeoutFailure } from "./net-failure.ts";

export interface Attempt {
  /** What is dialled: a literal address. */
  readonly address: string;
  /** The name the user gave: for messages, and for TLS where no `serverName` is set. */
  readonly host: string;
  readonly port: number;
  readonly tls: TlsOptions | null;
  readonly startTls?: StartTls | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** The descriptor is there, but not in the types; a version without it reads through the runtime alone. */
type BunSocket = Bun.Socket<undefined> & { readonly fd?: number };
/** The runtime's types know no other kind of chunk than a Buffer; `binaryType` makes them plain arrays all the same. */
type Handlers = Bun.SocketHandler<undefined>;
const PLAIN_ARRAYS = { binaryType: "uint8array" } as unknown as { readonly binaryType: "buffer" };

function isAddress(name: string): boolean {
  return name.includes(":") || /^\d{1,3}(\.\d{1,3}){3}$/.test(name);
}

/**
 * The certificate is always looked at, whatever NODE_TLS_REJECT_UNAUTHORIZED says: by the runtime where all of it
 * must hold, by `trusted` where less is asked for. A name goes out as SNI without
 * its trailing dot; an address never does (RFC 6066 section 3), it is only compared with the certificate.
 */
function tlsSettings(attempt: Attempt, tls: TlsOptions): Bun.TLSOptions {
  const name = (tls.serverName ?? attempt.host).replace(/\.$/, "");
  return {
    rejectUnauthorized: (tls.verify ?? "full") === "full",
    // Empty: no SNI, and the certificate is compared with the address that is dialled.
    serverName: isAddress(name) && name === attempt.address ? "" : name,
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls.key === undefined ? {} : { key: tls.key }),
  };
}

/** The runtime looks at the chain first: a wrong name is only said of a certificate whose chain holds. */
function trusted(tls: TlsOptions, success: boolean, error: Error | null | undefined): boolean {
  const none = error === undefined || error === null;
  switch (tls.verify ?? "full") {
    case "full":
      return success && none;
    case "chain":
      return none || ("code" in error && error.code === "ERR_TLS_CERT_ALTNAME_INVALID");
    case "none":
      return true;
  }
}

/** Kept by a connection at most, from where it is worth it, and for what is not far smaller. */
const SPARE_BYTES = 8 * 1024 * 1024;
const SPARE_FROM_BYTES = 64 * 1024;
const SPARE_RATIO = 8;

class SocketConnection implements Connection {
  readonly #socket: BunSocket;
  readonly certificate: Uint8Array | null;
  readonly #drained: () => void;
  #queue: Uint8Array[] = [];
  /** Memory of what was sent, for what is kept next: requests of megabytes come one after the other. */
  #spare: Uint8Array[] = [];
  #spareBytes = 0;
  queued = 0;
  closed = false;
  paused = false;

  constructor(socket: BunSocket, certificate: Uint8Array | null, drained: () => void) {
    this.#socket = socket;
    this.certificate = certificate;
    this.#drained = drained;
  }

  #keep(bytes: Uint8Array): void {
    // Not `slice`: that of a Buffer is a view, and the caller may reuse its bytes.
    this.#queue.push(this.#kept(bytes));
    this.queued += bytes.length;
  }

  #kept(bytes: Uint8Array): Uint8Array {
    const { length } = bytes;
    const i = this.#spare.findIndex((s) => s.length >= length && s.length <= SPARE_RATIO * length);
    if (i < 0) return new Uint8Array(bytes);
    const [spare] = this.#spare.splice(i, 1);
    this.#spareBytes -= spare!.length;
    spare!.set(bytes);
    return spare!.subarray(0, length);
  }

  write(bytes: Uint8Array): void {
    if (this.closed) return;
    if (this.#queue.length > 0) {
      this.#keep(bytes);
      return;
    }
    const taken = Math.max(0, this.#socket.write(bytes));
    if (taken < bytes.length) this.#keep(bytes.subarray(taken));
  }

  drain(): void {
    if (this.#queue.length === 0) return;
    while (this.#queue.length > 0) {
      const head = this.#queue[0]!;
      const taken = Math.max(0, this.#socket.write(head));
      this.queued -= taken;
      if (taken < head.length) {
        this.#queue[0] = head.subarray(taken);
        return;
      }
      this.#queue.shift();
      this.#spareOf(head);
    }
    this.#drained();
  }

  #spareOf({ buffer }: Uint8Array): void {
    const { byteLength } = buffer;
    if (byteLength < SPARE_FROM_BYTES || this.#spareBytes + byteLength > SPARE_BYTES) return;
    this.#spare.push(new Uint8Array(buffer));
    this.#spareBytes += byteLength;
  }

  pause(): void {
    this.paused = true;
    if (!this.closed) this.#socket.pause();
  }

  resume(): void {
    this.paused = false;
    if (!this.closed) this.#socket.resume();
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.#queue = [];
    this.#spare = [];
    this.queued = 0;
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

    const ready = (socket: BunSocket, certificate: Uint8Array | null) => {
      if (state !== "opening") {
        socket.terminate();
        return;
      }
      state = "open";
      settle();
      socket.setNoDelay(true);
      connection = new SocketConnection(socket, certificate, () => events.drained?.());
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

    /** What the socket does once TLS is to be spoken (`tls`) or from its first byte on without (null). */
    const handlers = (tls: TlsOptions | null): Handlers => ({
      ...PLAIN_ARRAYS,
      open(socket) {
        if (tls === null) ready(socket, null);
        else if (state !== "opening") socket.terminate();
        else during = "TLS handshake";
      },
      handshake(socket, success, error) {
        if (tls === null) return;
        if (trusted(tls, success, error)) ready(socket, socket.getPeerCertificate()?.raw ?? null);
        else {
          fail(error);
          socket.terminate();
        }
      },
      data(socket, chunk) {
        if (state !== "open" || connection === null || connection.closed) return;
        events.data(chunk);
        const { fd } = socket as BunSocket;
        if (tls === null && fd !== undefined && fd >= 0) readOn(fd, connection, events);
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
    });

    /** Plain text until the peer has answered; from then on another set of handlers has the word. */
    const asking = (tls: TlsOptions, { request, answered }: StartTls): Handlers => {
      const plain = handlers(null);
      let next: Handlers | null = null;
      let upgraded = false;
      return {
        ...plain,
        open(socket: BunSocket) {
          during = "the request for TLS";
          socket.write(request);
        },
        data(socket: BunSocket, chunk: Buffer<ArrayBuffer>) {
          if (upgraded) return;
          if (next !== null) return next.data?.(socket, chunk);
          try {
            if (chunk.length !== 1) throw injected(host, port, chunk.length);
            if (answered(chunk[0]!) === "plain") {
              next = plain;
              ready(socket, null);
              return;
            }
          } catch (e) {
            fail(e);
            socket.terminate();
            return;
          }
          upgraded = true;
          during = "TLS handshake";
          const upgrade = { tls: tlsSettings(attempt, tls), socket: handlers(tls), data: undefined };
          socket.upgradeTLS(upgrade);
        },
      };
    };

    const { tls, startTls } = attempt;
    const ask = tls !== null && startTls !== undefined;
    Bun.connect({
      hostname: attempt.address,
      port,
      ...(tls === null || ask ? {} : { tls: tlsSettings(attempt, tls) }),
      socket: ask ? asking(tls, startTls) : handlers(tls),
    }).catch(fail);
  });
}

/** An answer of more than a byte before TLS: the rest would be taken for what the server says under TLS. */
function injected(host: string, port: number, bytes: number): Failure {
  return new Failure(
    "net.tls_handshake",
    `${place(host, port)} answered the request for TLS with ${bytes} bytes`,
    {
      at: place(host, port),
      hint: "Another service listens there, or somebody stands in between",
    },
  );
}
