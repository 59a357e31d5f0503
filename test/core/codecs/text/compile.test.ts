// Goal: text comes out as it went in, and what is none is refused by itself. Method: bytes by hand, node's own check of UTF-8.
import { expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import { DecodeError } from "../../../../src/core/codecs/record-codec.ts";
import { compileText } from "../../../../src/core/codecs/text/compile.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import { cellValue } from "../../../../src/core/types/value-cells.ts";

test("columns and Values agree, a byte order mark stays, bytes that are no UTF-8 are refused", () => {
  const parts = ["a", "", "\ufeffé", "\u{1f600}"].map((t) => new TextEncoder().encode(t));
  parts.splice(2, 0, Uint8Array.of(0xc3), Uint8Array.of(0xed, 0xa0, 0x80));
  const ends = Int32Array.from(parts.map((_, i) => parts.slice(0, i + 1).reduce((n, p) => n + p.length, 0)));
  const starts = ends.map((end, i) => end - parts[i]!.length);
  const bytes = new Uint8Array(Buffer.concat(parts));
  const decoder = compileText({ isUtf8 });
  const columns = decoder.fields.map((f) => builderOf(f.type));
  const faults: string[] = [];
  const payloads = { bytes, starts, ends, count: parts.length };
  const rows = decoder.decode(payloads, columns, (f) => faults.push(`${f.row} ${f.code}`));
  const column = columns[0]!.finish();
  const cells = Array.from({ length: rows }, (_, r) => cellValue(column, r));
  expect(cells).toEqual(["a", "", "\ufeffé", "\u{1f600}"].map((value) => ({ kind: "string", value })));
  expect(faults).toEqual(["2 decode.encoding", "3 decode.encoding"]);
  const values = parts.map((_, i) => {
    try {
      return decoder.value(bytes, starts[i]!, ends[i]!);
    } catch (e) {
      return e instanceof DecodeError ? e.code : e;
    }
  });
  expect(values.filter((v) => typeof v === "object")).toEqual(cells);
  expect(values.slice(2, 4)).toEqual(["decode.encoding", "decode.encoding"]);
});
