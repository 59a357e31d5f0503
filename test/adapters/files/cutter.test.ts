/**
 * Goal: pieces hold every record of a file once, whole and in order, with the row and line they begin at; never more
 * pieces than credits; a record that does not end is an error, not memory. Method: a cutter in this thread on real
 * files; the pieces put together must be the file, and each must end where a record ends.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { BLOCK_BYTES, blockCheck } from "../../../src/adapters/files/blocks.ts";
import { Cutter } from "../../../src/adapters/files/cutter.ts";
import { openLocalFile } from "../../../src/adapters/files/file-bytes.ts";
import { RFC_4180 } from "../../../src/core/codecs/csv/dialect.ts";
import type { FileLayout, FileWork, FromCutter } from "../../../src/core/ports/batch-lane.ts";
import { containerFile, containerHeader, MARKER } from "../../core/codecs/avro/container-file.ts";

const room = mkdtempSync(join(tmpdir(), "twg-cutter-"));
afterAll(() => rmSync(room, { recursive: true }));

const csv = (columns: number, header = false): FileLayout => ({
  format: "csv",
  dialect: RFC_4180,
  columns: Array.from({ length: columns }, (_, i) => `c${i}`),
  header,
});
const NDJSON: FileLayout = { format: "ndjson", array: false };

function workOf(file: number, content: string | Uint8Array, layout: FileLayout): FileWork {
  const path = join(room, `f${file}`);
  writeFileSync(path, content);
  const bytes = new Blob([content]).size;
  return {
    file,
    name: `f${file}.in`,
    path,
    revision: null,
    bytes,
    compression: "none",
    encoding: "utf-8",
    layout,
  };
}

interface Piece {
  readonly file: number;
  readonly text: string;
  readonly firstRow: number;
  readonly records: number;
  readonly line: number;
  readonly last: boolean;
}

/** A cutter whose pieces are taken, checked and given back at once. */
class Bench {
  readonly pieces: Piece[] = [];
  readonly cuts: { readonly file: number; readonly rows: number }[] = [];
  readonly blocks: bigint[] = [];
  readonly cutter: Cutter;
  out = 0;
  mostOut = 0;
  death: { readonly code: string; readonly message: string } | null = null;
  #ended = Promise.withResolvers<void>();
  #wanted: number;

  constructor(works: readonly FileWork[], pieceBytes: number, maxRecordBytes = 1 << 20, giveBack = true) {
    this.#wanted = works.length;
    this.cutter = new Cutter({ pieceBytes, maxRecordBytes }, openLocalFile, (m, transfer) =>
      this.#take(m, transfer, giveBack),
    );
    for (const work of works) {
      const columns = work.layout.format === "csv" ? work.layout.columns.length : 1;
      this.cutter.receive({ t: "cut", work, columns });
    }
  }

  credits(n: number): this {
    for (let i = 0; i < n; i++) this.cutter.receive({ t: "credit", buffer: null });
    return this;
  }

  ended(): Promise<void> {
    return this.#ended.promise;
  }

  #take(m: FromCutter, transfer: ArrayBuffer[] | undefined, giveBack: boolean): void {
    if (m.t === "dead") {
      this.death = m.failure;
      this.#ended.resolve();
    } else if (m.t === "cut") {
      this.blocks.push(...m.blocks);
      this.cuts.push({ file: m.file, rows: m.rows });
      if (this.cuts.length === this.#wanted) this.#ended.resolve();
    } else if (m.t === "piece") {
      const { buffer, end, ...rest } = m.piece;
      expect(transfer).toEqual([buffer]);
      this.blocks.push(...m.blocks);
      this.pieces.push({ ...rest, text: new TextDecoder().decode(new Uint8Array(buffer, 0, end)) });
      this.mostOut = Math.max(this.mostOut, ++this.out);
      // As a transfer does it: what is sent is not the cutter's any more.
      const moved = structuredClone(buffer, { transfer: [buffer] });
      if (giveBack)
        queueMicrotask(() => {
          this.out--;
          new Uint8Array(moved).fill(0x7a);
          this.cutter.receive({ t: "credit", buffer: moved });
        });
    }
  }
}

async function cut(works: readonly FileWork[], pieceBytes: number, maxRecordBytes?: number): Promise<Bench> {
  const bench = new Bench(works, pieceBytes, maxRecordBytes).credits(2);
  await bench.ended();
  return bench;
}

test("a small file is one piece, behind its header", async () => {
  const { pieces, cuts } = await cut([workOf(0, "a,b\n1,2\n3,4\n", csv(2, true))], 1024);
  expect(pieces).toEqual([{ file: 0, text: "1,2\n3,4\n", firstRow: 0, records: 2, line: 2, last: true }]);
  expect(cuts).toEqual([{ file: 0, rows: 2 }]);
});

test("many pieces: each of whole records, with its first row and line", async () => {
  const records = Array.from({ length: 100 }, (_, i) => (i % 3 === 0 ? `${i},"x\n\ny"\n` : `${i},z\n`));
  const { pieces, cuts } = await cut([workOf(0, `"a\nb",c\n${records.join("")}`, csv(2, true))], 64);
  expect(pieces.length).toBeGreaterThan(10);
  let row = 0;
  let line = 3;
  for (const p of pieces) {
    expect(p.text).toBe(records.slice(row, row + p.records).join(""));
    expect([p.firstRow, p.line]).toEqual([row, line]);
    row += p.records;
    line += p.text.split("\n").length - 1;
  }
  expect(pieces.filter((p) => p.last)).toEqual(pieces.slice(-1));
  expect(cuts).toEqual([{ file: 0, rows: 100 }]);
});

test("an Avro file is cut between blocks, behind its header, and a broken one ends it", async () => {
  const schema = { type: "record", name: "R", fields: [{ name: "n", type: "int" }] };
  const payloads = Array.from({ length: 200 }, (_, i) => Uint8Array.of(i % 60));
  const header = containerHeader(schema, "null").length;
  const layout = { format: "avro", codec: "null", schema: "", reader: null, marker: MARKER, header } as const;
  const file = containerFile(schema, payloads, { perBlock: 7 });
  for (const pieceBytes of [1, 16, 64, 1000, 100_000]) {
    const { pieces, cuts } = await cut([workOf(0, file, layout)], pieceBytes);
    let row = 0;
    for (const p of pieces) {
      expect(p.firstRow).toBe(row);
      row += p.records;
    }
    expect([row, cuts]).toEqual([200, [{ file: 0, rows: 200 }]]);
    expect(pieces.map((p) => p.text).join("")).toBe(new TextDecoder().decode(file.subarray(header)));
    expect(pieces.filter((p) => p.last)).toEqual(pieces.slice(-1));
  }
  const dead = async (bytes: Uint8Array, most?: number) =>
    (await cut([workOf(0, bytes, layout)], 64, most)).death;
  expect(await dead(file.subarray(0, -1))).toMatchObject({ code: "files.not_avro", at: "f0.in" });
  expect(await dead(file.subarray(0, header - 1))).toMatchObject({ code: "files.not_avro", at: "f0.in" });
  expect(await dead(file, 6)).toMatchObject({ code: "files.record_too_large", at: "f0.in" });
  const torn = Uint8Array.from(file);
  torn[torn.length - 1]! ^= 1;
  expect(await dead(torn)).toMatchObject({ code: "files.not_avro" });
});

test("random files, pieces of any size: nothing lost, doubled or torn", async () => {
  const field = fc.oneof(fc.stringMatching(/^[a-z]{0,20}$/), fc.constantFrom('"q\n,"', '"""\r\n"', '""'));
  const record = fc.tuple(field, field).map((f) => f.join(","));
  const end = fc.constantFrom("\n", "\r\n");
  const input = fc.record({
    records: fc.array(record, { maxLength: 30 }),
    end,
    size: fc.integer({ min: 8, max: 90 }),
  });
  await fc.assert(
    fc.asyncProperty(input, fc.boolean(), async ({ records, end: lineEnd, size }, header) => {
      const lines = records.map((r) => r + lineEnd);
      const text = (header ? `"h\n1",h2${lineEnd}` : "") + lines.join("");
      const bench = await cut([workOf(0, text, csv(2, header))], size);
      expect(bench.death).toBeNull();
      for (const p of bench.pieces)
        expect(p.text).toBe(lines.slice(p.firstRow, p.firstRow + p.records).join(""));
      expect(bench.pieces.map((p) => p.text).join("")).toBe(lines.join(""));
      expect(bench.cuts).toEqual([{ file: 0, rows: lines.length }]);
      expect(bench.mostOut).toBeLessThanOrEqual(2);
    }),
    { numRuns: 150 },
  );
});

test("files in order, an empty one and one of a header alone among them; lines of JSON too", async () => {
  const works = [
    workOf(0, "1,2\n", csv(2)),
    workOf(1, "", csv(2)),
    workOf(2, "a,b", csv(2, true)),
    workOf(3, '{"a":1}\n\n{"a":2}', NDJSON),
  ];
  const { cuts, pieces } = await cut(works, 1024);
  expect(cuts.map((c) => c.rows)).toEqual([1, 0, 0, 2]);
  expect(pieces.map((p) => [p.file, p.records, p.last])).toEqual([
    [0, 1, true],
    [1, 0, true],
    [2, 0, true],
    [3, 2, true],
  ]);
});

test("the checks are those of the file's blocks, each once", async () => {
  const content = new TextEncoder().encode("0123456789abcde,\n".repeat(150_000));
  const { blocks, cuts } = await cut([workOf(0, content, csv(2))], 300_000);
  const expected: bigint[] = [];
  for (let at = 0; at < content.length; at += BLOCK_BYTES)
    expected.push(blockCheck(content.subarray(at, at + BLOCK_BYTES)));
  expect(expected).toHaveLength(3);
  expect(blocks).toEqual(expected);
  expect(cuts).toEqual([{ file: 0, rows: 150_000 }]);
});

test("without a credit no piece is made, with one exactly one", async () => {
  const bench = new Bench([workOf(0, "1,2\n".repeat(100), csv(2))], 40, 1 << 20, false);
  const settled = async () => {
    for (let i = 0; i < 20; i++) await new Promise((r) => setImmediate(r));
    return bench.pieces.length;
  };
  expect(await settled()).toBe(0);
  bench.credits(1);
  expect(await settled()).toBe(1);
  bench.credits(2);
  expect(await settled()).toBe(3);
  bench.credits(20);
  await bench.ended();
  expect(bench.pieces.map((p) => p.records)).toEqual(
    new Array(10).fill(10).concat(bench.pieces.slice(10).map(() => 0)),
  );
});

test("a record that does not end is an error with its line; one that ends late is not", async () => {
  const open = await cut([workOf(0, `1,2\n3,"${"x".repeat(500)}`, csv(2))], 64, 200);
  expect(open.death).toMatchObject({ code: "files.record_too_large" });
  expect(open.death?.message).toContain("line 2 (row 1)");
  const header = await cut([workOf(1, `a,"${"x".repeat(500)}\n1,2\n`, csv(2, true))], 64, 200);
  expect(header.death).toMatchObject({ code: "files.record_too_large" });
  const late = await cut([workOf(2, `1,"${"x".repeat(150)}"\n3,4\n`, csv(2))], 64, 200);
  expect(late.cuts).toEqual([{ file: 2, rows: 2 }]);
});

test("a file that cannot be cut or read ends it with a code", async () => {
  const parquet = await cut([workOf(0, "PAR1", { format: "parquet", groups: [] })], 64);
  expect(parquet.death).toMatchObject({ code: "internal.bug" });
  const work = workOf(1, "1,2\n", csv(2));
  rmSync(work.path);
  expect((await cut([work], 64)).death).toMatchObject({ code: "files.unreadable" });
});
