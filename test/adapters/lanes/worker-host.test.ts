/** Goal: a thread that the system does not give is its fault, and told as such. Method: a Worker that cannot be made. */
import { afterEach, expect, test } from "bun:test";
import { spawnThread } from "../../../src/adapters/lanes/worker-host.ts";
import { Failure } from "../../../src/core/failure/failure.ts";

const { Worker } = globalThis;
afterEach(() => {
  globalThis.Worker = Worker;
});

test("a thread that the system does not give is of the environment, and no bug of ours", () => {
  globalThis.Worker = class {
    constructor() {
      throw new Error("Failed to spawn worker thread");
    }
  } as unknown as typeof Worker;
  let thrown: unknown = null;
  try {
    spawnThread("lane 3", {});
  } catch (e) {
    thrown = e;
  }
  expect(thrown).toBeInstanceOf(Failure);
  expect(thrown).toMatchObject({ code: "lane.no_thread", kind: "environment", at: "lane 3" });
});
