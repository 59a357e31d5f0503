import { expect, test } from "bun:test";
import { systemChance } from "../../../src/adapters/system/chance.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";

test("the clock fires a timer once, in order of time, and not when it was cancelled", async () => {
  const fired: string[] = [];
  const start = systemClock.monotonic();
  systemClock.after(1, () => fired.push("cancelled")).cancel();
  await new Promise<void>((resolve) => {
    systemClock.after(10, resolve);
    systemClock.after(1, () => fired.push("first"));
  });
  expect(fired).toEqual(["first"]);
  // A timer may not fire early, or deadlines would be missed by their own check (1 ms of rounding allowed).
  expect(systemClock.monotonic() - start).toBeGreaterThanOrEqual(9);
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000);
});

test("chance is in [0, 1), and its bytes are as many as asked and not the same twice", () => {
  for (let i = 0; i < 1000; i++) {
    const x = systemChance.next();
    expect(x >= 0 && x < 1).toBe(true);
  }
  const a = systemChance.bytes(32);
  expect(a.length).toBe(32);
  expect(Buffer.from(a).equals(Buffer.from(systemChance.bytes(32)))).toBe(false);
});
