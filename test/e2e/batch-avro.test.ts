/**
 * Goal: `twg batch` lands every record of Avro's container files once, in every codec, whatever kills it, and damage ends it
 * with a code. Method: files made here, and of Avro's own tests, by the program as users run it; hyparquet reads what landed.
 * What other implementations write is in test/real/avro-files.test.ts.
 */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { Glob } from "bun";
import { avroEncoder } from "../../src/core/codecs/avro/encode-value.ts";
import { containerFile } from "../core/codecs/avro/container-file.ts";
import golden from "../golden/avro.json";
import { landedRows } from "./landed-rows.ts";
import { pipelineToml } from "./pipeline-toml.ts";
import { command, type Ended, workFolder } from "./twg.ts";

const batch = (args: readonly string[], environment: Record<string, string> = {}): Promise<Ended> =>
  command(["batch", ...args], environment);

async function landed(folder: string): Promise<Record<string, unknown>[]> {
  const rows = await landedRows(folder);
  return rows.sort((a, b) => Number(a.id) - Number(b.id));
}

const SCHEMA = {
  type: "record",
  name: "Order",
  fields: [
    { name: "id", type: "long" },
    { name: "name", type: "string" },
    { name: "tags", type: { type: "array", items: "string" } },
  ],
};
const { encode } = avroEncoder({ text: JSON.stringify(SCHEMA), references: [] });

const order = (id: number) => ({ id: BigInt(id), name: `order ${id}`, tags: [`t${id % 7}`] });
const payload = (id: number): Uint8Array =>
  encode({
    kind: "record",
    fields: [
      { name: "id", value: { kind: "long", value: BigInt(id) } },
      { name: "name", value: { kind: "string", value: order(id).name } },
      {
        name: "tags",
        value: { kind: "list", items: order(id).tags.map((value) => ({ kind: "string", value })) },
      },
    ],
  });
const payloads = (from: number, to: number): Uint8Array[] =>
  Array.from({ length: to - from }, (_, i) => payload(from + i));

test("files of every codec land once, typed, with their rows' places, and not again", async () => {
  const folder = workFolder();
  const put = (name: string, bytes: Uint8Array) => writeFileSync(join(folder, name), bytes);
  for (const [i, codec] of (["null", "deflate", "snappy", "zstandard"] as const).entries())
    put(`${codec}.avro`, containerFile(SCHEMA, payloads(i * 500, (i + 1) * 500), { codec }));
  put("packed.avro.gz", gzipSync(containerFile(SCHEMA, payloads(2000, 2100))));
  put("none.avro", containerFile(SCHEMA, []));
  const out = join(folder, "out");
  const first = await batch([join(folder, "*.avro*"), "--to", out, "--json"]);
  expect([first.code, first.failure]).toEqual([0, null]);
  const rows = await landed(out);
  expect(rows).toHaveLength(2100);
  expect(rows.map(({ id, name, tags }) => ({ id, name, tags }))).toEqual(
    Array.from({ length: 2100 }, (_, i) => order(i)),
  );
  expect(rows.map((r) => Number(r["_twg_source_offset"]))).toEqual(
    Array.from({ length: 2100 }, (_, i) => i % 500),
  );
  const again = await batch([join(folder, "*.avro*"), "--to", out, "--json"]);
  expect(again.output).toContain('"rows": 0');
  expect(await landed(out)).toHaveLength(2100);
});

test("kills at points of delivery lose and double nothing", async () => {
  const folder = workFolder();
  const input = join(folder, "in.avro");
  writeFileSync(input, containerFile(SCHEMA, payloads(0, 20_000), { codec: "deflate" }));
  const out = join(folder, "out");
  const config = join(folder, "job.toml");
  writeFileSync(
    config,
    pipelineToml(folder, {
      pipeline: { name: "job", lanes: 2 },
      source: { type: "files", paths: [input], piece_bytes: "64KiB" },
      sink: [{ name: "out", type: "parquet", path: out, roll_bytes: "64KiB", row_group_bytes: "64KiB" }],
    }),
  );
  const ends: (string | null)[] = [];
  for (const point of ["after_intend", "after_publish_one", "before_cover"])
    ends.push((await batch(["-c", config], { TWG_CRASH_AT: `${point}:1` })).signal);
  // What the first leaves may be settled and done before a later point is passed.
  expect(ends[0]).toBe("SIGKILL");
  expect((await batch(["-c", config])).code).toBe(0);
  expect((await landed(out)).map((r) => Number(r.id))).toEqual(Array.from({ length: 20_000 }, (_, i) => i));
});

test("a damaged file ends the job with a code and nothing of the damage lands; a refused record is beside the others", async () => {
  const folder = workFolder();
  const path = join(folder, "in.avro");
  const out = join(folder, "out");
  const weather = Uint8Array.fromBase64(golden["weather-deflate"]);
  const torn = weather.slice();
  torn[torn.length - 1]! ^= 1;
  writeFileSync(path, torn);
  const ended = await batch([path, "--to", out]);
  expect([ended.code, ended.failure?.code]).toEqual([1, "files.not_avro"]);
  expect(await landed(out)).toEqual([]);
  const bad = payload(2);
  bad[2] = 0xff;
  writeFileSync(path, containerFile(SCHEMA, [payload(1), bad, payload(3)]));
  const rejecting = await batch([path, "--to", out, "--max-rejects", "1"]);
  expect(rejecting.code).toBe(0);
  expect((await landed(out)).map((r) => Number(r.id))).toEqual([1, 3]);
  const [rejects] = [...new Glob("_rejects/*.ndjson").scanSync({ cwd: out, absolute: true })];
  expect(JSON.parse(readFileSync(rejects!, "utf8"))).toMatchObject({
    ...{ file: path, row: 1, line: 2, code: "decode.encoding", column: "name" },
    raw_base64: bad.toBase64(),
  });
});
