/** Vectors of the reference codecs (fixtures/make-vectors.py), and the text that they are made of. */
import { createHash } from "node:crypto";
import fixture from "./fixtures/vectors.json";

export interface PackedVector {
  readonly codec: string;
  readonly name: string;
  readonly packed: string;
  readonly length: number;
  readonly sha256: string;
}

export const VECTORS: readonly PackedVector[] = fixture.vectors;
export const XXH32 = fixture.xxh32 as unknown as readonly (readonly [string | null, number, number])[];
export const TEXT_SHA256 = fixture.text_sha256;

/** The text of the generator, line by line the same. */
export const TEXT = new TextEncoder().encode(
  Array.from(
    { length: 2200 },
    (_, i) => `line ${i % 700} of the order log, customer ${(i * 7919) % 1000}\n`,
  ).join(""),
);

export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

export const unpacked = (v: PackedVector): Uint8Array => Uint8Array.from(Buffer.from(v.packed, "base64"));

export function vectorNamed(codec: string, name: string): Uint8Array {
  const found = VECTORS.find((v) => v.codec === codec && v.name === name);
  if (found === undefined) throw new Error(`no vector ${codec} ${name}`);
  return unpacked(found);
}
