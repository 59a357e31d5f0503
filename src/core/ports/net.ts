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
}

export interface DialOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: TlsOptions | null;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface ConnectionEvents {
  /** The bytes are the callee's only until it returns. */
  data(chunk: Uint8Array): void;
  /** Once. `null`: the peer closed in order. */
  close(error: Error | null): void;
}

export interface Connection {
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
