/**
 * Goal: what a real broker holds is what lands in a real S3 server, value by value, and `inspect` reads it there.
 * Method: librdkafka reads the topic; pyarrow's own S3 client fetches the files, pyarrow and DuckDB read them; all must
 * agree. TWG_E2E_RECORDS sets the size (default 60,000).
 */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { EACH_SERVER, freshPrefix, Outside, S3_SERVERS } from "../s3/servers.ts";
import type { S3Server } from "../servers/s3/server.ts";
import { demandBrokers } from "./demand-brokers.ts";
import { feed } from "./feeder.ts";
import { compareWithKafka, createTopic, fresh, MAIN, python_ } from "./real-kafka.ts";
import { catchUp, command, type Pipeline, pipeline, SECRETS, stream, workFolder } from "./twg.ts";

const RECORDS = Number(process.env["TWG_E2E_RECORDS"] ?? "60000");
const PARTITIONS = 6;
const LIMIT = 120_000 + RECORDS;
const SECRET = { TWG_SECRET_S3_SECRET: "twgtestsecret" };
SECRETS.add("twgtestsecret");

demandBrokers("landing in S3");

const table = (s: S3Server, more = "") => `[sink.s3]
endpoint = "${s.endpoint}"
style = "path"
access_key_id = "${s.accessKey}"
secret_access_key = { secret = "s3-secret" }
${more}`;

const json = <T>(output: string) => JSON.parse(output) as T;

/** One topic for all servers. */
const filled: Promise<{ topic: string; visible: number }> = (async () => {
  if (MAIN === null) return { topic: "", visible: 0 };
  const topic = fresh("s3");
  await createTopic(MAIN, topic, { partitions: PARTITIONS });
  const wanted = JSON.stringify({ records: RECORDS, partitions: PARTITIONS, seed: 12 });
  const { visible } = await python_<{ visible: number }>("produce.py", [MAIN.plain.join(","), topic, wanted]);
  return { topic, visible };
})();

for (const [name, server] of EACH_SERVER) {
  describe.skipIf(MAIN === null || server === null)(name, () => {
    const prefix = freshPrefix();
    const outside = server === null ? null : new Outside(server, prefix);
    afterAll(() => outside?.close());
    let p: Pipeline;

    test(
      `${RECORDS} records of mixed kinds land as librdkafka reads them, and nothing else is left`,
      async () => {
        if (MAIN === null || server === null || outside === null) return;
        const { topic, visible } = await filled;
        p = pipeline({
          served: MAIN,
          topics: [topic],
          group: fresh("s3-group"),
          path: `s3://${server.bucket}/${prefix}/{topic}/{partition}`,
          sink: `roll_interval_ms = "3s"\nroll_bytes = "16MiB"\n\n${table(server)}`,
        });
        await catchUp(p, { environment: SECRET });

        const into = join(workFolder(), "fetched");
        const place = `${server.bucket}/${prefix}`;
        const { endpoint, accessKey, secretKey } = server;
        const copied = await python_<{ files: number; bytes: number }>("fetch_s3.py", [
          ...[endpoint, accessKey, secretKey, place, into],
        ]);
        const compared = await compareWithKafka(MAIN, topic, into);
        expect(compared.differences).toEqual([]);
        expect([compared.rows, compared.kafka_rows]).toEqual([visible, visible]);
        expect(compared.duckdb).toEqual(compared.kafka);
        expect(await outside.openUploads()).toEqual([]);
        const others = (await outside.keys()).filter((k) => !k.endsWith(".parquet"));
        expect(others.filter((k) => !/^_twg\/e2e\/raw\/(instances|coverage)\//.test(k))).toEqual([]);
        if (process.env["TWG_E2E_RECORDS"] !== undefined) {
          console.log(JSON.stringify({ server: name, visible, ...copied, ...compared }));
        }
      },
      LIMIT,
    );

    test("inspect reads coverage and files in the bucket", async () => {
      if (MAIN === null || server === null) return;
      const { topic, visible } = await filled;
      const covered = await command(["inspect", "coverage", "-c", p.config, "--json"], SECRET);
      expect(covered.code).toBe(0);
      const { places } = json<{ places: { place: string; rows: number; streams: { topic: string }[] }[] }>(
        covered.output,
      );
      expect(places.map((x) => [x.place, x.rows])).toEqual([
        [`s3://${server.bucket}/${prefix}/_twg/e2e/raw/coverage`, visible],
      ]);
      expect(new Set(places[0]?.streams.map((s) => s.topic))).toEqual(new Set([topic]));

      const url = `s3://${server.bucket}/${prefix}`;
      const files = await command(
        ["inspect", "parquet", url, "-c", p.config, "--json", "--rows", "1"],
        SECRET,
      );
      expect(files.code).toBe(0);
      const { total } = json<{ total: { rows: number } }>(files.output);
      expect(total.rows).toBe(visible);

      // Without a file the environment says how to get there.
      const environment = {
        AWS_ENDPOINT_URL: server.endpoint,
        AWS_REGION: "us-east-1",
        AWS_ACCESS_KEY_ID: server.accessKey,
        AWS_SECRET_ACCESS_KEY: server.secretKey,
      };
      const bare = await command(["inspect", "coverage", url, "--json"], environment);
      expect(bare.code).toBe(0);
      expect(json<{ places: { rows: number }[] }>(bare.output).places.map((x) => x.rows)).toEqual([visible]);
    });

    test(
      "a sink that is new is filled from raw in the bucket",
      async () => {
        const broker = MAIN;
        if (broker === null || server === null) return;
        const { topic, visible } = await filled;
        const copy = join(p.folder, "copy");
        const grown = join(p.folder, "grown.toml");
        const primary = readFileSync(p.config, "utf8").replace('name = "raw"', '$&\nrole = "primary_raw"');
        writeFileSync(
          grown,
          `${primary}\n[[sink]]\nname = "copy"\ntype = "parquet"\npath = "${copy}/{date}"\n`,
        );
        const recovered = await command(["recover", "-c", grown, "--json"], SECRET);
        expect([recovered.code, recovered.output]).toEqual([0, expect.stringContaining('"lacks": "0"')]);
        const compared = await compareWithKafka(broker, topic, copy);
        expect([compared.rows, compared.differences]).toEqual([visible, []]);
      },
      LIMIT,
    );

    test("what is wrong with keys, bucket and address is said at once, with a code and no secret", async () => {
      const broker = MAIN;
      if (broker === null || server === null) return;
      const { topic } = await filled;
      const run = async (s: S3Server, more = "") => {
        const spec = { served: broker, topics: [topic], sink: table(s, more) };
        const bad = pipeline({ ...spec, path: `s3://${s.bucket}/${prefix}x` });
        return command(["stream", "-c", bad.config, "--log-format", "json", "--until-caught-up"], SECRET);
      };
      const wrongBucket = await run({ ...server, bucket: "no-such-bucket" });
      expect([wrongBucket.code, wrongBucket.failure?.code]).toEqual([3, "store.misplaced"]);
      const wrongKey = await run({ ...server, accessKey: "nobody" });
      expect([wrongKey.code, wrongKey.failure?.code]).toEqual([3, "store.denied"]);
      const nobody = await run({ ...server, endpoint: "http://127.0.0.1:9" });
      expect([nobody.code, nobody.failure?.code]).toEqual([3, "store.unavailable"]);
    });
  });
}

describe.skipIf(MAIN === null || S3_SERVERS === null)("several processes in one group and one bucket", () => {
  test("one is killed while both write: every record lands once, and its uploads are given up", async () => {
    const server = S3_SERVERS?.versitygw;
    const broker = MAIN;
    if (broker === null || server === undefined) return;
    const topic = fresh("s3-shared");
    await createTopic(broker, topic, { partitions: PARTITIONS });
    const prefix = freshPrefix();
    const outside = new Outside(server, prefix);
    const p = pipeline({
      served: broker,
      topics: [topic],
      group: `g-${topic}`,
      source: 'group_protocol = "classic"\nsession_timeout_ms = "6s"',
      path: `s3://${server.bucket}/${prefix}/{topic}`,
      sink: `roll_interval_ms = "500ms"\n\n${table(server, "coverage_interval_ms = 100")}`,
    });
    const feeder = await feed(broker, topic, { partitions: PARTITIONS, rate: 1_000 });
    const [a, b] = [stream(p, { environment: SECRET }), stream(p, { environment: SECRET })];
    // Each time one comes the other gives up what it has, which on a busy machine is a matter of sessions.
    const first = (t: typeof a) => t.saw("set.covered", undefined, 0, 120_000);
    await Promise.all([first(a), first(b)]);
    b.kill("SIGKILL");
    await b.ended();
    // The first goes on, with the partitions of the other once its session is over.
    const from = a.log.length;
    await a.saw("stream.begun", undefined, from);
    await a.saw("set.covered", undefined, a.log.length);
    const fed = await feeder.stop();
    a.kill("SIGTERM");
    expect((await a.ended()).code).toBe(0);
    await catchUp(p, { environment: SECRET });

    const into = join(workFolder(), "fetched");
    const { endpoint, accessKey, secretKey, bucket } = server;
    await python_("fetch_s3.py", [endpoint, accessKey, secretKey, `${bucket}/${prefix}`, into]);
    const compared = await compareWithKafka(broker, topic, into);
    expect(compared.differences).toEqual([]);
    expect(compared.rows).toBe(fed.acknowledged);
    expect(await outside.openUploads()).toEqual([]);
    outside.close();
  }, 180_000);
});
