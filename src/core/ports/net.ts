/** The network as a port. Adapters/net speaks TCP and TLS; the simulated world moves bytes in memory. */
export interface TlsOptions {
  /** PEM. Absent: the system's roots. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Name to verify and to send as SNI; default: the host dialled. */
  readonly serverName?: string;
  /** Section of the configuration that all this comes from, for messages; default `tls`. */
  readonly section?: string;
  /**
   * What of the peer's certificate must hold. full (default): its chain and its name. chain: its chain alone.
   * none: nothing, so whoever is in the middle can read and change everything.
   */
  readonly verify?: "full" | "chain" | "none";
}

/** For protocols that begin in plain text and go over to TLS on request. */
export interface StartTls {
  /** Sent as soon as the connection is there. */
  readonly request: Uint8Array;
  /** The peer's answer is one byte; more than that before TLS is refused, since anybody may have put it there. */
  answered(byte: number): "tls" | "plain";
}

export interface DialOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: TlsOptions | null;
  /** With `tls`: asked for first; without: TLS from the first byte. */
  readonly startTls?: StartTls;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface ConnectionEvents {
  /** The bytes are the callee's only until it returns. */
  data(chunk: Uint8Array): void;
  /**
   * Memory where the bytes that follow belong, null if that is not known yet. A connection that can will read
   * straight into it and call `placed` instead of `data`.
   */
  space?(): Uint8Array | null;
  /** So many bytes were read to the start of the last `space`. */
  placed?(bytes: number): void;
  /** Once. `null`: the peer closed in order. */
  close(error: Error | null): void;
  /** Nothing is queued any more (see `Connection.queued`). */
  drained?(): void;
}

export interface Connection {
  /** Bytes that were written and that the kernel has not taken yet. */
  readonly queued: number;
  /** The peer's certificate, DER; null without TLS. */
  readonly certificate: Uint8Array | null;
  /** Queues bytes; the adapter copies what the kernel did not take. Never blocks. */
  write(bytes: Uint8Array): void;
  /** No more `data` until `resume`. */
  pause(): void;
  resume(): void;
  close(): void;
}

export interface Net {
  /** Resolves when connected and, with TLS, verified. Rejects with a Failure (net.*). */
  dial(options: DialOptions, events: ConnectionEvents): Promise<Connection>;
}
