/**
 * Goal: a field of a binary COPY reads as what was sent, and what has no plain form keeps its bytes. Method: bytes as the server
 * writes them (documentation, "Binary Format"; numeric_send), and decimals there and back.
 */
import { expect, test } from "bun:test";
import { fieldTexts } from "../../../src/adapters/postgres/copy/field-text.ts";
import { numericBytes } from "../../../src/adapters/postgres/copy/numeric.ts";

const textOf = (type: string, bytes: Uint8Array | null) => fieldTexts(["c"], [{ type }], [bytes]).c;
const hex = (text: string) => Uint8Array.fromHex(text.replaceAll(" ", ""));

test.each([
  ["smallint", "ffff", "-1"],
  ["integer", "80000000", "-2147483648"],
  ["bigint", "7fffffffffffffff", "9223372036854775807"],
  ["real", "3fc00000", "1.5"],
  ["double precision", "3ff8000000000000", "1.5"],
  ["boolean", "01", "true"],
  ["boolean", "00", "false"],
  ["text", "c3bc", "ü"],
  ["character varying(10)", "61", "a"],
  ["json", "7b7d", "{}"],
  ["jsonb", "017b7d", "{}"],
  ["uuid", "00112233445566778899aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff"],
  ["date", "00000000", "2000-01-01"],
  ["date", "ffffffff", "1999-12-31"],
  // Infinity.
  ["date", "7fffffff", "base64:f////w=="],
  ["timestamp with time zone", "0000000000000001", "2000-01-01T00:00:00.000001Z"],
  ["timestamp without time zone", "ffffffffffffffff", "1999-12-31T23:59:59.999999"],
  ["timestamp without time zone", "7fffffffffffffff", "base64:f/////////8="],
  ["bytea", "ff00", "base64:/wA="],
  ["integer[]", "00", "base64:AA=="],
  // -12345.0678: digits 1, 2345, 678; weight 1; negative; scale 4.
  ["numeric(12,4)", "0003 0001 4000 0004 0001 0929 02a6", "-12345.0678"],
  // 0.00001230: one digit of 1230e-8; weight -2; scale 8.
  ["numeric", "0001 fffe 0000 0008 04ce", "0.00001230"],
  ["numeric", "0000 0000 0000 0002", "0.00"],
  // NaN.
  ["numeric", "0000 0000 c000 0000", "base64:AAAAAMAAAAA="],
])("%s %s", (type, bytes, text) => {
  expect(textOf(type, hex(bytes))).toBe(text);
});

test("decimals of every size, there and back", () => {
  for (const scale of [0, 1, 3, 4, 5, 11])
    for (const digits of ["0", "7", "10000", "99999999", "123456789012345678901234567890", "100000000000"])
      for (const sign of ["", "-"]) {
        const unscaled = BigInt(sign + digits);
        const padded = digits.padStart(scale + 1, "0");
        const point = scale === 0 ? padded : `${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
        const minus = unscaled < 0n ? "-" : "";
        expect(textOf(`numeric(38,${scale})`, numericBytes(unscaled, scale))).toBe(minus + point);
      }
});

test("null is null", () => {
  expect(fieldTexts(["a", "b"], [{ type: "text" }, { type: "text" }], [null, new Uint8Array(0)])).toEqual({
    a: null,
    b: "",
  });
});
