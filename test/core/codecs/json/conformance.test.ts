/**
 * Goal: JSON is read as RFC 8259 has it. Method: the documents of JSONTestSuite (github.com/nst/JSONTestSuite, MIT,
 * Copyright 2016 Nicolas Seriot; test/golden/json-test-suite.json holds them in base64, by their names there) as the value
 * of a member: y_ must be taken with its text kept, n_ refused, and what becomes of each i_, which the RFC leaves open, is
 * said here. Its two largest are made here.
 */
import { expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import { jsonRecords } from "../../../../src/core/codecs/json/compile.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import suite from "../../../golden/json-test-suite.json";
import { cellOf } from "../table.ts";

const FIELDS = [{ name: "v", type: { id: "json" }, nullable: true }] as const;

/** Text of the value, or the code of the refusal. */
function read(document: Uint8Array): string {
  const bytes = Buffer.concat([Buffer.from('{"v":'), document, Buffer.from("}")]);
  const decoder = jsonRecords(FIELDS, { unknown: "reject", reserved: null, maxBytes: 1 << 20, isUtf8 });
  const columns = [builderOf({ id: "json" })];
  let code = "";
  const one = { starts: Int32Array.of(0), ends: Int32Array.of(bytes.length), count: 1 };
  const rows = decoder.decode({ bytes, ...one }, columns, (f) => {
    code = f.code;
  });
  expect(rows).toBe(code === "" ? 1 : 0);
  if (rows === 0) return code;
  const cell = cellOf(columns[0]!.finish(), 0);
  return cell === null ? "null" : String(cell);
}

const documents = Object.entries(suite).map(
  ([name, base64]) => [name, Uint8Array.fromBase64(base64)] as const,
);
const named = (prefix: string) => documents.filter(([name]) => name.startsWith(prefix));

/** Nothing follows an empty one, so what stands behind it in the record does: no value. */
const large: readonly (readonly [string, string])[] = [
  ["n_structure_100000_opening_arrays", "[".repeat(100_000)],
  ["n_structure_open_array_object", '[{"":'.repeat(50_000)],
];

test("documents that are JSON are taken, and their text is kept", () => {
  expect(named("y_").length).toBe(95);
  for (const [name, bytes] of named("y_"))
    expect([name, read(bytes)]).toEqual([name, new TextDecoder().decode(bytes).trim()]);
});

test("documents that are no JSON are refused", () => {
  expect(named("n_").length + large.length).toBe(188);
  for (const [name, bytes] of named("n_"))
    expect([name, read(bytes).startsWith("decode.")]).toEqual([name, true]);
  for (const [name, text] of large)
    expect([name, read(new TextEncoder().encode(text))]).toEqual([name, "decode.depth"]);
});

/**
 * Numbers of any size are taken: a column of raw JSON keeps their digits, and a column of numbers says whether they fit.
 * Half a pair of surrogates, a byte order mark and bytes that are no UTF-8 are refused, and so are 500 arrays in one another.
 */
test("what is left open is decided", () => {
  expect(named("i_").length).toBe(35);
  const got = Object.fromEntries(named("i_").map(([name, bytes]) => [name, read(bytes)]));
  expect(got).toMatchInlineSnapshot(`
    {
      "i_number_double_huge_neg_exp": "[123.456e-789]",
      "i_number_huge_exp": "[0.4e00669999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999969999999006]",
      "i_number_neg_int_huge_exp": "[-1e+9999]",
      "i_number_pos_double_huge_exp": "[1.5e+9999]",
      "i_number_real_neg_overflow": "[-123123e100000]",
      "i_number_real_pos_overflow": "[123123e100000]",
      "i_number_real_underflow": "[123e-10000000]",
      "i_number_too_big_neg_int": "[-123123123123123123123123123123]",
      "i_number_too_big_pos_int": "[100000000000000000000]",
      "i_number_very_big_negative_int": "[-237462374673276894279832749832423479823246327846]",
      "i_object_key_lone_2nd_surrogate": "decode.syntax",
      "i_string_1st_surrogate_but_2nd_missing": "decode.syntax",
      "i_string_1st_valid_surrogate_2nd_invalid": "decode.syntax",
      "i_string_UTF-16LE_with_BOM": "decode.encoding",
      "i_string_UTF-8_invalid_sequence": "decode.encoding",
      "i_string_UTF8_surrogate_U+D800": "decode.encoding",
      "i_string_incomplete_surrogate_and_escape_valid": "decode.syntax",
      "i_string_incomplete_surrogate_pair": "decode.syntax",
      "i_string_incomplete_surrogates_escape_valid": "decode.syntax",
      "i_string_invalid_lonely_surrogate": "decode.syntax",
      "i_string_invalid_surrogate": "decode.syntax",
      "i_string_invalid_utf-8": "decode.encoding",
      "i_string_inverted_surrogates_U+1D11E": "decode.syntax",
      "i_string_iso_latin_1": "decode.encoding",
      "i_string_lone_second_surrogate": "decode.syntax",
      "i_string_lone_utf8_continuation_byte": "decode.encoding",
      "i_string_not_in_unicode_range": "decode.encoding",
      "i_string_overlong_sequence_2_bytes": "decode.encoding",
      "i_string_overlong_sequence_6_bytes": "decode.encoding",
      "i_string_overlong_sequence_6_bytes_null": "decode.encoding",
      "i_string_truncated-utf-8": "decode.encoding",
      "i_string_utf16BE_no_BOM": "decode.encoding",
      "i_string_utf16LE_no_BOM": "decode.encoding",
      "i_structure_500_nested_arrays": "decode.depth",
      "i_structure_UTF-8_BOM_empty_object": "decode.syntax",
    }
  `);
});
