/**
 * The network port in memory: every byte between a client and the test cluster travels with a delay and in pieces that
 * an injected clock and chance decide, so that one seed replays a run.
 */
import { Failure } from "../../../src/core/failure/failure.ts";
import type { Connection, ConnectionEvents, DialOptions, Net } from "../../../src/core/ports/net.ts";
import type { Chance } from "../../../src/core/time/chance.ts";
import type { Clock, Timer } from "../../../src/core/time/clock.ts";
import type { Broker, FakeCluster } from "./cluster.ts";
import { BrokerConnection } from "./connection.ts";

export interface MemoryNetOptions {
  /** The client's clock: what waits on it dies with the client's process. */
  readonly clock: Clock;
  readonly chance: Chance;
  /** Delay of each piece, and of a dial, in ms: between the two. Default 0 to 3. */
  readonly delayMs?: readonly [min: number, max: number];
  /** Bytes of each piece: between the two. Default 1 to 65536. */
  readonly piece?: readonly [min: number, max: number];
}

type Event =
  | { readonly kind: "data"; readonly bytes: Uint8Array }
  | { readonly kind: "close"; readonly reset: boolean };

/** One direction of a connection: what is sent arrives in order, late and in pieces. */
class Pipe {
  readonly #options: MemoryNetOptions;
  readonly #arrive: (event: Event) => void;
  #lastArrival = 0;
  readonly #timers = new Set<Timer>();
  #held: Event[] | null = null;
  #dead = false;

  constructor(options: MemoryNetOptions, arrive: (event: Event) => void) {
    this.#options = options;
    this.#arrive = arrive;
  }

  send(bytes: Uint8Array): void {
    const [min, max] = this.#options.piece ?? [1, 65536];
    for (let at = 0; at < bytes.length; ) {
      const size = Math.min(bytes.length - at, between(this.#options.chance, min, max));
      // The sender may reuse its bytes as soon as this returns.
      this.#schedule({ kind: "data", bytes: bytes.slice(at, at + size) });
      at += size;
    }
  }

  close(reset: boolean): void {
    this.#schedule({ kind: "close", reset });
  }

  #schedule(event: Event): void {
    if (this.#dead) return;
    const { clock, chance, delayMs = [0, 3] } = this.#options;
    const now = clock.monotonic();
    const at = Math.max(this.#lastArrival, now + delayMs[0] + chance.next() * (delayMs[1] - delayMs[0]));
    this.#lastArrival = at;
    const timer = clock.after(at - now, () => {
      this.#timers.delete(timer);
      if (this.#held === null) this.#arrive(event);
      else this.#held.push(event);
    });
    this.#timers.add(timer);
  }

  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    // The receiver may pause again on what it gets.
    while (held.length > 0 && this.#held === null) this.#arrive(held.shift()!);
    if (this.#held !== null) this.#held = [...held, ...this.#held];
  }

  /** Nothing arrives any more. */
  kill(): void {
    this.#dead = true;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#held = null;
  }
}

function between(chance: Chance, min: number, max: number): number {
  return min + Math.floor(chance.next() * (max - min + 1));
}

function connect(
  cluster: FakeCluster,
  broker: Broker,
  options: MemoryNetOptions,
  events: ConnectionEvents,
): Connection {
  let open = true;
  const toClient = new Pipe(options, (event) => {
    if (!open) return;
    if (event.kind === "data") return events.data(event.bytes);
    open = false;
    toBroker.kill();
    events.close(event.reset ? new Failure("net.closed", "connection reset by peer") : null);
  });
  const toBroker = new Pipe(options, (event) => {
    if (event.kind === "data") server.receive(event.bytes);
    else server.gone();
  });
  const server = new BrokerConnection(cluster, broker.id, {
    send: (bytes) => toClient.send(bytes),
    close: (reset) => toClient.close(reset),
  });
  return {
    queued: 0,
    certificate: null,
    write: (bytes) => {
      if (open) toBroker.send(bytes);
    },
    pause: () => toClient.hold(),
    resume: () => toClient.release(),
    close: () => {
      if (!open) return;
      open = false;
      toClient.kill();
      toBroker.close(false);
    },
  };
}

export function memoryNet(cluster: FakeCluster, options: MemoryNetOptions): Net {
  const { clock, chance, delayMs = [0, 3] } = options;
  return {
    dial(dialled: DialOptions, events: ConnectionEvents): Promise<Connection> {
      const at = `${dialled.host}:${dialled.port}`;
      return new Promise((resolve, reject) => {
        const { signal } = dialled;
        const abort = () => {
          timer.cancel();
          reject(new Failure("internal.cancelled", `dial of ${at} was given up`, { cause: signal.reason }));
        };
        const timer = clock.after(between(chance, delayMs[0], delayMs[1]), () => {
          signal.removeEventListener("abort", abort);
          const broker = cluster.brokers.find((b) => b.host === dialled.host && b.port === dialled.port);
          if (broker?.alive) resolve(connect(cluster, broker, options, events));
          else reject(new Failure("net.refused", `nothing accepts connections at ${at}`, { at }));
        });
        if (signal.aborted) abort();
        else signal.addEventListener("abort", abort, { once: true });
      });
    },
  };
}
