/**
 * Goal: in a bucket as on a disk the raw sink's index comes back from its files, what was removed there is recorded as lost when
 * that is asked for, and what was only moved is not. Method: files by the raw sink's own writer in real stores; a plain client
 * removes and copies them.
 */
import { expect, test } from "bun:test";
import { fallbackCodecs } from "../../src/adapters/duckdb/native-fallback.ts";
import { ParquetWriter } from "../../src/adapters/parquet/writer.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { loadConfig, resolveSecrets } from "../../src/commands/config-file.ts";
import { objectSinkStores } from "../../src/commands/object-stores.ts";
import { runCli } from "../../src/commands/program.ts";
import { EMPTY_STATE, NEW_STREAM } from "../../src/core/coverage/state.ts";
import { encodeState } from "../../src/core/coverage/state-json.ts";
import { streamKey } from "../../src/core/records/stream.ts";
import { fakeCli, fileWith, ORDERS } from "../commands/fake-cli.ts";
import { batchOf, row, STREAM } from "../core/formats/parquet/rows.ts";
import { EACH_SERVER, freshPrefix, Outside } from "../s3/servers.ts";

const LIMIT = 60_000;
const SECRETS = { TWG_SECRET_KAFKA_PASSWORD: "x", TWG_SECRET_S3: "twgtestsecret" };

// One of them: what differs between stores, others try.
for (const [name, server] of EACH_SERVER.slice(0, 1)) {
  test.skipIf(server === null)(
    `index and losses of raw in ${name}`,
    async () => {
      if (server === null) return;
      const prefix = freshPrefix();
      const outside = new Outside(server, prefix);
      const url = `s3://${server.bucket}/${prefix}`;
      const s3 = `[sink.s3]
endpoint = "${server.endpoint}"
style = "path"
access_key_id = "${server.accessKey}"
secret_access_key = { secret = "s3" }
coverage_interval_ms = 50
`;
      const path = `${url}/raw/{topic}`;
      const beside = `[[sink]]\nname = "copy"\ntype = "parquet"\npath = "${url}/copy"\n${s3}`;
      const file = fileWith(`${ORDERS.replace("./data", path)}role = "primary_raw"\n${s3}${beside}`);
      const { sink, sinks } = await resolveSecrets(await loadConfig(file), SECRETS);
      if (sink.type !== "parquet") throw new Error("another sink");
      const has = new Map([[streamKey(STREAM), { ...NEW_STREAM, covered: [{ from: 0n, next: 5n }] }]]);
      const { versions } = objectSinkStores("orders", sinks[1] as never, "copy", null);
      await versions.prepare();
      await versions.write(null, encodeState({ ...EMPTY_STATE, serial: 1, streams: has }), "copy");

      /** Ten rows from this offset on, as one set of one file. */
      async function landed(set: string, from: number): Promise<string> {
        const stores = objectSinkStores("orders", sink as never, set, null);
        await stores.prepare();
        const { objects } = stores;
        const options = {
          ...{
            path,
            row_group_bytes: 4096,
            compression: "none" as const,
            compression_level: 1,
            metadata_prefix: "_twg_",
          },
          ...{ max_open_files: 4, pipeline: "orders", sink: "raw", version: "0" },
        } as const;
        const writer = new ParquetWriter(options, {
          store: objects,
          codecs: fallbackCodecs,
          clock: systemClock,
        });
        writer.open(set);
        const batch = batchOf(
          Array.from({ length: 10 }, (_, i) => row(from + i)),
          STREAM,
        );
        writer.write(batch);
        const { targets } = await writer.seal([batch.span]);
        for (const t of targets) await objects.publish(t);
        return targets[0]!.key;
      }
      async function inspect(...argv: string[]) {
        const cli = fakeCli(SECRETS);
        const code = await runCli(["inspect", "coverage", "-c", file, "--json", ...argv], cli);
        return { code, err: cli.stderr(), told: code === 0 ? JSON.parse(cli.stdout()) : null };
      }
      const r = (from: number, next: number) => ({ from: String(from), next: String(next) });
      const places = async (...argv: string[]) => {
        const { code, err, told } = await inspect(...argv);
        expect([code, err]).toEqual([0, ""]);
        const [raw, copy] = told.places;
        return [
          raw.streams[0].covered,
          (copy?.gaps ?? []).map((g: { ranges: unknown; gone: unknown }) => [g.ranges, g.gone]),
          copy?.streams[0]?.lost ?? [],
        ];
      };

      await landed("a", 0);
      const second = await landed("b", 10);
      const rebuilt = await inspect("--rebuild");
      expect([rebuilt.err, rebuilt.told]).toMatchObject([
        "",
        { files: 2, sets: 2, added: ["a", "b"], others: [] },
      ]);
      expect((await places())[0]).toEqual([r(0, 20)]);

      // The coverage of raw is gone, and comes back.
      for (const key of (await outside.keys()).filter(
        (k) => k.startsWith("raw/_twg/") && k.includes("/coverage/"),
      ))
        await outside.remove(key);
      expect((await inspect("--rebuild")).told).toMatchObject({ files: 2, sets: 2, added: ["a", "b"] });
      expect((await places())[0]).toEqual([r(0, 20)]);

      // What was copied to another name is not gone.
      const [from, to] = [`raw/${second}`, `raw/${second.replace(/[^/]+$/, "moved-$&")}`];
      await outside.write(to, await outside.read(from));
      await outside.remove(from);
      const refused = await inspect("--record-lost");
      expect([refused.code, refused.err]).toEqual([3, expect.stringContaining("recovery.not_indexed")]);
      expect((await inspect("--rebuild")).told).toMatchObject({ files: 2, sets: 2, gone: [] });
      expect((await inspect("--record-lost")).code).toBe(0);

      // What was removed is.
      await outside.remove(to);
      const lost = [{ ...r(10, 20), reason: "retention" }];
      expect(await places("--record-lost")).toEqual([[r(0, 20)], [[[r(5, 10)], []]], lost]);
      expect(await places()).toEqual([[r(0, 20)], [[[r(5, 10)], []]], lost]);
      outside.close();
    },
    LIMIT,
  );
}
