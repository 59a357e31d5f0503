/**
 * Damaged compressed bytes through every codec, native and fallback: at most the cap comes out, what stands before
 * the output is untouched, and the only failures are those of the codecs.
 */
import { readFileSync } from "node:fs";
import { libduckdbPath } from "../../src/adapters/duckdb/embedded.ts";
import { loadNative } from "../../src/adapters/duckdb/native.ts";
import { fallbackCodecs } from "../../src/adapters/duckdb/native-fallback.ts";
import type { Codecs } from "../../src/core/compression/codec.ts";
import { type CodecName, decompress } from "../../src/core/compression/decompress.ts";
import { Output } from "../../src/core/compression/output.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import { damage, draws, pick } from "./draws.ts";
import type { FuzzTarget } from "./target.ts";

const VECTORS = new URL("../../test/core/compression/fixtures/vectors.json", import.meta.url);
const ALLOWED = /^(compression\.(corrupt|limit)|bytes\.(short|limit|invalid))$/;
const GUARD = 0xa5;
const GUARD_BYTES = 16;

interface Vector {
  readonly codec: CodecName;
  readonly bytes: Uint8Array;
  readonly length: number;
}

interface World {
  readonly codecs: readonly Codecs[];
  readonly small: readonly Vector[];
  readonly all: readonly Vector[];
}

let world: World | null = null;

function load(): World {
  const file = JSON.parse(readFileSync(VECTORS, "utf8")) as {
    vectors: { codec: CodecName; packed: string; length: number }[];
  };
  const all = file.vectors.map(({ codec, packed, length }) => ({
    codec,
    length,
    bytes: Uint8Array.from(Buffer.from(packed, "base64")),
  }));
  world ??= {
    codecs: [loadNative(libduckdbPath()), fallbackCodecs],
    small: all.filter((v) => v.bytes.length < 1000),
    all,
  };
  return world;
}

const out = new Output(64);

function run(n: number): boolean {
  const { codecs, small, all } = world ?? load();
  const draw = draws(n);
  const vector = pick(draw, draw(10) === 0 ? all : small);
  const bytes = damage(vector.bytes, draw);
  const cap = pick(draw, [0, 1, vector.length, 1 << 16, 1 << 20]);
  out.shrink(1 << 20);
  out.bytes.fill(GUARD, 0, GUARD_BYTES);
  out.begin(GUARD_BYTES, cap);
  let refused = false;
  try {
    decompress(pick(draw, codecs), vector.codec, bytes, 0, bytes.length, out, draw(2) === 0);
  } catch (e) {
    if (!(e instanceof Failure) || !ALLOWED.test(e.code)) throw e;
    refused = true;
  }
  if (out.end - out.start > cap)
    throw new Error(`${out.end - out.start} bytes come out where ${cap} are allowed`);
  if (out.bytes.subarray(0, GUARD_BYTES).some((b) => b !== GUARD))
    throw new Error("it wrote before its output");
  return refused;
}

export const compressionTarget: FuzzTarget = { name: "compression", run };
