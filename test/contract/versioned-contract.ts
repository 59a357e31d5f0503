/** What every `VersionedStore` must do; see core/ports/versioned-store.ts. Everything in coverage rests on it. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { VersionedStore } from "../../src/core/ports/versioned-store.ts";

export interface VersionedBench {
  /** Another handle on the same object, as another process has it. */
  open(): VersionedStore;
  close(): Promise<void>;
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (b: Uint8Array | null | undefined): string | null => (b ? new TextDecoder().decode(b) : null);

export function versionedContract(name: string, make: () => Promise<VersionedBench>): void {
  describe(`versioned store: ${name}`, () => {
    let bench: VersionedBench;
    let a: VersionedStore;
    let b: VersionedStore;

    beforeEach(async () => {
      bench = await make();
      a = bench.open();
      b = bench.open();
      await a.prepare();
      await b.prepare();
    });
    afterEach(() => bench.close());

    test("nothing was ever written: null; the first write is version 1", async () => {
      expect(await a.read()).toBeNull();
      expect(await a.write(null, bytes("one"), "t1")).toBe("won");
      const found = await b.read();
      expect([found?.version, text(found?.bytes)]).toEqual([1, "one"]);
      expect(found?.name).toContain("1");
    });

    test("versions grow by one, and the newest is read", async () => {
      for (let v = 0; v < 30; v++)
        expect(await a.write(v === 0 ? null : v, bytes(`v${v + 1}`), `t${v}`)).toBe("won");
      const found = await b.read();
      expect([found?.version, text(found?.bytes)]).toEqual([30, "v30"]);
    });

    test("a write upon an older version has no effect, however old it is", async () => {
      for (let v = 0; v < 20; v++) await a.write(v === 0 ? null : v, bytes(`v${v + 1}`), `t${v}`);
      for (const stale of [null, 1, 5, 12, 19]) {
        // Not "won" is the promise; a store that cannot tell says unknown, and then the bytes must not be there.
        expect(await b.write(stale, bytes("stale"), `s${stale}`)).not.toBe("won");
        expect(text((await a.read())?.bytes)).toBe("v20");
      }
      expect(await a.write(20, bytes("v21"), "t21")).toBe("won");
      expect((await b.read())?.version).toBe(21);
    });

    test("of writers that race for a version exactly one wins, and its bytes are read", async () => {
      const stores = Array.from({ length: 8 }, () => bench.open());
      for (let version = 0; version < 5; version++) {
        const expected = version === 0 ? null : version;
        const outcomes = await Promise.all(
          stores.map((s, i) => s.write(expected, bytes(`${version}/${i}`), `r${version}.${i}`)),
        );
        const winners = outcomes.flatMap((o, i) => (o === "won" ? [i] : []));
        expect(winners).toHaveLength(1);
        expect(text((await a.read())?.bytes)).toBe(`${version}/${winners[0]}`);
      }
    });

    test("segments: absent is null, the same may be put again, a sweep keeps what is named", async () => {
      expect(await a.getSegment("x")).toBeNull();
      await a.putSegment("x", bytes("ex"));
      await a.putSegment("x", bytes("ex"));
      // Whoever writes the same at the same moment does not spoil it.
      await Promise.all(Array.from({ length: 8 }, () => a.putSegment("x", bytes("ex"))));
      await a.putSegment("y.1", bytes("why"));
      expect([text(await b.getSegment("x")), text(await b.getSegment("y.1"))]).toEqual(["ex", "why"]);
      await b.sweep(null);
      expect(text(await a.getSegment("x"))).toBe("ex");
      await b.sweep(new Set(["y.1"]));
      expect([await a.getSegment("x"), text(await a.getSegment("y.1"))]).toEqual([null, "why"]);
    });

    test("a sweep leaves the versions alone", async () => {
      await a.write(null, bytes("one"), "t1");
      await a.sweep(new Set());
      expect(text((await b.read())?.bytes)).toBe("one");
    });
  });
}
