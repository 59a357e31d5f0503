/**
 * The network port over the runtime's sockets. A name is resolved anew at each dial and every address that it has
 * is tried in turn, each with its share of the time that is left, so that one dead address does not hide a living one.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { Failure } from "../../core/failure/failure.ts";
import type { Connection, ConnectionEvents, DialOptions, Net } from "../../core/ports/net.ts";
import type { Clock } from "../../core/time/clock.ts";
import { cancelled, netFailure, place, timeoutFailure } from "./net-failure.ts";
import { openSocket } from "./socket.ts";

/** All addresses of a name, in the order in which they should be tried. */
export type Resolve = (host: string) => Promise<readonly string[]>;

export const systemResolve: Resolve = async (host) => {
  const found = await lookup(host, { all: true });
  return [...new Set(found.map((a) => a.address))];
};

/** getaddrinfo can't be cancelled: what comes after the deadline or the abort is dropped. */
function addresses(
  options: DialOptions,
  host: string,
  resolve: Resolve,
  clock: Clock,
): Promise<readonly string[]> {
  if (isIP(host) !== 0) return Promise.resolve([host]);
  const { port, timeoutMs, signal } = options;
  return new Promise((done, reject) => {
    const onAbort = () => {
      timer.cancel();
      reject(cancelled(host, port));
    };
    const timer = clock.after(timeoutMs, () => {
      signal.removeEventListener("abort", onAbort);
      reject(timeoutFailure(host, port, timeoutMs, "resolving the name"));
    });
    signal.addEventListener("abort", onAbort, { once: true });
    resolve(host).then(
      (found) => {
        timer.cancel();
        signal.removeEventListener("abort", onAbort);
        done(found);
      },
      (e) => {
        timer.cancel();
        signal.removeEventListener("abort", onAbort);
        reject(netFailure(e, host, port, "resolving the name"));
      },
    );
  });
}

/** A cause that will not go away (trust, name) tells more than "refused" on another address. */
function moreTelling(a: Failure | null, b: Failure): Failure {
  return a !== null && !a.retry ? a : b;
}

export function createNet(clock: Clock, resolve: Resolve = systemResolve): Net {
  return {
    async dial(options: DialOptions, events: ConnectionEvents): Promise<Connection> {
      const { port, tls, startTls, timeoutMs, signal } = options;
      const host = options.host.replace(/^\[(.*)\]$/, "$1");
      if (signal.aborted) throw cancelled(host, port);
      const deadline = clock.monotonic() + timeoutMs;
      const found = await addresses(options, host, resolve, clock);
      let failure: Failure | null = null;
      for (let i = 0; i < found.length; i++) {
        const left = deadline - clock.monotonic();
        if (left <= 0) break;
        const share = left / (found.length - i);
        try {
          return await openSocket(
            { address: found[i]!, host, port, tls, startTls, timeoutMs: share, signal },
            events,
            clock,
          );
        } catch (e) {
          const f = netFailure(e, host, port, "connect", tls?.section);
          if (signal.aborted) throw f;
          failure = moreTelling(failure, f);
        }
      }
      if (failure !== null) throw failure;
      if (found.length > 0) throw timeoutFailure(host, port, timeoutMs, "connect");
      throw new Failure("net.unresolved", `${place(host, port)}: the host name has no address`, {
        at: place(host, port),
      });
    },
  };
}
