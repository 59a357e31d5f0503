/**
 * The parts of a Parquet sink in a bucket, joined as a pipeline joins them: a set is staged by a lane's store, intended,
 * published and covered; what a process leaves behind is settled and swept by the next; `inspect` reads it.
 */
import { expect, test } from "bun:test";
import { loadConfig, resolveSecrets } from "../../src/commands/config-file.ts";
import { openLaneStore } from "../../src/commands/lane-store.ts";
import { parquetParts } from "../../src/commands/parquet-parts.ts";
import { runCli } from "../../src/commands/program.ts";
import type { CommitListener } from "../../src/core/delivery/committer.ts";
import type { TwgEvent } from "../../src/core/observe/events.ts";
import type { Span } from "../../src/core/records/stream.ts";
import { fakeCli, fileWith, ORDERS } from "../commands/fake-cli.ts";
import { EACH_SERVER, freshPrefix, Outside } from "../s3/servers.ts";

const STREAM = "kafka/c/orders/0/0";
const SECRETS = { TWG_SECRET_KAFKA_PASSWORD: "x", TWG_SECRET_S3: "twgtestsecret" };
const THREE_ROWS = await Bun.file(`${import.meta.dir}/../commands/fixtures/three-rows-zstd.parquet`).bytes();

for (const [name, server] of EACH_SERVER) {
  test.skipIf(server === null)(
    `a set lands in ${name}, and the next process mends what one left`,
    async () => {
      if (server === null) return;
      const prefix = freshPrefix();
      const outside = new Outside(server, prefix);
      const url = `s3://${server.bucket}/${prefix}`;
      const file = fileWith(`${ORDERS.replace("./data", `${url}/{topic}`)}
[sink.s3]
endpoint = "${server.endpoint}"
style = "path"
access_key_id = "${server.accessKey}"
secret_access_key = { secret = "s3" }
coverage_interval_ms = 50
`);
      const config = await resolveSecrets(await loadConfig(file), SECRETS);
      const { sink } = config;
      if (sink.type !== "parquet") throw new Error("another sink");
      const events: TwgEvent[] = [];

      async function process(instance: string, left: "whole" | "intended" | "sealed") {
        const points: string[] = [];
        const hook = (point: string) => void points.push(point);
        const parts = parquetParts(config, sink as never, {
          instance,
          shared: false,
          secondary: null,
          lanes: 1,
          observer: { emit: (e) => events.push(e) },
          hook,
        });
        await parts.prepare();
        await parts.coverage.open();
        const claims = await parts.coverage.claim([STREAM], null);
        await parts.sweep();
        const from = claims[0]?.covered[0]?.next ?? 0n;
        if (parts.lane.kind !== "parquet") throw new Error("another lane");
        const { objects: store } = openLaneStore(parts.lane.store, `${instance}.0-l0`);
        const staged = await store.stage(`orders/p-${instance}.0-l0-0-0.parquet`);
        await staged.append(THREE_ROWS);
        const target = await staged.seal(3);
        const spans: Span[] = [{ stream: STREAM, from, next: from + 3n }];
        const set = {
          id: `${instance}.0-l0-0`,
          lane: 0,
          epoch: 0,
          targets: [target],
          spans,
          rows: 3,
          bytes: 9,
        };
        const told: string[] = [];
        const listener: CommitListener = {
          committed: (id) => void told.push(`committed ${id}`),
          refused: (id) => void told.push(`refused ${id}`),
          failed: (f) => void told.push(f.message),
          trouble: () => {},
        };
        if (left === "intended") {
          const authorities = claims.map((c) => c.authority);
          await (parts.coverage as never as { intend(i: unknown[]): Promise<unknown> }).intend([
            { ...set, authorities },
          ]);
        }
        if (left === "whole") {
          const committer = parts.committer(listener);
          committer.submit(
            { ...set, openedAt: 0, sealMs: 0, reason: "bytes", covered: false },
            claims.map((c) => c.authority),
          );
          await committer.idle();
          expect(told).toEqual([`committed ${set.id}`]);
          expect(points).toContain("coverage_won");
        }
        await parts.coverage.close();
        return from;
      }

      expect(await process("aaaaaaaaaaaaaaaa", "whole")).toBe(0n);
      expect(await process("bbbbbbbbbbbbbbbb", "sealed")).toBe(3n);
      expect((await outside.openUploads()).map((u) => u.key)).toEqual([
        "orders/p-bbbbbbbbbbbbbbbb.0-l0-0-0.parquet",
      ]);
      // As somebody leaves them who is killed while proving the store's conditions for a book.
      const own = `_twg/${config.pipeline.name}/${sink.name}`;
      for (const book of ["coverage", "schemas", "table", "dedup", "plans"])
        await outside.write(`${own}/${book}/probe-bbbbbbbbbbbbbbbb-1`, new Uint8Array([1]));
      expect(await process("cccccccccccccccc", "intended")).toBe(3n);
      expect((await outside.keys()).filter((k) => k.includes("probe-"))).toEqual([]);
      expect(events.filter((e) => e.e === "staging.swept")).toEqual([{ e: "staging.swept", removed: 1 }]);
      expect(await process("dddddddddddddddd", "whole")).toBe(6n);
      expect(events.filter((e) => e.e === "intent.settled")).toMatchObject([
        { outcome: "published", files: 1 },
      ]);
      expect(await outside.openUploads()).toEqual([]);
      const files = (await outside.keys()).filter((k) => k.endsWith(".parquet"));
      expect(files).toEqual(["a", "c", "d"].map((x) => `orders/p-${x.repeat(16)}.0-l0-0-0.parquet`));

      const inspect = async (...argv: string[]) => {
        const cli = fakeCli(SECRETS);
        expect([await runCli(["inspect", ...argv], cli), cli.stderr()]).toEqual([0, ""]);
        return cli.stdout();
      };
      expect(await inspect("coverage", "-c", file)).toContain("[0, 9)");
      const facts = JSON.parse(
        await inspect("parquet", `${url}/orders`, "-c", file, "--json", "--rows", "1"),
      );
      expect(facts.total).toMatchObject({ files: 3, rows: 9 });
      expect(await inspect("parquet", `${url}/${files[0]}`, "-c", file, "--rows", "3")).toContain(
        "1 files, 3 rows",
      );

      const environment = { AWS_ENDPOINT_URL: server.endpoint, AWS_REGION: "us-east-1" };
      const keys = { AWS_ACCESS_KEY_ID: server.accessKey, AWS_SECRET_ACCESS_KEY: server.secretKey };
      const before = { ...globalThis.process.env };
      Object.assign(globalThis.process.env, environment, keys);
      try {
        const bare = fakeCli({ ...environment, ...keys });
        expect(await runCli(["inspect", "coverage", url, "--json"], bare)).toBe(0);
        expect(JSON.parse(bare.stdout()).places).toMatchObject([{ rows: 9, files: 3 }]);
      } finally {
        for (const k of Object.keys({ ...environment, ...keys })) delete globalThis.process.env[k];
        Object.assign(globalThis.process.env, before);
      }
      outside.close();
    },
  );
}
