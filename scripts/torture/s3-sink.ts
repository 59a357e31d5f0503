/**
 * Parquet files in a real S3 server under torture, directly or through a proxy of faults. The server is one of those
 * that scripts/with-servers.sh --s3 started; what landed is fetched by a plain client that does not go through the proxy.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { LOCAL_WRITE_POINTS } from "../../src/adapters/coverage/local.ts";
import { CRASH_POINTS } from "../../src/core/delivery/crash-points.ts";
import { CLUSTERS, compareWithKafka } from "../../test/e2e/real-kafka.ts";
import { type Decide, FaultProxy } from "../../test/s3/fault-proxy.ts";
import { seededFaults } from "../../test/s3/faults.ts";
import { freshPrefix, Outside, S3_SERVERS } from "../../test/s3/servers.ts";
import { countLanded } from "./landed.ts";
import { orphansIn, writersIn } from "./orphans.ts";
import { SETTLING } from "./parquet-sink.ts";
import { type TortureSink, twice } from "./sink.ts";

export interface S3SinkOptions {
  readonly store: string;
  /** What becomes of requests; null: no proxy. */
  readonly faults: Decide | null;
  /** Longest that a file stays open. */
  readonly rollMs: number;
}

export interface S3Sink extends TortureSink {
  readonly proxy: FaultProxy | null;
  /** The same place, not through the proxy. */
  readonly outside: Outside;
}

/** Null: no faults. */
export const faultShare = (seed: number, share: number): Decide | null =>
  share === 0 ? null : seededFaults(seed, share);

export async function s3Sink(folder: string, { store, faults, rollMs }: S3SinkOptions): Promise<S3Sink> {
  const known = S3_SERVERS === null ? [] : (["versitygw", "seaweedfs"] as const);
  const name = known.find((k) => k === store);
  if (S3_SERVERS === null || name === undefined) {
    const started = known.join(", ") || "none";
    throw new Error(`no real S3 server ${store}; scripts/with-servers.sh --s3 started: ${started}`);
  }
  const server = S3_SERVERS[name];
  const prefix = freshPrefix();
  const outside = new Outside(server, prefix);
  const proxy = faults === null ? null : await FaultProxy.start(server.endpoint, faults);
  const into = join(folder, "lake");
  const fetched = fetchOnce(outside, into);
  return {
    proxy,
    outside,
    section: `type = "parquet"
path = "s3://${server.bucket}/${prefix}/{topic}"
roll_bytes = "256KiB"
roll_interval_ms = ${rollMs}
row_group_bytes = "128KiB"

[sink.s3]
endpoint = "${proxy?.endpoint ?? server.endpoint}"
style = "path"
access_key_id = "${server.accessKey}"
secret_access_key = "${server.secretKey}"
coverage_interval_ms = 50
gone_after_ms = "1s"
request_timeout_ms = "5s"`,
    // SeaweedFS takes a second for the race of the start-up probe.
    slowMs: name === "seaweedfs" ? 3_500 : 2_000,
    points: [...twice(CRASH_POINTS), ...twice(LOCAL_WRITE_POINTS), ...SETTLING],
    async before({ unstaged }) {
      // As a lifecycle rule of the bucket does.
      if (unstaged) for (const u of await outside.openUploads()) await outside.abort(u.key, u.upload);
    },
    trouble: () => () => Promise.resolve(),
    count: async () => countLanded(await fetched()),
    landing: fetched,
    async orphans() {
      const probes = (await outside.keys()).filter((k) => /\/probe[/-]/.test(k));
      const uploads = (await outside.openUploads()).map((u) => `open upload of ${u.key}`);
      return [...orphansIn(await fetched()), ...probes, ...uploads];
    },
    async compare(bootstrap, topic) {
      const served = CLUSTERS.find((c) => c.plain.join(",") === bootstrap);
      if (served === undefined) throw new Error(`no real broker at ${bootstrap}`);
      return (await compareWithKafka(served, topic, await fetched())).differences;
    },
    figures: () => ({ store: name, faults: faultsOf(proxy), writers: writersIn(into) }),
    async stop() {
      outside.close();
      await proxy?.stop();
    },
  };
}

function faultsOf(proxy: FaultProxy | null): number {
  return [...(proxy?.done ?? [])].reduce((n, [t, c]) => (t === "pass" ? n : n + c), 0);
}

/** Everything below the prefix as files, once all of it is there. */
function fetchOnce(outside: Outside, into: string): () => Promise<string> {
  let done: Promise<string> | null = null;
  const fetchAll = async () => {
    for (const key of await outside.keys()) {
      // A folder's name of the coverage object, so that one reader knows both.
      const path = join(into, key.replace(/coverage\.json$/, "coverage-000000000001.json"));
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, await outside.read(key));
    }
    return into;
  };
  return () => {
    done ??= fetchAll();
    return done;
  };
}
