/**
 * Goal: what Java's Avro and fastavro write is read as they read it, and they read what is written here. Method: Java's
 * random data, read, written again and compared byte by byte; Java's resolution of pairs of schemas by chance; fastavro's
 * records of every logical type, decoded here to Parquet or landed from its files by `twg batch`, and read by pyarrow, cell
 * for cell. TWG_AVRO_RECORDS: how many
 * of those (default 3,000; 1,000,000 has been run).
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { draws } from "../../scripts/fuzz/draws.ts";
import { DuckEngine } from "../../src/adapters/duckdb/engine.ts";
import { ParquetEncoder } from "../../src/adapters/duckdb/parquet-encode.ts";
import { compileAvro } from "../../src/core/codecs/avro/compile.ts";
import { encodeColumns } from "../../src/core/codecs/avro/encode-columns.ts";
import { avroEncoder } from "../../src/core/codecs/avro/encode-value.ts";
import { DecodeError, type RecordDecoder } from "../../src/core/codecs/record-codec.ts";
import { JoinedFile } from "../../src/core/formats/parquet/join.ts";
import { builderOf } from "../../src/core/types/column-builder.ts";
import { instantLeaves } from "../../src/core/types/utc-instants.ts";
import { readAll } from "../core/codecs/avro/container-file.ts";
import { together } from "../core/codecs/avro/decode.ts";
import { evolve, randomPayload, randomSchema, type Schema } from "../core/codecs/avro/random-avro.ts";
import { command } from "../e2e/twg.ts";

const strict = process.env["TWG_STRICT"] === "1";
const pyarrow = process.env["TWG_PYTHON"];
const RECORDS = Number(process.env["TWG_AVRO_RECORDS"] ?? 3000);
/** Compared at a time: what is held in memory and on disk. */
const CHUNK = 50_000;
const PAIRS = 200;
const repo = join(import.meta.dir, "../..");
const folder = mkdtempSync(join(tmpdir(), "twg-avro-"));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(argv: readonly string[], out?: string): string {
  const fd = out === undefined ? null : openSync(out, "w");
  const { exitCode, stdout, stderr } = Bun.spawnSync([...argv], { cwd: repo, stdout: fd ?? "pipe" });
  if (fd !== null) closeSync(fd);
  if (exitCode !== 0) throw new Error(`${argv[0]}: ${stderr.toString().slice(0, 2000)}`);
  return stdout?.toString() ?? "";
}

/** Null: not to be had. */
function peers(): { readonly java: readonly string[]; readonly python: string } | null {
  const { exitCode, stdout, stderr } = Bun.spawnSync([join(repo, "scripts/avro-peers.sh")], { cwd: repo });
  if (exitCode === 0) {
    const [classes, python] = stdout.toString().trim().split("\n") as [string, string];
    return { java: ["java", "-XX:TieredStopAtLevel=1", "-cp", `${classes}:${folder}`, "AvroPeer"], python };
  }
  console.error(`SKIP: neither Java's Avro nor fastavro: ${stderr.toString().slice(-500)}`);
  return null;
}

const found = peers();
if (pyarrow === undefined)
  console.error("SKIP: TWG_PYTHON names no Python with pyarrow; Avro is not compared through Parquet");
test.skipIf(!strict && (found === null || pyarrow === undefined))(
  "there are implementations to compare with",
  () => {
    expect(found).not.toBeNull();
    expect(pyarrow).toBeDefined();
  },
);

beforeAll(() => {
  if (found === null) return;
  const classes = found.java[3]!;
  run(["javac", "-cp", classes, "-d", folder, "bench/peers/avro/AvroPeer.java"]);
}, 60_000);

const text = (schema: Schema) => ({ text: JSON.stringify(schema), references: [] });
const compile = (writer: Schema, reader?: Schema) =>
  compileAvro(
    reader === undefined ? { writer: text(writer) } : { writer: text(writer), reader: text(reader) },
    {
      isUtf8: (b) => isUtf8(b),
    },
  );

/** Each after its length; null: a length of -1. */
function payloadsOf(file: string): (Uint8Array | null)[] {
  const bytes = readFileSync(file);
  const out: (Uint8Array | null)[] = [];
  for (let p = 0; p < bytes.length; ) {
    const n = bytes.readInt32BE(p);
    p += 4;
    out.push(n < 0 ? null : new Uint8Array(bytes.subarray(p, p + n)));
    p += Math.max(n, 0);
  }
  return out;
}

function writePayloads(file: string, payloads: readonly Uint8Array[]): void {
  const parts = payloads.flatMap((p) => {
    const head = Buffer.alloc(4);
    head.writeInt32BE(p.length);
    return [head, p];
  });
  writeFileSync(file, Buffer.concat(parts));
}

const INTEROP: Schema = {
  type: "record",
  name: "Interop",
  namespace: "org.apache.avro",
  fields: [
    { name: "intField", type: "int" },
    { name: "longField", type: "long" },
    { name: "stringField", type: "string" },
    { name: "boolField", type: "boolean" },
    { name: "floatField", type: "float" },
    { name: "doubleField", type: "double" },
    { name: "bytesField", type: "bytes" },
    { name: "nullField", type: "null" },
    { name: "arrayField", type: { type: "array", items: "double" } },
    {
      name: "mapField",
      type: {
        type: "map",
        values: { type: "record", name: "Foo", fields: [{ name: "label", type: "string" }] },
      },
    },
    { name: "unionField", type: ["boolean", "double", { type: "array", items: "bytes" }] },
    { name: "enumField", type: { type: "enum", name: "Kind", symbols: ["A", "B", "C"] } },
    { name: "fixedField", type: { type: "fixed", name: "MD5", size: 16 } },
    {
      name: "recordField",
      type: {
        type: "record",
        name: "Node",
        fields: [
          { name: "label", type: "string" },
          { name: "children", type: { type: "array", items: "Node" } },
        ],
      },
    },
    { name: "optional", type: ["null", "long"] },
  ],
};

test.skipIf(found === null)(
  "Java's random data is read, and written again it is the same bytes",
  () => {
    writeFileSync(at("interop.avsc"), JSON.stringify(INTEROP));
    run([...found!.java, "random", at("interop.avsc"), "2000", "7", at("random")]);
    const payloads = payloadsOf(at("random")) as Uint8Array[];
    expect(payloads).toHaveLength(2000);
    const decoder = compile(INTEROP);
    const encoder = avroEncoder(text(INTEROP));
    for (const p of payloads) expect(encoder.encode(decoder.value(p, 0, p.length)).toHex()).toBe(p.toHex());
    // Without the recursive field, whose depth is text, columns give the same bytes again.
    const flat = { ...INTEROP, fields: INTEROP.fields.filter((f: Schema) => f.name !== "recordField") };
    writeFileSync(at("flat.avsc"), JSON.stringify(flat));
    run([...found!.java, "random", at("flat.avsc"), "2000", "8", at("flat")]);
    const list = payloadsOf(at("flat")) as Uint8Array[];
    const again = encodeColumns(text(flat), columnsOf(compile(flat), list));
    expect(Buffer.from(again.bytes).equals(Buffer.concat(list))).toBe(true);
  },
  120_000,
);

function columnsOf(decoder: RecordDecoder, list: readonly Uint8Array[]) {
  const columns = decoder.fields.map((f) => builderOf(f.type));
  const rows = decoder.decode(together(list), columns, (f) => {
    throw new Error(`${f.row} ${f.path}: ${f.reason}`);
  });
  return { fields: decoder.fields, columns: columns.map((c) => c.finish()), rows };
}

/** Java has its own mind of what annotated bytes mean, or none: here only what the types are counts. */
function bare(schema: Schema): Schema {
  return JSON.parse(JSON.stringify(schema), (key, value) =>
    ["logicalType", "connect.name"].includes(key) ? undefined : value,
  );
}

test.skipIf(found === null)(
  "Java resolves pairs of schemas as is done here",
  () => {
    const lines: string[] = [];
    const pairs = Array.from({ length: PAIRS }, (_, i) => {
      const draw = draws(1000 + i);
      const writer = bare(randomSchema(draw));
      const reader = bare(evolve(writer, draw));
      const payloads = Array.from({ length: 20 }, () => randomPayload(writer, draw, true));
      writeFileSync(at(`${i}.writer`), JSON.stringify(writer));
      writeFileSync(at(`${i}.reader`), JSON.stringify(reader));
      writePayloads(at(`${i}.in`), payloads);
      lines.push([at(`${i}.writer`), at(`${i}.reader`), at(`${i}.in`), at(`${i}.out`)].join("\t"));
      return { writer, reader, payloads };
    });
    writeFileSync(at("pairs"), lines.join("\n"));
    run([...found!.java, "resolve", at("pairs")]);
    let [read, refused] = [0, 0];
    for (const [i, { writer, reader, payloads }] of pairs.entries()) {
      const theirs = payloadsOf(at(`${i}.out`));
      const ours = resolved(writer, reader, payloads);
      for (const [j, t] of theirs.entries()) {
        const mine = ours[j] ?? null;
        if (mine === "no text") continue;
        const told = `${i}/${j} ${JSON.stringify({ writer, reader })} ${payloads[j]!.toHex()}`;
        expect(`${mine?.toHex() ?? "refused"} ${told}`).toBe(`${t?.toHex() ?? "refused"} ${told}`);
        if (t === null) refused++;
        else read++;
      }
    }
    expect(read).toBeGreaterThan(2000);
    expect(refused).toBeGreaterThan(100);
  },
  120_000,
);

/** Payloads by the writer's schema, written again by the reader's. */
function resolved(
  writer: Schema,
  reader: Schema,
  payloads: readonly Uint8Array[],
): (Uint8Array | "no text" | null)[] {
  try {
    const decoder = compile(writer, reader);
    const encoder = avroEncoder(text(reader));
    return payloads.map((p) => {
      try {
        return encoder.encode(decoder.value(p, 0, p.length));
      } catch (e) {
        // Java keeps bytes in a string, UTF-8 or not.
        if (e instanceof DecodeError) return e.code === "decode.encoding" ? "no text" : null;
        throw e;
      }
    });
  } catch (e) {
    if (e instanceof DecodeError) return payloads.map(() => null);
    throw e;
  }
}

test.skipIf(found === null)(
  "object container files of Java's in every codec that is read",
  () => {
    writeFileSync(at("interop.avsc"), JSON.stringify(INTEROP));
    run([...found!.java, "files", at("interop.avsc"), "300", "5", folder]);
    const [plain, ...others] = ["null", "deflate", "snappy", "zstandard"].map((codec) =>
      readAll(readFileSync(at(`${codec}.avro`))),
    );
    expect(plain).toHaveLength(300);
    for (const other of others) expect(other).toEqual(plain!);
    expect(() => readAll(readFileSync(at("bzip2.avro")))).toThrow("bzip2");
  },
  60_000,
);

const LOGICAL: Schema = {
  type: "record",
  name: "L",
  fields: [
    { name: "dec", type: { type: "bytes", logicalType: "decimal", precision: 12, scale: 3 } },
    { name: "dec38", type: ["null", { type: "bytes", logicalType: "decimal", precision: 38, scale: 9 }] },
    { name: "dec50", type: { type: "bytes", logicalType: "decimal", precision: 50, scale: 4 } },
    {
      name: "fixed",
      type: { type: "fixed", name: "Money", size: 8, logicalType: "decimal", precision: 18, scale: 2 },
    },
    { name: "uuid", type: { type: "string", logicalType: "uuid" } },
    { name: "date", type: { type: "int", logicalType: "date" } },
    { name: "tms", type: { type: "int", logicalType: "time-millis" } },
    { name: "tus", type: ["null", { type: "long", logicalType: "time-micros" }] },
    { name: "ms", type: { type: "long", logicalType: "timestamp-millis" } },
    { name: "us", type: ["null", { type: "long", logicalType: "timestamp-micros" }] },
    { name: "lms", type: { type: "long", logicalType: "local-timestamp-millis" } },
    { name: "lus", type: { type: "long", logicalType: "local-timestamp-micros" } },
    { name: "e", type: { type: "enum", name: "E", symbols: ["RED", "GREEN"] } },
    { name: "f", type: { type: "fixed", name: "F", size: 3 } },
    { name: "list", type: { type: "array", items: ["null", "string"] } },
    { name: "map", type: { type: "map", values: "long" } },
    { name: "nested", type: { type: "array", items: { type: "map", values: ["null", "double"] } } },
    {
      name: "some",
      type: [
        "null",
        {
          type: "record",
          name: "S",
          fields: [
            { name: "x", type: "int" },
            { name: "y", type: ["null", "float"] },
          ],
        },
      ],
    },
    {
      name: "either",
      type: ["null", "string", "long", { type: "record", name: "T", fields: [{ name: "z", type: "bytes" }] }],
    },
    { name: "b", type: "boolean" },
    { name: "bytes", type: "bytes" },
    { name: "text", type: "string" },
  ],
};

test.skipIf(found === null || pyarrow === undefined)(
  `${RECORDS} records of fastavro's, through Parquet, are what fastavro reads, cell for cell`,
  () => {
    const script = join(repo, "test/real/avro-records.py");
    writeFileSync(at("logical.avsc"), JSON.stringify(LOGICAL));
    let bytes = 0;
    for (let from = 0; from < RECORDS; from += CHUNK) {
      const count = Math.min(CHUNK, RECORDS - from);
      run([
        found!.python,
        script,
        "make",
        at("logical.avsc"),
        String(count),
        String(3 + from),
        at("payloads"),
      ]);
      toParquet(compile(LOGICAL), payloadsOf(at("payloads")) as Uint8Array[], at("ours.parquet"));
      run([found!.python, script, "avro", at("logical.avsc"), at("payloads")], at("theirs.txt"));
      run([pyarrow!, script, "parquet", at("ours.parquet")], at("ours.txt"));
      const [ours, theirs] = [readFileSync(at("ours.txt")), readFileSync(at("theirs.txt"))];
      expect(theirs.length).toBeGreaterThan(count * 200);
      bytes += theirs.length;
      if (ours.equals(theirs)) {
        if (RECORDS > CHUNK) console.log(`${from + count} of ${RECORDS} records are equal`);
        continue;
      }
      const [a, b] = [ours.toString().split("\n"), theirs.toString().split("\n")];
      const first = a.findIndex((line, i) => line !== b[i]);
      expect(`${from + first} ${a[first]}`).toBe(`${from + first} ${b[first]}`);
    }
    console.log(
      JSON.stringify({ records: RECORDS, columns: LOGICAL["fields"].length, bytes_of_text_equal: bytes }),
    );
  },
  3_600_000,
);

/** As a lane does it: batches of rows, each a row group. */
function toParquet(decoder: RecordDecoder, list: readonly Uint8Array[], path: string): void {
  const engine = new DuckEngine({ threads: 1, memoryBytes: 512 << 20, spill: null, allowed: [] });
  const encoder = new ParquetEncoder(engine, { compression: "zstd", level: 1 });
  const file = openSync(path, "w");
  const joined = new JoinedFile(instantLeaves(decoder.fields));
  writeSync(file, JoinedFile.head);
  for (let from = 0; from < list.length; from += 20_000)
    writeSync(file, joined.add(encoder.encode(columnsOf(decoder, list.slice(from, from + 20_000)))));
  writeSync(file, joined.finish([], "test"));
  closeSync(file);
  engine.close();
}

/** Its zstandard wants a package that is a C library of its own; Java's files have that codec. */
const CODECS = ["null", "deflate", "snappy"] as const;

test.skipIf(found === null || pyarrow === undefined)(
  "container files of fastavro's, landed by twg batch, are what fastavro reads, cell for cell",
  async () => {
    const script = join(repo, "test/real/avro-records.py");
    writeFileSync(at("logical.avsc"), JSON.stringify(LOGICAL));
    const write = (codec: string, seed: number, path: string) =>
      run([found!.python, script, "file", at("logical.avsc"), "300", String(seed), codec, path]);
    const files = CODECS.map((codec) => at(`fastavro-${codec}.avro`));
    for (const [i, codec] of CODECS.entries()) write(codec, 70 + i, files[i]!);
    const out = at("landed");
    const ended = await command(["batch", ...files, "--to", out, "--lanes", "1", "--metadata", "none"]);
    expect([ended.code, ended.failure]).toEqual([0, null]);
    const [landed, ...others] = readdirSync(out).filter((n) => n.endsWith(".parquet"));
    expect(others).toEqual([]);
    const theirs = files.map((f) => run([found!.python, script, "records", f])).join("");
    expect(theirs.split("\n")).toHaveLength(3 * 300 + 1);
    const ours = run([pyarrow!, script, "parquet", join(out, landed!)]);
    expect(ours.split("\n")).toEqual(theirs.split("\n"));
    write("bzip2", 1, at("bzip2-of-fastavro.avro"));
    const refused = await command(["batch", at("bzip2-of-fastavro.avro"), "--to", out]);
    expect(refused.failure?.code).toBe("files.avro_codec");
  },
  120_000,
);
