/**
 * Goal: bytes that are read straight into place are the stream's, each once and in order, however the peer cuts them
 * and however the connection ends. Method: a real peer sends framed answers of all sizes in odd pieces over a real
 * socket; the receiver asks for them by `space`, and counts what came which way.
 */
import { afterAll, describe, expect, test } from "bun:test";
import type { Socket } from "node:net";
import { createNet } from "../../../src/adapters/net/net.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Connection, ConnectionEvents } from "../../../src/core/ports/net.ts";
import { listen } from "./server.ts";

const closers: (() => void)[] = [];
afterAll(() => {
  for (const close of closers) close();
});

const serve = (onSocket: (socket: Socket) => void) => listen(closers, onSocket);

/** Byte i of the stream; 251 is prime to every size below. */
const at = (i: number) => (i * 7 + (i >> 8)) % 251;

function stream(bytes: number): Uint8Array {
  const all = new Uint8Array(bytes);
  for (let i = 0; i < bytes; i++) all[i] = at(i);
  return all;
}

interface Received {
  readonly events: ConnectionEvents;
  readonly ended: Promise<Error | null>;
  total(): number;
  wrong(): number;
  direct(): number;
}

/** Answers of `size` bytes each; the first 8 bytes of each come by `data`, as a size field would. */
function receiver(size: number, onAnswer: (answers: number) => void = () => {}): Received {
  let total = 0;
  let wrong = 0;
  let direct = 0;
  let left = size;
  let answers = 0;
  const memory = new Uint8Array(size);
  const { promise: ended, resolve } = Promise.withResolvers<Error | null>();
  const take = (bytes: Uint8Array) => {
    for (let i = 0; i < bytes.length; i += 61) if (bytes[i] !== at(total + i)) wrong++;
    total += bytes.length;
  };
  const advance = (bytes: number) => {
    left -= bytes;
    if (left > 0) return;
    left += size;
    onAnswer(++answers);
  };
  const events: ConnectionEvents = {
    data(chunk) {
      take(chunk);
      for (let n = chunk.length; n > 0; ) {
        const step = Math.min(n, left);
        n -= step;
        advance(step);
      }
    },
    space: () => (left > size - 8 ? null : memory.subarray(size - left)),
    placed(bytes) {
      const from = size - left;
      take(memory.subarray(from, from + bytes));
      direct += bytes;
      advance(bytes);
    },
    close: resolve,
  };
  return { events, ended, total: () => total, wrong: () => wrong, direct: () => direct };
}

const dial = (port: number, events: ConnectionEvents): Promise<Connection> =>
  createNet(systemClock).dial(
    { host: "127.0.0.1", port, tls: null, timeoutMs: 5000, signal: new AbortController().signal },
    events,
  );

describe("direct reads", () => {
  for (const size of [40_000, 1_000_003, 6_553_600]) {
    test(`answers of ${size} bytes: all bytes, in order, most of them direct when they are large`, async () => {
      const bytes = Math.ceil(24_000_000 / size) * size;
      const port = await serve((s) => s.end(stream(bytes)));
      const r = receiver(size);
      await dial(port, r.events);
      expect(await r.ended).toBeNull();
      expect(r.total()).toBe(bytes);
      expect(r.wrong()).toBe(0);
      if (size > 1_000_000) expect(r.direct()).toBeGreaterThan(0);
    });
  }

  test("pieces that trickle in are waited for without a hang, and nothing is lost", async () => {
    const all = stream(300_000);
    const port = await serve(async (s) => {
      for (let from = 0; from < all.length; from += 30_011) {
        s.write(all.subarray(from, from + 30_011));
        await Bun.sleep(from % 3);
      }
      s.end();
    });
    const r = receiver(150_000);
    await dial(port, r.events);
    expect(await r.ended).toBeNull();
    expect(r.total()).toBe(300_000);
    expect(r.wrong()).toBe(0);
  });

  test("a peer that ends or resets in the middle of an answer is noticed", async () => {
    for (const end of ["end", "resetAndDestroy"] as const) {
      const port = await serve((s) => {
        s.write(stream(500_000), () => setTimeout(() => s[end](), 20));
      });
      const r = receiver(1_000_000);
      await dial(port, r.events);
      const error = await r.ended;
      if (end === "end") {
        expect(error).toBeNull();
        expect(r.total()).toBe(500_000);
      } else expect(error).not.toBeNull();
      expect(r.wrong()).toBe(0);
    }
  });

  test("closing from within an answer ends the reading", async () => {
    const port = await serve((s) => s.write(stream(8_000_000)));
    let connection: Connection | null = null;
    const r = receiver(1_000_000, (answers) => {
      if (answers === 2) connection?.close();
    });
    connection = await dial(port, r.events);
    await Bun.sleep(50);
    expect(r.total()).toBeLessThan(8_000_000);
    expect(r.wrong()).toBe(0);
  });

  test("a paused connection reads nothing", async () => {
    const port = await serve((s) => s.write(stream(8_000_000)));
    let seen = 0;
    let connection: Connection | null = null;
    const r = receiver(1_000_000, (answers) => {
      if (answers !== 1) return;
      connection?.pause();
      seen = r.total();
    });
    connection = await dial(port, r.events);
    await Bun.sleep(50);
    expect(r.total() - seen).toBeLessThan(1_000_000);
    connection.resume();
    while (r.total() < 8_000_000) await Bun.sleep(5);
    expect(r.wrong()).toBe(0);
    connection.close();
  });
});
