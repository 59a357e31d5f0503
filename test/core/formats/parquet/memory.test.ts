/** What a file holds in memory and hands out: bounded by the open row group, exact in its bytes. */
import { describe, expect, test } from "bun:test";
import { OutQueue, SLAB_BYTES, SlabBytes, SlabPool } from "../../../../src/core/formats/parquet/slabs.ts";
import { batchOf, bytes, concat, EMIT_TS, rawFile, readBack, row, taken } from "./rows.ts";

const fill = (n: number, seed: number) => Uint8Array.from({ length: n }, (_, i) => (i * 31 + seed) & 0xff);

describe("slabs", () => {
  test("bytes over several slabs come out whole and in order", () => {
    const pool = new SlabPool();
    const parts = [fill(10, 1), fill(SLAB_BYTES, 2), fill(3 * SLAB_BYTES + 7, 3)];
    const kept = new SlabBytes(pool);
    for (const p of parts) kept.append(p);
    const out = new OutQueue(pool);
    out.append(fill(5, 9));
    out.adopt(kept);
    expect(kept.length).toBe(0);
    expect(out.position).toBe(5 + concat(parts).length);
    const seen: Uint8Array[] = [];
    for (let b = out.first(); b !== null; b = out.first()) {
      seen.push(b.slice());
      out.dropFirst();
    }
    expect(Buffer.from(concat(seen)).equals(Buffer.from(concat([fill(5, 9), ...parts])))).toBe(true);
    expect(out.waiting).toBe(0);
    expect(pool.freeBytes).toBeGreaterThan(0);
  });

  test("what was handed out is not added to: it may be on its way to disk", () => {
    const out = new OutQueue(new SlabPool());
    out.append(bytes("ab"));
    const first = out.first();
    out.append(bytes("cd"));
    expect(first?.length).toBe(2);
    out.dropFirst();
    expect(new TextDecoder().decode(out.first() ?? undefined)).toBe("cd");
  });

  test("dropping gives the slabs back", () => {
    const pool = new SlabPool();
    const kept = new SlabBytes(pool);
    kept.append(fill(SLAB_BYTES + 1, 0));
    kept.drop();
    expect(pool.freeBytes).toBe(2 * SLAB_BYTES);
    const out = new OutQueue(pool);
    out.dropFirst();
    out.append(fill(9, 0));
    out.drop();
    expect(out.first()).toBeNull();
    expect(pool.freeBytes).toBe(2 * SLAB_BYTES);
  });
});

describe("a file in the writing", () => {
  const batch = batchOf(Array.from({ length: 1000 }, (_, i) => row(i, { value: fill(1000, i) })));

  test("holds one row group and not the file: 40 MB through a row group of 1 MB", () => {
    const file = rawFile({ rowGroupBytes: 1 << 20, compressed: false });
    let held = 0;
    let out = 0;
    for (let i = 0; i < 40; i++) {
      file.append(batch, 0, 1000, EMIT_TS);
      held = Math.max(held, file.held);
      for (const part of taken(file)) out += part.length;
    }
    expect(out).toBeGreaterThan(38_000_000);
    // Two batches are what a row group of 1 MiB can reach, beside the page buffers of all columns.
    expect(held).toBeLessThan(5_000_000);
    expect(file.rows).toBe(40_000);
  });

  test("a file of a single small record holds less than 40 KB", () => {
    const file = rawFile();
    const before = file.held;
    file.append(batchOf([row(0, { value: bytes("x") })]), 0, 1, EMIT_TS);
    // One slab for the bytes that every file begins with.
    expect(before).toBeLessThan(SLAB_BYTES + 20_000);
    expect(file.held - before).toBeLessThan(20_000);
  });

  test("`size` follows what was written and ends near the size of the file", () => {
    const file = rawFile({ compressed: false });
    file.append(batch, 0, 1000, EMIT_TS);
    expect(file.size).toBeGreaterThan(1_000_000);
    const size = file.size;
    file.finish([]);
    expect(Math.abs(concat(taken(file)).length - size)).toBeLessThan(40_000);
  });

  test("a dropped file gives back everything; the next one is whole", async () => {
    const file = rawFile({ rowGroupBytes: 1 << 20 });
    file.append(batch, 0, 1000, EMIT_TS);
    file.drop();
    expect(file.out.first()).toBeNull();
    const next = rawFile();
    next.append(batch, 10, 12, EMIT_TS);
    next.finish([]);
    expect((await readBack(concat(taken(next)))).map((r) => r._twg_source_offset)).toEqual([10n, 11n]);
  });
});
