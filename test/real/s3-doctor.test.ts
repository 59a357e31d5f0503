/** Goal: doctor's word on a bucket is true, and it leaves nothing in it. Method: real S3 servers; a plain client looks. */
import { expect, test } from "bun:test";
import { coverageKeyOf, ObjectVersionedStore } from "../../src/adapters/coverage/object-store.ts";
import { s3Checkup } from "../../src/adapters/object-store/s3-doctor.ts";
import { S3Objects } from "../../src/adapters/object-store/s3-objects.ts";
import { ownFolder } from "../../src/adapters/object-store/s3-store.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { runCheckups } from "../../src/commands/doctor-run.ts";
import { connectionTo, EACH_SERVER, freshPrefix, Outside, requestsTo } from "../s3/servers.ts";

for (const [name, server] of EACH_SERVER) {
  const findings = async (prefix: string, more: Parameters<typeof connectionTo>[2]) => {
    if (server === null) throw new Error("no server");
    const requests = requestsTo(connectionTo(server, prefix, more));
    const folder = coverageKeyOf("p", "s");
    const versions = new ObjectVersionedStore(new S3Objects(requests), { folder, instance: "d" });
    const checkup = s3Checkup({ requests, own: ownFolder("p", "s"), instance: "d", versions });
    return runCheckups([checkup], systemClock, 30_000);
  };

  test.skipIf(server === null)(
    `${name}: each thing that a sink rests on is tried and taken away again`,
    async () => {
      const prefix = freshPrefix();
      const outside = new Outside(server!, prefix);
      const found = await findings(prefix, {});
      expect(found.map((f) => `${f.check} ${f.verdict}`)).toEqual([
        "s3.write ok",
        "s3.clock ok",
        "s3.remove ok",
        "s3.conditions ok",
        "s3.uploads ok",
      ]);
      expect(await outside.keys()).toEqual([]);
      expect(await outside.openUploads()).toEqual([]);
      outside.close();
    },
  );

  test.skipIf(server === null)(
    `${name}: a wrong key, and a bucket that is not there, are findings`,
    async () => {
      const keys = { accessKeyId: server!.accessKey, secretAccessKey: "wrong-secret", sessionToken: null };
      const denied = await findings(freshPrefix(), { keys });
      expect(denied.map((f) => `${f.check} ${f.verdict}`)).toEqual(["s3.write failed"]);
      expect(JSON.stringify(denied)).not.toContain("wrong-secret");
      const absent = await findings(freshPrefix(), { bucket: "no-such-bucket-here" });
      expect(absent.map((f) => `${f.check} ${f.verdict}`)).toEqual(["s3.write failed"]);
      expect(absent[0]?.code).not.toBe("internal.bug");
    },
  );
}
