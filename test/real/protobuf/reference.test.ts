/**
 * Goal: what lands in Parquet of Protobuf records is what Google's implementation reads of them, cell for cell, and what is refused
 * is what it refuses. Method: the Python package makes records by chance, some merged of two writings, some damaged; we
 * read them into columns and write Parquet; pyarrow reads that, and the package the payloads.
 * TWG_PROTOBUF_RECORDS: how many records (default 500).
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckEngine } from "../../../src/adapters/duckdb/engine.ts";
import { ParquetEncoder } from "../../../src/adapters/duckdb/parquet-encode.ts";
import { compileProtobuf } from "../../../src/core/codecs/protobuf/compile.ts";
import { builderOf } from "../../../src/core/types/column-builder.ts";
import { schemaText } from "../../core/codecs/protobuf/schema-text.ts";
import { payloadsOf, Reference } from "../reference-child.ts";

const python = process.env["TWG_PYTHON"];
const strict = process.env["TWG_STRICT"] === "1";
if (python === undefined)
  console.error(
    "SKIP: TWG_PYTHON names no Python with protobuf and pyarrow; records are not compared with its reading",
  );

const GOLDEN = join(import.meta.dir, "../../golden/protobuf");
const RECORDS = Number(process.env["TWG_PROTOBUF_RECORDS"] ?? 500);
/** Share of records with many fields; of a million the others have few, since one of the former takes Python some 4 ms. */
const FULL = RECORDS > 100_000 ? 0.02 : 1;
const CHUNK = 2000;

interface Compared {
  readonly payloads: number;
  readonly rows: number;
  readonly both_refused: number;
  /** By code. */
  readonly only_ours: Readonly<Record<string, number>>;
  readonly only_theirs: number;
  readonly cells: number;
  readonly different: number;
  readonly samples: readonly (readonly string[])[];
}

test.skipIf(python === undefined && !strict)("there is a Python to compare with", () =>
  expect(python).toBeDefined(),
);

describe.skipIf(python === undefined)("as Google's implementation reads it", () => {
  const folder = mkdtempSync(join(tmpdir(), "twg-protobuf-"));
  let reference: Reference;
  let engine: DuckEngine;
  let encoder: ParquetEncoder;
  beforeAll(() => {
    reference = new Reference(python!, join(import.meta.dir, "reference.py"));
    engine = new DuckEngine({ threads: 1, memoryBytes: 3_000_000_000, spill: null, allowed: [] });
    encoder = new ParquetEncoder(engine, { compression: "none", level: 0 });
  });
  afterAll(async () => {
    await reference.close();
    encoder.close();
    engine.close();
    rmSync(folder, { recursive: true });
  });

  async function run(
    set: string,
    message: string,
    seed: number,
    count: number,
    damaged: number,
  ): Promise<Compared> {
    const [payloadFile, parquet, faultFile] = ["payloads", "parquet", "faults"].map((n) => join(folder, n));
    const binary = join(GOLDEN, `${set}.binpb`);
    await reference.ask("make", binary, message, seed, count, payloadFile!, damaged, FULL);
    const decoder = compileProtobuf(schemaText(readFileSync(join(GOLDEN, `${set}.proto`), "utf8")), {
      message,
    });
    const columns = decoder.fields.map((f) => builderOf(f.type));
    const faults: Record<number, string> = {};
    const rows = decoder.decode(payloadsOf(payloadFile!), columns, (f) => {
      faults[f.row] = f.code;
    });
    const batch = { fields: decoder.fields, columns: columns.map((c) => c.finish()), rows };
    writeFileSync(parquet!, encoder.encode(batch));
    writeFileSync(faultFile!, JSON.stringify(faults));
    return reference.ask<Compared>("compare", binary, message, payloadFile!, parquet!, faultFile!);
  }

  // Nothing damaged: what proto2 lets through and an enum closed to others is held in conformance.test.ts.
  test.each([
    ["test_messages_proto2", "protobuf_test_messages.proto2.TestAllTypesProto2"],
    ["test_messages_edition2023", "protobuf_test_messages.editions.TestAllTypesEdition2023"],
  ])(
    "groups, presence and defaults of %s",
    async (set, message) => {
      // Of 900 columns and more: few at a time.
      const count = Math.min(60, Math.ceil(RECORDS / 20));
      const found = await run(set, message, 1, count, 0);
      expect(found).toMatchObject({
        payloads: count,
        rows: count,
        only_theirs: 0,
        different: 0,
        samples: [],
      });
    },
    Math.max(60_000, RECORDS * 20),
  );

  test(
    `${RECORDS} records with every kind of field`,
    async () => {
      const total = { payloads: 0, rows: 0, both_refused: 0, cells: 0, range: 0 };
      for (let from = 0; from < RECORDS; from += CHUNK) {
        const count = Math.min(CHUNK, RECORDS - from);
        const found = await run("everything", "twg.everything.Everything", from, count, 0.15);
        expect({ ...found, samples: found.samples, only_ours: Object.keys(found.only_ours) }).toMatchObject({
          payloads: count,
          only_theirs: 0,
          different: 0,
          // An instant that 64 bits of nanoseconds do not hold.
          only_ours: found.only_ours["decode.range"] === undefined ? [] : ["decode.range"],
          samples: [],
        });
        total.payloads += found.payloads;
        total.rows += found.rows;
        total.both_refused += found.both_refused;
        total.cells += found.cells;
        total.range += found.only_ours["decode.range"] ?? 0;
        if (RECORDS > 10 * CHUNK && from % (10 * CHUNK) === 0) console.log(JSON.stringify(total));
      }
      console.log(JSON.stringify(total));
      // Both kinds are there in numbers, or the test shows nothing.
      expect(total.rows).toBeGreaterThan(RECORDS * 0.8);
      expect(total.both_refused).toBeGreaterThan(RECORDS / 100);
    },
    Math.max(60_000, RECORDS * 20),
  );
});
