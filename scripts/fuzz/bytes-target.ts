/** Random reads of random bytes: the reader gives a value or a coded Failure, and never moves past its end. */
import { ByteReader } from "../../src/core/bytes/reader.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import { type Draw, draws, pick } from "./draws.ts";
import type { FuzzTarget } from "./target.ts";

const READS: readonly ((r: ByteReader, draw: Draw) => unknown)[] = [
  (r) => r.i8(),
  (r) => r.i16(),
  (r) => r.i32(),
  (r) => r.i64(),
  (r) => r.f64(),
  (r) => r.uvarint(),
  (r) => r.varint(),
  (r) => r.uvarlong(),
  (r) => r.varlong(),
  (r) => r.nullableString(),
  (r) => r.compactNullableString(),
  (r) => r.nullableBytes(),
  (r) => r.compactNullableBytes(),
  (r, draw) => r.arrayCount(1 + draw(8)),
  (r, draw) => r.compactArrayCount(1 + draw(8)),
  (r) => r.taggedFields((_, value) => value.skip(value.remaining)),
  (r, draw) => r.slice(draw(40)).remaining,
  (r, draw) => r.skip(draw(20) - 2),
];

function run(n: number): boolean {
  const draw = draws(n);
  const bytes = Uint8Array.from({ length: draw(80) }, () =>
    draw(3) === 0 ? pick(draw, [0, 1, 0x7f, 0x80, 0xff]) : draw(256),
  );
  const start = draw(bytes.length + 1);
  const r = new ByteReader(bytes, start, start + draw(bytes.length - start + 1));
  try {
    for (let reads = draw(20); reads > 0; reads--) {
      const before = r.pos;
      pick(draw, READS)(r, draw);
      if (r.pos < before || r.pos > r.end)
        throw new Error(`position ${r.pos} after ${before}, the end is ${r.end}`);
    }
    return false;
  } catch (e) {
    if (e instanceof Failure && e.code.startsWith("bytes.") && r.pos <= r.end) return true;
    throw e;
  }
}

export const bytesTarget: FuzzTarget = { name: "bytes", run };
