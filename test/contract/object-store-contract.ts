/** What every `ObjectStore` must do; see core/ports/object-store.ts. Looked at from outside, without its own code. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Failure } from "../../src/core/failure/failure.ts";
import type { ObjectStore, Target } from "../../src/core/ports/object-store.ts";

export interface ObjectStoreBench {
  /** The store of another process or lane of the same sink. */
  open(instance: string): Promise<ObjectStore>;
  /** That of another sink in the same place. */
  openOther(instance: string): Promise<ObjectStore>;
  /** Keys that a reader sees, `_twg` left out. */
  visible(): Promise<readonly string[]>;
  read(key: string): Promise<Uint8Array>;
  /** Something of somebody else under a key. */
  plant(key: string, bytes: Uint8Array): Promise<void>;
  remove(key: string): Promise<void>;
  close(): Promise<void>;
}

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (b: Uint8Array) => new TextDecoder().decode(b);

export async function failureOf(work: () => Promise<unknown>): Promise<Failure> {
  try {
    await work();
  } catch (e) {
    if (e instanceof Failure) return e;
    throw e;
  }
  throw new Error("it did not fail");
}

/** Keys carry the instance, as those of the sinks do. */
export async function sealedObject(s: ObjectStore, key: string, content: Uint8Array): Promise<Target> {
  const object = await s.stage(key);
  await object.append(content);
  return object.seal(7);
}

export function objectStoreContract(
  name: string,
  make: () => Promise<ObjectStoreBench>,
  options: { readonly publishers?: number; readonly rounds?: number } = {},
): void {
  describe(`object store: ${name}`, () => {
    const { publishers = 4, rounds = 20 } = options;
    let bench: ObjectStoreBench;
    let a: ObjectStore;
    let b: ObjectStore;

    beforeEach(async () => {
      bench = await make();
      a = await bench.open("a");
      b = await bench.open("b");
    });
    afterEach(() => bench.close());

    test("staged, sealed, published; nothing can be seen before, and then just that", async () => {
      const object = await a.stage("t/d=1/f-a-0.parquet");
      await object.append(bytes("ab"));
      await object.append(bytes("cde"));
      expect(await bench.visible()).toEqual([]);
      const target = await object.seal(3);
      expect(target).toMatchObject({ key: "t/d=1/f-a-0.parquet", bytes: 5, rows: 3 });
      expect(await a.probe(target)).toBe("staged");
      expect(await bench.visible()).toEqual([]);
      await a.publish(target);
      expect(await bench.visible()).toEqual([target.key]);
      expect(text(await bench.read(target.key))).toBe("abcde");
      expect(await a.probe(target)).toBe("published");
    });

    test("a target survives its process: another one publishes it, a third publishes it again", async () => {
      const target = JSON.parse(JSON.stringify(await sealedObject(a, "f-a-0", bytes("hello")))) as Target;
      await b.publish(target);
      await (await bench.open("c")).publish(target);
      expect(text(await bench.read(target.key))).toBe("hello");
    });

    test("several publish at once: whoever is told of success can see the object", async () => {
      const stores = await Promise.all(Array.from({ length: publishers }, (_, i) => bench.open(`p${i}`)));
      for (let i = 0; i < rounds; i++) {
        const content = bytes(`round ${i}`);
        const target = await sealedObject(a, `race/f-a-${i}`, content);
        const seen = stores.map(async (s) => {
          await s.publish(target);
          return text(await bench.read(target.key));
        });
        expect(await Promise.all(seen)).toEqual(stores.map(() => `round ${i}`));
      }
    });

    test("publish and discard at once: all of it or nothing, and everybody sees the same", async () => {
      for (let i = 0; i < rounds; i++) {
        const target = await sealedObject(a, `torn/f-a-${i}`, bytes(`round ${i}`));
        const [published] = await Promise.allSettled([a.publish(target), b.discard(target)]);
        const state = await b.probe(target);
        const there = (await bench.visible()).includes(target.key);
        expect([state, there]).toEqual(
          published.status === "fulfilled" ? ["published", true] : ["absent", false],
        );
        if (there) expect(text(await bench.read(target.key))).toBe(`round ${i}`);
        if (published.status === "rejected") expect(published.reason).toMatchObject({ code: "store.absent" });
      }
    });

    test("abort and discard remove what is staged, twice without complaint, and never what is published", async () => {
      const object = await a.stage("f-a-0");
      await object.append(bytes("x"));
      await object.abort();
      await object.abort();
      const target = await sealedObject(a, "f-a-1", bytes("hello"));
      await a.publish(target);
      await a.discard(target);
      expect(text(await bench.read(target.key))).toBe("hello");
      const other = await sealedObject(a, "f-a-2", bytes("other"));
      await b.discard(other);
      await b.discard(other);
      expect(await a.probe(other)).toBe("absent");
      expect((await failureOf(() => a.publish(other))).code).toBe("store.absent");
      expect(await bench.visible()).toEqual([target.key]);
    });

    test("use after the end is a bug that is told", async () => {
      const object = await a.stage("f-a-0");
      await object.append(bytes("x"));
      await object.seal(0);
      expect((await failureOf(() => object.append(bytes("x")))).code).toBe("internal.bug");
    });

    test("what somebody put under our key is left as it is, also of our size", async () => {
      for (const [i, foreign] of ["of somebody", "HELLO"].entries()) {
        const target = await sealedObject(a, `f-a-${i}`, bytes("hello"));
        await bench.plant(target.key, bytes(foreign));
        expect((await failureOf(() => a.publish(target))).code).toBe("store.foreign");
        expect((await failureOf(() => b.probe(target))).code).toBe("store.foreign");
        expect(text(await bench.read(target.key))).toBe(foreign);
        // Our bytes are still there for when it was moved away.
        await bench.remove(target.key);
        await b.publish(target);
        expect(text(await bench.read(target.key))).toBe("hello");
      }
    });

    test("a sweep removes what no intent names, and nothing of another sink", async () => {
      const kept = await sealedObject(a, "f-a-1", bytes("kept"));
      const stray = await sealedObject(a, "f-a-2", bytes("stray"));
      const unfinished = await a.stage("f-a-3");
      await unfinished.append(new Uint8Array(6 * 1024 * 1024));
      const other = await bench.openOther("z");
      const neighbour = await sealedObject(other, "f-z-4", bytes("next door"));
      expect(await b.sweep(new Set([kept.staging]))).toHaveLength(2);
      expect(await b.probe(stray)).toBe("absent");
      expect(await other.probe(neighbour)).toBe("staged");
      await b.publish(kept);
      expect(text(await bench.read(kept.key))).toBe("kept");
      expect(await b.sweep(new Set())).toEqual([]);
    });

    test("stored names that lead out of the place are refused", async () => {
      const good = await sealedObject(a, "f-a-0", bytes("hello"));
      for (const key of ["../x", "a/../../x", "", "/x"]) {
        expect((await failureOf(() => a.publish({ ...good, key }))).code).toBe("internal.bug");
      }
    });

    test("content of several parts comes out as it went in, however it was cut", async () => {
      const mib = 1024 * 1024;
      const content = new Uint8Array(17 * mib + 12_345);
      for (let i = 0; i < content.length; i += 4) content[i] = (i * 2654435761) >>> 24;
      const object = await a.stage("f-a-0");
      for (let at = 0, n = 1; at < content.length; at += n, n = Math.min(7 * mib, n * 3)) {
        await object.append(content.subarray(at, at + n));
      }
      const target = await object.seal(1);
      expect(target.bytes).toBe(content.length);
      await a.publish(target);
      expect(Bun.hash.xxHash64(await bench.read(target.key))).toBe(Bun.hash.xxHash64(content));
    });
  });
}
