/**
 * Real S3 servers for tests, by command line. Used by scripts/with-servers.sh; by hand:
 *
 *   bun test/servers/s3/main.ts start FOLDER WEED    prints the value of TWG_REAL_S3
 *   bun test/servers/s3/main.ts stop FOLDER
 */
import { resolve } from "node:path";

import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { type S3Server, startS3, stopS3 } from "./server.ts";

const CACHE = resolve(import.meta.dir, "../../../.cache/servers");

async function makeBucket(s: S3Server): Promise<void> {
  const client = new S3Client({
    endpoint: s.endpoint,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: s.accessKey, secretAccessKey: s.secretKey },
  });
  await client.send(new CreateBucketCommand({ Bucket: s.bucket }));
}

const [verb, folder = "", weed = ""] = process.argv.slice(2);
const path = resolve(folder);
switch (verb) {
  case "start": {
    const began = performance.now();
    const servers = await startS3(path, weed, CACHE);
    await makeBucket(servers.seaweedfs);
    console.error(`servers: versitygw and SeaweedFS ready in ${Math.round(performance.now() - began)} ms`);
    console.log(JSON.stringify(servers));
    break;
  }
  case "stop":
    await stopS3(path);
    break;
  default:
    console.error("usage: see the head of test/servers/s3/main.ts");
    process.exit(2);
}
process.exit(0);
