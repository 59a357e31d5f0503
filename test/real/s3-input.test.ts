/**
 * Goal: objects are input like files: found by name, folder and pattern, read by ranges, known by their content, landed
 * once in a bucket whatever kills the job, and an object that changes ends it. Method: real S3 servers; the program as
 * users run it, killed at points of delivery; a plain client and hyparquet see what is there.
 */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { BatchInputs, type BucketAccess } from "../../src/commands/batch-inputs.ts";
import { planBatch } from "../../src/commands/batch-plan.ts";
import { CRASH_POINTS } from "../../src/core/delivery/crash-points.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import { BatchRoom } from "../commands/batch-room.ts";
import { readFiles } from "../commands/read-files.ts";
import { command, workFolder } from "../e2e/twg.ts";
import { connectionTo, EACH_SERVER, freshPrefix, Outside } from "../s3/servers.ts";
import type { S3Server } from "../servers/s3/server.ts";

const CORPUS = join(import.meta.dir, "../golden/files");
const csvOf = (from: number, to: number) =>
  `id,name\n${Array.from({ length: to - from }, (_, i) => `${from + i},"row ${Bun.hash(String(from + i))}"\n`).join("")}`;
const jsonOf = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => `{"id":${from + i},"name":"j"}\n`).join("");

function accessTo(server: S3Server): BucketAccess {
  const { bucket: _, prefix: __, ...access } = connectionTo(server, "");
  return access;
}

/** A file of configuration whose source and sink are in the same store. */
function configOf(
  folder: string,
  server: S3Server,
  paths: readonly string[],
  sink: string,
  more = "",
): string {
  const table = (name: string) => `[${name}]
endpoint = ${JSON.stringify(server.endpoint)}
style = "path"
access_key_id = { secret = "key" }
secret_access_key = { secret = "word" }
`;
  const path = join(folder, "job.toml");
  writeFileSync(
    path,
    `[pipeline]\nname = "job"\nlanes = 2\nstate_dir = ${JSON.stringify(join(folder, "state"))}
[source]\ntype = "files"\npaths = ${JSON.stringify(paths)}\npiece_bytes = "64KiB"\n${more}${table("source.s3")}
[[sink]]\nname = "out"\ntype = "parquet"\npath = ${JSON.stringify(sink)}\nroll_bytes = "5MiB"\nrow_group_bytes = "1MiB"\n${sink.startsWith("s3:") ? table("sink.s3") : ""}
[observability]\nlisten = "off"\n`,
  );
  return path;
}

async function landedIn(outside: Outside): Promise<number[]> {
  const keys = (await outside.keys()).filter((k) => /^out\/[^_].*\.parquet$/.test(k));
  const ids: number[] = [];
  for (const key of keys) {
    const bytes = await outside.read(key);
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
    for (const row of await parquetReadObjects({ file, compressors, columns: ["id"] }))
      ids.push(Number(row.id));
  }
  return ids.sort((a, b) => a - b);
}

/** A killed owner is waited for some seconds, so there are few; TWG_S3_KILLS=all: at every point of delivery. */
const KILLED_AT: Readonly<Record<string, readonly string[]>> =
  process.env["TWG_S3_KILLS"] === "all"
    ? Object.fromEntries(
        EACH_SERVER.map(([name]) => [name, CRASH_POINTS.filter((p) => /intend|publish|cover/.test(p))]),
      )
    : { versitygw: ["after_publish_one"], SeaweedFS: [] };

for (const [name, server] of EACH_SERVER) {
  if (server === null) {
    test.skip(`input from ${name}`, () => {});
    continue;
  }
  const secrets = { TWG_SECRET_KEY: server.accessKey, TWG_SECRET_WORD: server.secretKey };

  test(`${name}: objects of every format land once, through kills, and not again`, async () => {
    const prefix = freshPrefix();
    const outside = new Outside(server, prefix);
    await outside.write("in/a.csv", new TextEncoder().encode(csvOf(0, 20_000)));
    await outside.write("in/deep/b.csv.gz", gzipSync(csvOf(20_000, 21_000)));
    await outside.write("in/c.ndjson.zst", zstdCompressSync(Buffer.from(jsonOf(21_000, 22_000))));
    await outside.write("in/_hidden.csv", new TextEncoder().encode("x\n1\n"));
    const folder = workFolder();
    const at = `s3://${server.bucket}/${prefix}`;
    const config = configOf(folder, server, [`${at}/in/`], `${at}/out`);
    let kills = 0;
    for (const point of KILLED_AT[name] ?? []) {
      const ended = await command(["batch", "-c", config], { ...secrets, TWG_CRASH_AT: `${point}:1` });
      if (ended.signal === "SIGKILL") kills++;
    }
    expect(kills).toBe((KILLED_AT[name] ?? []).length);
    const last = await command(["batch", "-c", config], secrets);
    expect([last.code, last.failure]).toEqual([0, null]);
    expect(await landedIn(outside)).toEqual(Array.from({ length: 22_000 }, (_, i) => i));
    expect(await outside.openUploads()).toEqual([]);
    const again = await command(["batch", "-c", config, "--json"], secrets);
    expect(again.output).toContain('"files_skipped": 3');
    outside.close();
  }, 120_000);

  test(`${name}: Parquet by ranges, and by pattern; an object that changes ends it`, async () => {
    const prefix = freshPrefix();
    const outside = new Outside(server, prefix);
    const content = readFileSync(join(CORPUS, "every-type.parquet"));
    await outside.write("in/x.parquet", content);
    await outside.write("in/y.parquet", readFileSync(join(CORPUS, "codec-zstd.parquet")));
    const inputs = new BatchInputs(accessTo(server));
    const at = `s3://${server.bucket}/${prefix}`;
    const names = async (input: string) =>
      (await inputs.objects(input)).map((f) => f.name.slice(at.length + 1));
    expect(await names(`${at}/in`)).toEqual(["in/x.parquet", "in/y.parquet"]);
    expect(await names(`${at}/*/[x]*.parquet`)).toEqual(["in/x.parquet"]);
    expect(await names(`${at}/**/*.parquet`)).toEqual(["in/x.parquet", "in/y.parquet"]);
    expect(names(`${at}/in/*.csv`)).rejects.toMatchObject({ code: "files.none" });
    expect(names(`${at}/nix`)).rejects.toMatchObject({ code: "files.none" });
    const room = new BatchRoom();
    const plan = async () =>
      planBatch(
        await room.config([`${at}/in/x.parquet`]),
        await inputs.objects(`${at}/in/x.parquet`),
        inputs.open,
      );
    const read = await readFiles(await plan(), { open: inputs.open });
    const cases = JSON.parse(readFileSync(join(CORPUS, "expected.json"), "utf8"));
    expect(read.rows).toEqual(cases.find((c: { file: string }) => c.file === "every-type.parquet").rows);
    const before = await plan();
    const swapped = Buffer.from(content);
    swapped[100]! ^= 1;
    await outside.write("in/x.parquet", swapped);
    const failure = await readFiles(before, { open: inputs.open }).then(
      () => null,
      (e) => (e instanceof Failure ? e.code : e),
    );
    expect(failure).toBe("files.changed");
    room.end();
    outside.close();
  }, 60_000);
}
