/**
 * Objects and coverage through a proxy that cuts, delays, refuses, repeats and forgets: each fault at each request of
 * an object's way, one at a time, then all of them by chance from a printed seed. What is there is read by a plain
 * client that does not go through the proxy.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  COVERAGE_OBJECT,
  coverageKeyOf,
  ObjectVersionedStore,
} from "../../src/adapters/coverage/object-store.ts";
import { S3Objects } from "../../src/adapters/object-store/s3-objects.ts";
import { ownFolder, S3ObjectStore } from "../../src/adapters/object-store/s3-store.ts";
import { sealedObject } from "../contract/object-store-contract.ts";
import { type Fault, FaultProxy, type S3Operation } from "../s3/fault-proxy.ts";
import { faultsOf, seededFaults } from "../s3/faults.ts";
import { connectionTo, EACH_SERVER, freshPrefix, Outside, requestsTo } from "../s3/servers.ts";

const ON_THE_WAY: readonly S3Operation[] = ["CreateUpload", "UploadPart", "Complete", "Head", "ListParts"];
const SEED = Number(process.env["TWG_S3_SEED"] ?? 1);
const bytes = (text: string) => new TextEncoder().encode(text);
const text = (b: Uint8Array) => new TextDecoder().decode(b);
const nameOf = (f: Fault) =>
  `${f.t}${"code" in f ? ` ${f.status}` : ""}${"done" in f && f.done ? " done" : ""}`;

for (const [name, server] of EACH_SERVER) {
  if (server === null) {
    test.skip(`faults before ${name}`, () => {});
    continue;
  }
  describe(`faults before ${name}`, () => {
    let proxy: FaultProxy;
    beforeAll(async () => {
      proxy = await FaultProxy.start(server.endpoint);
    });
    afterAll(() => proxy.stop());

    const through = (prefix: string, goneAfterMs = 400) => {
      const to = { ...server, endpoint: proxy.endpoint };
      return requestsTo(connectionTo(to, prefix, { requestTimeoutMs: 5_000, goneAfterMs }));
    };
    const storeAt = (prefix: string, instance: string, goneAfterMs?: number) =>
      new S3ObjectStore({ own: ownFolder("p", "s"), instance }, through(prefix, goneAfterMs));

    /** The first `times` requests of this kind meet the fault; then all is well. */
    const once = (operation: S3Operation, fault: Fault, times: number) => {
      let left = times;
      proxy.decide = (r) => (r.operation === operation && left-- > 0 ? fault : { t: "pass" });
    };

    // The way through our code is the same before both; a completion's outcome is what servers differ in.
    for (const operation of name === "versitygw" ? ON_THE_WAY : (["Complete"] as const)) {
      for (const fault of faultsOf(operation)) {
        test(`${operation}: ${nameOf(fault)}: the object is there once, and no upload is left`, async () => {
          const prefix = freshPrefix();
          const outside = new Outside(server, prefix);
          const store = storeAt(prefix, "a");
          once(operation, fault, 2);
          const target = await sealedObject(store, "f-a-0", bytes("hello"));
          await store.publish(target);
          proxy.decide = () => ({ t: "pass" });
          expect(await outside.keys()).toEqual(["f-a-0"]);
          expect(text(await outside.read("f-a-0"))).toBe("hello");
          expect(await outside.openUploads()).toEqual([]);
          outside.close();
        });
      }
    }

    for (const fault of faultsOf("Put")) {
      test(`Put without a condition: ${nameOf(fault)}: written, and written again over itself`, async () => {
        const prefix = freshPrefix();
        const outside = new Outside(server, prefix);
        const to = { ...server, endpoint: proxy.endpoint };
        const objects = new S3Objects(requestsTo(connectionTo(to, prefix, { requestTimeoutMs: 5_000 })));
        for (const content of ["one", "two"]) {
          once("Put", fault, 2);
          await objects.put("k", bytes(content));
          proxy.decide = () => ({ t: "pass" });
          expect(text(await outside.read("k"))).toBe(content);
        }
        outside.close();
      });
    }

    test("a gateway that shows neither upload nor object for a while is not believed", async () => {
      const prefix = freshPrefix();
      const store = storeAt(prefix, "a", 10_000);
      const target = await sealedObject(store, "f-a-0", bytes("hello"));
      let left = 5;
      proxy.decide = ({ operation }) =>
        (operation === "Head" || operation === "ListParts") && left-- > 0
          ? { t: "answer", status: 404, code: operation === "Head" ? "NoSuchKey" : "NoSuchUpload" }
          : { t: "pass" };
      expect(await store.probe(target)).toBe("staged");
      expect(left).toBeLessThan(0);
    });

    test("while a large upload is being completed nobody calls it gone", async () => {
      const prefix = freshPrefix();
      const [one, other] = [storeAt(prefix, "a"), storeAt(prefix, "b", 10_000)];
      for (let i = 0; i < 3; i++) {
        const target = await sealedObject(one, `f-a-${i}`, new Uint8Array(40 * 1024 * 1024));
        let over = false;
        const publishing = one.publish(target).finally(() => {
          over = true;
        });
        const seen = new Set<string>();
        while (!over) seen.add(await other.probe(target));
        await publishing;
        expect([...seen, await other.probe(target)]).not.toContain("absent");
      }
    });

    test("by chance: every object that was published is there whole, and a sweep leaves nothing open", async () => {
      const prefix = freshPrefix();
      const outside = new Outside(server, prefix);
      const clean = new S3ObjectStore(
        { own: ownFolder("p", "s"), instance: "b" },
        requestsTo(connectionTo(server, prefix)),
      );
      const store = storeAt(prefix, "a");
      await store.prepare();
      proxy.decide = seededFaults(SEED, 0.25);
      const wanted = new Map<string, string>();
      const work = Array.from({ length: 24 }, async (_, i) => {
        const key = `k/f-a-${i}`;
        const object = await retried(() => store.stage(key));
        await retried(() => object.append(bytes(`content of ${i}`)));
        if (i % 6 === 5) return void (await object.abort());
        const target = await retried(() => object.seal(1));
        if (i % 6 === 4) return void (await retried(() => store.discard(target)));
        await retried(() => store.publish(target));
        wanted.set(key, `content of ${i}`);
      });
      await Promise.all(work);
      proxy.decide = () => ({ t: "pass" });
      const keys = (await outside.keys()).filter((k) => !k.startsWith("_twg/"));
      expect([SEED, keys]).toEqual([SEED, [...wanted.keys()].sort()]);
      for (const [key, content] of wanted) expect(text(await outside.read(key))).toBe(content);
      await clean.sweep(new Set());
      expect(await outside.openUploads()).toEqual([]);
      outside.close();
    });

    test("the probes at the start bear faults, too", async () => {
      for (let seed = SEED; seed < SEED + 3; seed++) {
        const prefix = freshPrefix();
        proxy.decide = seededFaults(seed, 0.1);
        await retried(() => storeAt(prefix, "a").prepare());
        await retried(() => versionsAt(prefix, "a").prepare());
      }
      proxy.decide = () => ({ t: "pass" });
    });

    const versionsAt = (prefix: string, instance: string) =>
      new ObjectVersionedStore(new S3Objects(through(prefix)), { folder: coverageKeyOf("p", "s"), instance });

    test("writers of one object: what was won is in the history once, what was lost never", async () => {
      const prefix = freshPrefix();
      const outside = new Outside(server, prefix);
      proxy.decide = seededFaults(SEED + 100, 0.3);
      const outcomes = new Map<string, string>();
      const writers = Array.from({ length: 3 }, async (_, w) => {
        const store = versionsAt(prefix, `w${w}`);
        for (let n = 0; n < 8; n++) {
          const found = await retried(() => store.read());
          const history = found === null ? [] : (JSON.parse(text(found.bytes)) as string[]);
          const tag = `${w}.${n}`;
          const next = bytes(JSON.stringify([...history, tag]));
          outcomes.set(tag, await retried(() => store.write(found?.version ?? null, next, tag)));
        }
      });
      await Promise.all(writers);
      proxy.decide = () => ({ t: "pass" });
      const key = `${coverageKeyOf("p", "s")}/${COVERAGE_OBJECT}`;
      const history = JSON.parse(text(await outside.read(key))) as string[];
      expect(new Set(history).size).toBe(history.length);
      const told = (what: string) => [...outcomes].filter(([, o]) => o === what).map(([tag]) => tag);
      expect(told("won").filter((tag) => !history.includes(tag))).toEqual([]);
      expect(told("lost").filter((tag) => history.includes(tag))).toEqual([]);
      // The test is worth something only if all three came about.
      expect(told("won").length).toBeGreaterThan(0);
      outside.close();
    });
  });
}

/** As the committer and the lane do: an outage is waited out. */
async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (e) {
      const passes = e instanceof Error && "retry" in e && e.retry === true;
      if (!passes || tries === 20) throw e;
    }
  }
}
