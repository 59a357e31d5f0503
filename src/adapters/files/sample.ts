/** The begin of a file as text: enough to see its dialect and to infer a schema. */
import type { Compression, TextEncoding } from "../../core/ports/batch-lane.ts";
import { asUtf8, checkedBlocks, decompressed } from "./decode-stream.ts";
import type { FilesOptions } from "./spec.ts";

export interface Sample {
  /** UTF-8, byte order mark taken off. */
  readonly bytes: Uint8Array;
  /** The sample is all of the file. */
  readonly whole: boolean;
}

/** UTF-16 is known by its mark alone; without one the file is taken for UTF-8. */
export async function encodingOf(
  path: string,
  compression: Compression,
  options: Pick<FilesOptions, "encoding">,
): Promise<TextEncoding> {
  if (options.encoding !== "auto") return options.encoding;
  for await (const chunk of decompressed(
    checkedBlocks(path, () => {}),
    compression,
    path,
  )) {
    if (chunk[0] === 0xff && chunk[1] === 0xfe) return "utf-16le";
    return chunk[0] === 0xfe && chunk[1] === 0xff ? "utf-16be" : "utf-8";
  }
  return "utf-8";
}

export async function sampleOf(
  path: string,
  compression: Compression,
  encoding: TextEncoding,
  most: number,
): Promise<Sample> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of asUtf8(
    decompressed(
      checkedBlocks(path, () => {}),
      compression,
      path,
    ),
    encoding,
    path,
  )) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= most) return { bytes: Buffer.concat(chunks).subarray(0, most), whole: false };
  }
  return { bytes: Buffer.concat(chunks), whole: true };
}
