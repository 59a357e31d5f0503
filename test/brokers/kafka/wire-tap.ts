/**
 * A network through which a client speaks to any brokers, and which holds each request until the test has looked around: before
 * its bytes go out, and before its answer comes in. Whatever follows on the connection waits behind it.
 */
import { type DecodedRequest, decodeRequest } from "../../../src/adapters/kafka/wire/protocol.ts";
import { asFailure } from "../../../src/core/failure/failure.ts";
import type { Connection, ConnectionEvents, DialOptions, Net } from "../../../src/core/ports/net.ts";

export interface Tap {
  /** The request has not gone out yet. */
  before(request: DecodedRequest): void | Promise<void>;
  /** The answer is here, and the client has not seen it. */
  behind(request: DecodedRequest): void | Promise<void>;
}

export function tapped(net: Net, tap: Tap): Net {
  return { dial: (options, events) => dialled(net, tap, options, events) };
}

async function dialled(
  net: Net,
  tap: Tap,
  options: DialOptions,
  events: ConnectionEvents,
): Promise<Connection> {
  const asked = new Map<number, DecodedRequest>();
  let open = true;
  const fail = (e: unknown) => {
    if (!open) return;
    open = false;
    inner.close();
    events.close(asFailure(e));
  };
  const incoming = new Frames(async (frame) => {
    const correlation = new DataView(frame.buffer).getInt32(4);
    const request = asked.get(correlation);
    asked.delete(correlation);
    if (request !== undefined) await tap.behind(request);
    if (open) events.data(frame);
  }, fail);
  const outgoing = new Frames(async (frame) => {
    const request = decodeRequest(frame.subarray(4));
    asked.set(request.correlationId, request);
    await tap.before(request);
    if (open) inner.write(frame);
  }, fail);
  const inner = await net.dial(options, {
    data: (chunk) => incoming.push(chunk),
    // Behind what came before.
    close: (error) => incoming.end(() => void (open && events.close(error))),
    drained: () => events.drained?.(),
  });
  return {
    get queued() {
      return inner.queued;
    },
    certificate: inner.certificate,
    write: (bytes) => outgoing.push(bytes),
    pause: () => inner.pause(),
    resume: () => inner.resume(),
    close: () => {
      open = false;
      inner.close();
    },
  };
}

/** Cuts bytes into frames (int32 size, then so many bytes), and hands them on one after the other. */
class Frames {
  readonly #take: (frame: Uint8Array) => Promise<void>;
  readonly #fail: (e: unknown) => void;
  #rest = new Uint8Array(0);
  #line: Promise<void> = Promise.resolve();

  constructor(take: (frame: Uint8Array) => Promise<void>, fail: (e: unknown) => void) {
    this.#take = take;
    this.#fail = fail;
  }

  push(chunk: Uint8Array): void {
    const all = new Uint8Array(this.#rest.length + chunk.length);
    all.set(this.#rest);
    all.set(chunk, this.#rest.length);
    let at = 0;
    for (; all.length - at >= 4; ) {
      const end = at + 4 + new DataView(all.buffer).getInt32(at);
      if (end > all.length) break;
      const frame = all.slice(at, end);
      this.#then(() => this.#take(frame));
      at = end;
    }
    this.#rest = all.slice(at);
  }

  end(then: () => void): void {
    this.#then(async () => then());
  }

  #then(work: () => Promise<void>): void {
    this.#line = this.#line.then(work).catch(this.#fail);
  }
}
