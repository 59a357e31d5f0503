/** Goal: a column that is built row by row is what was added, however it grew, and batch after batch. Method: rows against a list. */
import { expect, test } from "bun:test";
import { BytesBuilder } from "../../../src/adapters/postgres/replay/bytes-builder.ts";

/** Row `i` of a batch; null every seventh. */
const cell = (i: number): Uint8Array | null => (i % 7 === 3 ? null : new Uint8Array(i % 90).fill(i));

function filled(builder: BytesBuilder, rows: number) {
  builder.clear();
  for (let i = 0; i < rows; i++) {
    const bytes = cell(i);
    // With other bytes around it, as in a message.
    const around = new Uint8Array(2 + (bytes?.length ?? 0)).fill(255);
    around.set(bytes ?? [], 1);
    builder.add(around, 1, bytes?.length ?? -1);
  }
  const { offsets, data, validity, nullCount } = builder.column();
  const read = Array.from({ length: rows }, (_, i) =>
    (validity![i >> 3]! >> (i & 7)) & 1 ? [...data.subarray(offsets[i]!, offsets[i + 1]!)] : null,
  );
  return { read, nullCount };
}

test("a column grows in rows and in bytes, and is used again", () => {
  const builder = new BytesBuilder();
  for (const rows of [1024, 5000, 10, 0]) {
    const wanted = Array.from({ length: rows }, (_, i) => cell(i)).map((c) => (c === null ? null : [...c]));
    expect(filled(builder, rows)).toEqual({
      read: wanted,
      nullCount: wanted.filter((w) => w === null).length,
    });
  }
});
