/** Coverage on real S3 servers: the contracts of the versioned object and of the coverage over it. */
import { test } from "bun:test";
import { coverageKeyOf, ObjectVersionedStore } from "../../src/adapters/coverage/object-store.ts";
import { S3Objects } from "../../src/adapters/object-store/s3-objects.ts";
import { ownFolder, S3ObjectStore } from "../../src/adapters/object-store/s3-store.ts";
import { coverageContract } from "../contract/coverage-contract.ts";
import { versionedContract } from "../contract/versioned-contract.ts";
import { connectionTo, EACH_SERVER, freshPrefix, requestsTo } from "../s3/servers.ts";

for (const [name, server] of EACH_SERVER) {
  if (server === null) {
    test.skip(`coverage over ${name}`, () => {});
    continue;
  }
  let serial = 0;
  const instance = () => `i${serial++}`;
  const versions = (prefix: string) => {
    const objects = new S3Objects(requestsTo(connectionTo(server, prefix)));
    return new ObjectVersionedStore(objects, { folder: coverageKeyOf("p", "s"), instance: instance() });
  };

  // SeaweedFS takes a second for the race of the start-up probe, so only the first of these tests goes through it.
  let proven = false;
  const provenOnce = (store: ObjectVersionedStore) => {
    const prepare = store.prepare.bind(store);
    store.prepare = async () => {
      if (!proven) await prepare();
      proven = true;
    };
    return store;
  };

  versionedContract(name, async () => {
    const prefix = freshPrefix();
    return { open: () => provenOnce(versions(prefix)), close: async () => {} };
  });

  coverageContract(name, async (_time, traffic) => {
    const prefix = freshPrefix();
    const objects = () =>
      new S3ObjectStore(
        { own: ownFolder("p", "s"), instance: instance() },
        requestsTo(connectionTo(server, prefix, { goneAfterMs: 50 })),
      );
    return {
      versions: () => traffic.watch(provenOnce(versions(prefix))),
      objects: () => traffic.watch(objects()),
      close: async () => {},
    };
  });
}
