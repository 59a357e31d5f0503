// Goal: bytes in flight stay within the budget, nobody starves, nobody is forgotten. Method: single cases, then
// random walks over the invariants.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Budget } from "../../../src/core/delivery/budget.ts";

const two = (maxBytes: number, grainBytes = 1) => new Budget({ maxBytes, owners: [0, 1], grainBytes });

test("an owner gets all but the other's reserve", () => {
  const b = two(1000);
  // Reserves are 1000 / 2 / 2 = 250 each.
  expect(b.room(0)).toBe(750);
  b.take(0, 750);
  expect(b.room(0)).toBe(0);
  expect(b.room(1)).toBe(250);
  b.take(1, 250);
  expect(b.room(1)).toBe(0);
  expect(b.used).toBe(1000);
  expect(b.owners()).toEqual([
    { owner: 0, bytes: 750 },
    { owner: 1, bytes: 250 },
  ]);
});

test("an item larger than the whole budget passes when its owner is empty", () => {
  const b = two(100);
  expect(b.admits(0, 5000)).toBe(true);
  b.take(0, 5000);
  expect(b.admits(0, 1)).toBe(false);
  // The other owner is empty, so it may ask for one item although the budget is overdrawn.
  expect(b.room(1)).toBe(1);
  expect(b.admits(1, 5000)).toBe(true);
  b.give(0, 5000);
  expect(b.room(0)).toBe(75);
});

test("less room than a fetch is worth counts as none", () => {
  const b = two(1000, 100);
  b.take(0, 700);
  expect(b.room(0)).toBe(0);
  b.give(0, 51);
  expect(b.room(0)).toBe(101);
});

test("the default grain is an eighth of a reserve, at most 64 KiB", () => {
  const small = new Budget({ maxBytes: 1600, owners: ["a"] });
  // Reserve 800, grain 100: 99 bytes left are none.
  small.take("a", 1501);
  expect(small.room("a")).toBe(0);
  small.give("a", 1);
  expect(small.room("a")).toBe(100);
  const large = new Budget({ maxBytes: 2 ** 30, owners: ["a"] });
  large.take("a", 2 ** 30 - 65_535);
  expect(large.room("a")).toBe(0);
  large.give("a", 1);
  expect(large.room("a")).toBe(65_536);
});

test("a waiter with room is called soon, but never from within the call", async () => {
  const b = two(100);
  let woken = 0;
  b.whenRoom(0, () => woken++);
  expect(woken).toBe(0);
  await Promise.resolve();
  expect(woken).toBe(1);
});

test("a waiter without room is called once, by the give that makes room", () => {
  const b = two(1000, 100);
  b.take(0, 750);
  let woken = 0;
  b.whenRoom(0, () => woken++);
  b.give(0, 50);
  expect(woken).toBe(0);
  b.give(0, 50);
  expect(woken).toBe(1);
  b.give(0, 50);
  expect(woken).toBe(1);
});

test("giving by one owner wakes another, since room is shared", () => {
  const b = two(1000);
  b.take(0, 500);
  b.take(1, 500);
  let woken = 0;
  b.whenRoom(1, () => woken++);
  b.give(0, 500);
  expect(woken).toBe(1);
});

test("a waiter whose room an earlier one took stays waiting", () => {
  const b = two(1000);
  b.take(0, 750);
  const calls: string[] = [];
  b.whenRoom(0, () => {
    calls.push("first");
    b.take(0, 100);
  });
  b.whenRoom(0, () => calls.push("second"));
  b.give(0, 100);
  expect(calls).toEqual(["first"]);
  b.give(0, 100);
  expect(calls).toEqual(["first", "second"]);
});

test("a wake that throws does not cost the next one its call", () => {
  const b = two(1000);
  b.take(0, 750);
  let woken = 0;
  b.whenRoom(0, () => {
    throw new Error("mine");
  });
  b.whenRoom(0, () => woken++);
  expect(() => b.give(0, 750)).toThrow("mine");
  expect(woken).toBe(1);
});

test("a wake may wait again from within its call without being called in a loop", () => {
  const b = two(1000);
  b.take(0, 750);
  let woken = 0;
  const again = () => {
    woken++;
    b.take(0, 10);
    b.whenRoom(0, again);
  };
  b.whenRoom(0, again);
  b.give(0, 10);
  expect(woken).toBe(1);
});

test("all of a dead owner's bytes come back at once", () => {
  const b = two(1000);
  b.take(0, 300);
  b.take(0, 200);
  expect(b.giveAll(0)).toBe(500);
  expect(b.giveAll(0)).toBe(0);
  expect(b.used).toBe(0);
});

test("becoming full and free again is told once each", () => {
  const seen: string[] = [];
  const b = new Budget({
    maxBytes: 1000,
    owners: [0, 1],
    grainBytes: 1,
    onChange: (owner, full) => seen.push(`${owner} ${full ? "full" : "free"}`),
  });
  b.take(0, 700);
  b.take(0, 50);
  b.give(0, 1);
  b.give(0, 749);
  expect(seen).toEqual(["0 full", "0 free"]);
});

test("misuse is refused", () => {
  const b = two(100);
  expect(() => b.give(0, 1)).toThrow("holds 0");
  expect(() => b.take(7, 1)).toThrow("no owner 7");
  expect(() => b.take(0, -1)).toThrow("not a number of bytes");
  expect(() => b.take(0, 0.5)).toThrow("not a number of bytes");
  expect(() => new Budget({ maxBytes: 0, owners: [0] })).toThrow("needs a size");
  expect(() => new Budget({ maxBytes: 1, owners: [] })).toThrow("needs a size");
});

/** One step: an owner asks for up to `size` of its room (or one oversize item if empty), or gives `size` back. */
const steps = fc.array(
  fc.record({ owner: fc.nat(3), give: fc.boolean(), size: fc.nat(4000), oversize: fc.boolean() }),
  { maxLength: 200 },
);

test("property: used is the sum of what owners hold, and within the bound plus one oversize item an owner", () => {
  fc.assert(
    fc.property(steps, (walk) => {
      const b = new Budget({ maxBytes: 4000, owners: [0, 1, 2, 3], grainBytes: 10 });
      const held = [0, 0, 0, 0];
      const over = [0, 0, 0, 0];
      for (const s of walk) {
        const mine = held[s.owner] ?? 0;
        if (s.give) {
          const back = Math.min(s.size, mine);
          b.give(s.owner, back);
          held[s.owner] = mine - back;
        } else {
          const room = b.room(s.owner);
          const size = s.oversize && mine === 0 ? 5000 : Math.min(s.size, room);
          if (size > room) over[s.owner] = Math.max(over[s.owner] ?? 0, size);
          b.take(s.owner, size);
          held[s.owner] = mine + size;
        }
        expect(b.used).toBe(held.reduce((x, y) => x + y));
        expect(b.used).toBeLessThanOrEqual(4000 + over.reduce((x, y) => x + y));
        for (const o of [0, 1, 2, 3]) if (held[o] === 0) expect(b.room(o)).toBeGreaterThan(0);
      }
    }),
  );
});

test("property: without oversize items an empty owner always has at least its reserve", () => {
  fc.assert(
    fc.property(steps, (walk) => {
      const b = new Budget({ maxBytes: 4000, owners: [0, 1, 2, 3], grainBytes: 10 });
      for (const s of walk) {
        if (s.give) b.give(s.owner, Math.min(s.size, b.usedBy(s.owner)));
        else b.take(s.owner, Math.min(s.size, b.room(s.owner)));
        for (const o of [0, 1, 2, 3]) if (b.usedBy(o) === 0) expect(b.room(o)).toBeGreaterThanOrEqual(500);
      }
    }),
  );
});

test("property: after everything was given back nobody still waits", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (walk) => {
      const b = new Budget({ maxBytes: 4000, owners: [0, 1, 2, 3], grainBytes: 10 });
      let waiting = 0;
      for (const s of walk) {
        if (s.give) b.give(s.owner, Math.min(s.size, b.usedBy(s.owner)));
        else if (b.room(s.owner) > 0) b.take(s.owner, s.size);
        else {
          waiting++;
          b.whenRoom(s.owner, () => waiting--);
        }
      }
      for (const o of [0, 1, 2, 3]) b.giveAll(o);
      await Promise.resolve();
      expect(waiting).toBe(0);
    }),
  );
});
