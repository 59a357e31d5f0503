/** The coverage in memory, which tests and the simulated world use, keeps the same promises as the one on disk. */
import { describe, expect, test } from "bun:test";
import {
  MemoryVersionedStore,
  sharedObject,
  type WriteFault,
} from "../../../src/adapters/coverage/memory.ts";
import { coverageContract } from "../../contract/coverage-contract.ts";
import { versionedContract } from "../../contract/versioned-contract.ts";
import { SeededChance } from "../../sim/chance.ts";
import { SimProcess } from "../../sim/clock.ts";
import { SimFolder } from "../../sim/store.ts";

versionedContract("memory", async () => {
  const shared = sharedObject();
  return { open: () => new MemoryVersionedStore(shared), close: async () => {} };
});

coverageContract("memory", async (time) => {
  const shared = sharedObject();
  const folder = new SimFolder(time, new SeededChance(1));
  return {
    versions: () => new MemoryVersionedStore(shared),
    objects: () => folder.handle(new SimProcess("any")),
    close: async () => {},
  };
});

describe("faults to order", () => {
  const store = (...faults: (WriteFault | null)[]) => {
    const shared = sharedObject();
    return {
      shared,
      s: new MemoryVersionedStore(shared, { fault: () => faults.shift() ?? null, delay: async () => {} }),
    };
  };

  test("lost and unknown_not_applied leave nothing, unknown_applied leaves the bytes", async () => {
    const { shared, s } = store("lost", "unknown_not_applied", "unknown_applied");
    const one = new Uint8Array([1]);
    await s.prepare();
    expect(await s.write(null, one, "t")).toBe("lost");
    expect(await s.write(null, one, "t")).toBe("unknown");
    expect(shared.versions.size).toBe(0);
    expect(await s.write(null, one, "t")).toBe("unknown");
    expect([...shared.versions]).toEqual([[1, one]]);
  });
});
