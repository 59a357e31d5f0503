/**
 * Coverage over a store that writes on condition, in memory: a store that breaks a promise is refused at the start with
 * what it did, and every answer but a success is settled by looking. Real servers: test/real/s3-coverage.test.ts.
 */
import { expect, test } from "bun:test";
import { ObjectVersionedStore } from "../../../src/adapters/coverage/object-store.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import type {
  Condition,
  ConditionalObjects,
  PutOutcome,
  StoredObject,
} from "../../../src/core/ports/conditional-objects.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

class MemoryObjects implements ConditionalObjects {
  readonly place = "memory://b";
  readonly objects = new Map<string, StoredObject>();
  serial = 0;

  async head(key: string) {
    return this.objects.get(key) ?? null;
  }
  async get(key: string, maxBytes: number) {
    const found = this.objects.get(key) ?? null;
    if (found !== null && found.bytes > maxBytes) throw new Failure("bytes.limit", "too large");
    return found;
  }
  async putIf(
    key: string,
    content: Uint8Array,
    metadata: Readonly<Record<string, string>>,
    { revision }: Condition,
  ): Promise<PutOutcome> {
    if ((this.objects.get(key)?.revision ?? null) !== revision) return { outcome: "refused" };
    return { outcome: "stored", revision: this.store(key, content, metadata) };
  }
  store(key: string, content: Uint8Array, metadata: Readonly<Record<string, string>>): string {
    const revision = `r${this.serial++}`;
    this.objects.set(key, { revision, bytes: content.length, content, metadata });
    return revision;
  }
  async put(key: string, content: Uint8Array) {
    this.store(key, content, {});
  }
  async list(prefix: string) {
    const keys = [...this.objects.keys()].filter((k) => k.startsWith(prefix));
    return keys.map((key) => ({ key, bytes: 0, ageMs: 0 }));
  }
  async remove(key: string) {
    this.objects.delete(key);
  }
}

const over = (objects: ConditionalObjects) =>
  new ObjectVersionedStore(objects, { folder: "c", instance: "i" });
const failureOf = (work: Promise<unknown>): Promise<Failure> =>
  work.then(
    () => Promise.reject(new Error("it did not fail")),
    (e: Failure) => e,
  );

test("a store that keeps its word passes, and nothing is left of the probe", async () => {
  const objects = new MemoryObjects();
  await over(objects).prepare();
  expect([...objects.objects.keys()]).toEqual([]);
});

const BROKEN: readonly (readonly [RegExp, Partial<MemoryObjects>])[] = [
  [
    /let 4 of 4 writers make one new object/,
    {
      async putIf(this: MemoryObjects, key, content, metadata) {
        return { outcome: "stored", revision: this.store(key, content, metadata) };
      },
    },
  ],
  [
    /in spite of If-Match/,
    {
      async putIf(this: MemoryObjects, key, content, metadata, { revision }) {
        if (revision === null && this.objects.has(key)) return { outcome: "refused" };
        return { outcome: "stored", revision: this.store(key, content, metadata) };
      },
    },
  ],
  [
    /refuses a write whose If-Match holds/,
    {
      async putIf(this: MemoryObjects, key, content, metadata, { revision }) {
        if (revision !== null || this.objects.has(key)) return { outcome: "refused" };
        return { outcome: "stored", revision: this.store(key, content, metadata) };
      },
    },
  ],
  [
    /names two contents by one entity tag/,
    {
      store(this: MemoryObjects, key, content, metadata) {
        this.objects.set(key, { revision: "same", bytes: content.length, content, metadata });
        return "same";
      },
    },
  ],
  [
    /does not keep what was written, or its metadata/,
    {
      store(this: MemoryObjects, key, content) {
        const revision = `r${this.serial++}`;
        this.objects.set(key, { revision, bytes: content.length, content, metadata: {} });
        return revision;
      },
    },
  ],
];

for (const [what, broken] of BROKEN) {
  test(`a store that breaks a promise is refused: ${what.source}`, async () => {
    const f = await failureOf(over(Object.assign(new MemoryObjects(), broken)).prepare());
    expect([f.code, f.kind]).toEqual(["coverage.no_conditions", "environment"]);
    expect(f.message).toMatch(what);
    expect(f.at).toBe("memory://b/c");
  });
}

test("one refusal of a write whose condition holds is not believed", async () => {
  const objects = new MemoryObjects();
  const putIf = objects.putIf.bind(objects);
  let left = 2;
  objects.putIf = async (key, content, metadata, condition) =>
    condition.revision !== null && left-- > 0
      ? { outcome: "refused" }
      : putIf(key, content, metadata, condition);
  await over(objects).prepare();
  expect(left).toBeLessThan(0);
});

test("a process that starts as well and sweeps the probe away spoils it, and proves nothing", async () => {
  const objects = new MemoryObjects();
  const get = objects.get.bind(objects);
  const sweeper = new ObjectVersionedStore(objects, { folder: "c", instance: "other" });
  let sweeps = 2;
  // Just before the write that must be refused, since the object is there.
  objects.get = async (key, maxBytes) => {
    const found = await get(key, maxBytes);
    if (sweeps-- > 0) await sweeper.sweep(null);
    return found;
  };
  await over(objects).prepare();
  expect([sweeps < 0, objects.objects.size]).toEqual([true, 0]);
});

test("what was left of another's probe is swept, and not the one that is our own", async () => {
  const objects = new MemoryObjects();
  for (const name of ["c/probe-i-1", "c/probe-ii-1", "c/probe-other-1", "c/coverage.json", "d/probe-x-1"])
    await objects.put(name, new Uint8Array([1]));
  await over(objects).sweep(null);
  expect([...objects.objects.keys()].toSorted()).toEqual(["c/coverage.json", "c/probe-i-1", "d/probe-x-1"]);
});

test("lost answers spoil a probe and prove nothing; a store that never answers is out of order", async () => {
  const objects = new MemoryObjects();
  const putIf = objects.putIf.bind(objects);
  let left = 6;
  objects.putIf = async (...args) => (left-- > 0 ? { outcome: "unknown" } : putIf(...args));
  await over(objects).prepare();
  objects.putIf = async () => ({ outcome: "unknown" });
  expect((await failureOf(over(objects).prepare())).code).toBe("coverage.unavailable");
});

test("a refusal that is the echo of our own success is a success", async () => {
  const objects = new MemoryObjects();
  const putIf = objects.putIf.bind(objects);
  objects.putIf = async (...args) => {
    await putIf(...args);
    return putIf(...args);
  };
  const store = over(objects);
  expect(await store.write(null, bytes("one"), "t1")).toBe("won");
  expect(await store.write(1, bytes("two"), "t2")).toBe("won");
  expect((await store.read())?.version).toBe(2);
});

test("an answer that is lost: won if our tag is there, lost if another's is, else unknown", async () => {
  const objects = new MemoryObjects();
  const putIf = objects.putIf.bind(objects);
  const [a, b] = [over(objects), over(objects)];
  objects.putIf = async (...args) => {
    await putIf(...args);
    return { outcome: "unknown" };
  };
  expect(await a.write(null, bytes("one"), "a1")).toBe("won");
  await b.read();
  expect(await a.write(1, bytes("two"), "a2")).toBe("won");
  expect(await b.write(1, bytes("late"), "b2")).toBe("lost");
  objects.putIf = async () => ({ outcome: "unknown" });
  expect(await a.write(2, bytes("three"), "a3")).toBe("unknown");
  objects.head = async () => {
    throw new Failure("store.unavailable", "out of order");
  };
  expect(await a.write(2, bytes("three"), "a4")).toBe("unknown");
});

test("an object that twg did not write, or that is too large, is never taken for nothing", async () => {
  const objects = new MemoryObjects();
  objects.store("c/coverage.json", bytes("{}"), {});
  expect((await failureOf(over(objects).read())).code).toBe("coverage.corrupt");
  objects.store("c/coverage.json", new Uint8Array(9 * 1024 * 1024), { "twg-version": "3" });
  const found = await over(objects).read();
  expect([found?.version, found?.bytes.length]).toEqual([3, 8 * 1024 * 1024 + 1]);
});

test("what the store says becomes what coverage says", async () => {
  for (const [code, of] of [
    ["store.denied", "coverage.denied"],
    ["store.full", "coverage.full"],
    ["store.unavailable", "coverage.unavailable"],
    ["store.misplaced", "store.misplaced"],
  ] as const) {
    const objects = new MemoryObjects();
    objects.get = async () => {
      throw new Failure(code, "it says so", { at: "there", hint: "do that" });
    };
    const f = await failureOf(over(objects).read());
    expect([f.code, f.at, f.hint]).toEqual([of, "there", "do that"]);
  }
});
