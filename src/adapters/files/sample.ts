/** The begin of a file as text: enough to see its dialect and to infer a schema. */
import type { Compression, FileWork, TextEncoding } from "../../core/ports/batch-lane.ts";
import type { FilePlace, OpenFile } from "../../core/ports/file-bytes.ts";
import { bytesOf, textOf } from "./decode-stream.ts";
import type { FilesOptions } from "./spec.ts";

export interface Sample {
  /** UTF-8, byte order mark taken off. */
  readonly bytes: Uint8Array;
  /** The sample is all of the file. */
  readonly whole: boolean;
}

type Work = FilePlace & Pick<FileWork, "compression" | "layout">;

/** The first bytes of a file as they are, decompressed. */
export async function rawHead(
  place: FilePlace,
  compression: Compression,
  open: OpenFile,
): Promise<Uint8Array> {
  for await (const chunk of bytesOf(place, compression, open)) return chunk;
  return new Uint8Array(0);
}

/** UTF-16 is known by its mark alone; without one the file is taken for UTF-8. */
export function encodingOf(head: Uint8Array, options: Pick<FilesOptions, "encoding">): TextEncoding {
  if (options.encoding !== "auto") return options.encoding;
  if (head[0] === 0xff && head[1] === 0xfe) return "utf-16le";
  return head[0] === 0xfe && head[1] === 0xff ? "utf-16be" : "utf-8";
}

export async function sampleOf(
  work: Work,
  encoding: TextEncoding,
  most: number,
  open: OpenFile,
): Promise<Sample> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of textOf({ ...work, encoding }, () => {}, open)) {
      chunks.push(chunk.slice());
      length += chunk.length;
      if (length >= most) return { bytes: Buffer.concat(chunks).subarray(0, most), whole: false };
    }
  } catch (e) {
    // What is wrong further on is found when it is read; what there is may be enough to see the layout.
    if (length === 0) throw e;
    return { bytes: Buffer.concat(chunks), whole: false };
  }
  return { bytes: Buffer.concat(chunks), whole: true };
}
