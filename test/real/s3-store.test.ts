/**
 * Two-phase objects on real S3 servers: the contract of the port, then through a proxy that cuts, delays, refuses and
 * forgets. What landed is read by a plain client.
 */
import { test } from "bun:test";
import { ownFolder, S3ObjectStore } from "../../src/adapters/object-store/s3-store.ts";
import { objectStoreContract } from "../contract/object-store-contract.ts";
import { connectionTo, EACH_SERVER, freshPrefix, Outside, requestsTo } from "../s3/servers.ts";

for (const [name, server] of EACH_SERVER) {
  if (server === null) {
    test.skip(`object store: ${name}`, () => {});
    continue;
  }
  objectStoreContract(
    name,
    async () => {
      const prefix = freshPrefix();
      const outside = new Outside(server, prefix);
      const open = async (sink: string, instance: string) => {
        const requests = requestsTo(connectionTo(server, prefix));
        const store = new S3ObjectStore({ own: ownFolder("p", sink), instance }, requests);
        await store.prepare();
        return store;
      };
      return {
        open: (instance) => open("s", instance),
        openOther: (instance) => open("other", instance),
        visible: async () => (await outside.keys()).filter((k) => !k.startsWith("_twg/")),
        read: (key) => outside.read(key),
        plant: (key, bytes) => outside.write(key, bytes),
        remove: (key) => outside.remove(key),
        close: async () => outside.close(),
      };
    },
    { rounds: 6 },
  );
}
