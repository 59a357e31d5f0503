/**
 * Reads the rest of a large answer straight into the memory where it belongs. The runtime's socket hands out a fresh
 * buffer for each piece, copied from its own: two copies and the page faults of new memory for every byte. Here the
 * kernel's copy is the only one (docs/decisions/0009-direct-reads.md has the figures).
 *
 * Called from the socket's data callback on plain connections only: what the runtime read is consumed by then, so
 * the next bytes of the kernel are the next bytes of the stream. An end or an error is left for the runtime to find.
 */
import { dlopen, FFIType, ptr } from "bun:ffi";
import type { ConnectionEvents } from "../../core/ports/net.ts";

const SYMBOLS = {
  recv: { args: [FFIType.i32, FFIType.ptr, FFIType.u64, FFIType.i32], returns: FFIType.i64_fast },
  poll: { args: [FFIType.ptr, FFIType.u64, FFIType.i32], returns: FFIType.i32 },
} as const;

type Calls = ReturnType<typeof dlopen<typeof SYMBOLS>>["symbols"];

const MSG_DONTWAIT = 0x40;
const POLLIN = 1;
/** Below this the runtime's own read is as good. */
const LEAST_BYTES = 32 * 1024;
/**
 * The rest of an answer is under way: to wait a moment for it is cheaper than to go back to the loop, whose read
 * would be the dear one. Other connections wait meanwhile, so only this long, and so often a callback.
 */
const WAIT_MS = 1;
const MOST_WAITS = 8;

/** struct pollfd: int fd, short events, short revents. */
const pollFd = new Int32Array(2);

let loaded: Calls | null | undefined;

/** Null where the C library cannot be opened by name: everything goes through the runtime then. */
function calls(): Calls | null {
  if (loaded !== undefined) return loaded;
  const musl = `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`;
  for (const name of ["libc.so.6", musl]) {
    try {
      loaded = dlopen(name, SYMBOLS).symbols;
      return loaded;
    } catch {
      // The other C library, then.
    }
  }
  loaded = null;
  return null;
}

function arrives(c: Calls, fd: number): boolean {
  pollFd[0] = fd;
  pollFd[1] = POLLIN;
  return c.poll(ptr(pollFd), 1, WAIT_MS) > 0;
}

/** Until the answer is complete, or nothing has come for a moment. */
export function readOn(
  fd: number,
  connection: { readonly closed: boolean; readonly paused: boolean },
  events: ConnectionEvents,
): void {
  if (events.space === undefined || events.placed === undefined) return;
  let waits = MOST_WAITS;
  while (!connection.closed && !connection.paused) {
    const space = events.space();
    if (space === null || space.length < LEAST_BYTES) return;
    const c = calls();
    if (c === null) return;
    const read = Number(c.recv(fd, ptr(space), space.length, MSG_DONTWAIT));
    if (read > 0) {
      events.placed(read);
      if (read === space.length) return;
    } else if (read === 0 || waits-- === 0 || !arrives(c, fd)) return;
  }
}
