/**
 * Hosts a lane on the caller's thread: for tests and the simulated world. Messages are handed over by a queued
 * job, never by a nested call, so that both ends see the same order as with a Worker.
 */
import type { FromLane, LanePort, ToLane } from "../../core/ports/lane.ts";

export interface InProcessLane {
  receive(message: ToLane): void;
}

export function hostInProcess(build: (post: (message: FromLane) => void) => InProcessLane): LanePort {
  let handler: ((message: FromLane) => void) | null = null;
  let dead = false;
  const early: FromLane[] = [];
  const lane = build((message) => {
    queueMicrotask(() => {
      if (dead) return;
      if (handler === null) early.push(message);
      else handler(message);
    });
  });
  return {
    post(message) {
      queueMicrotask(() => {
        if (!dead) lane.receive(message);
      });
    },
    onMessage(h) {
      handler = h;
      for (const m of early.splice(0)) h(m);
    },
    kill() {
      dead = true;
    },
  };
}
