/** The header of an Avro object container file: read from its begin, whatever packs the file as a whole. */
import { type ContainerHeader, readHeader } from "../../core/codecs/avro/container.ts";
import { Failure } from "../../core/failure/failure.ts";
import type { Compression } from "../../core/ports/batch-lane.ts";
import type { FilePlace, OpenFile } from "../../core/ports/file-bytes.ts";
import { bytesOf } from "./decode-stream.ts";

/** Throws files.not_avro, files.avro_codec. */
export async function avroHeader(
  place: FilePlace,
  name: string,
  compression: Compression,
  open: OpenFile,
): Promise<ContainerHeader> {
  let head = new Uint8Array(0);
  try {
    for await (const chunk of bytesOf(place, compression, open)) {
      head = Buffer.concat([head, chunk]);
      const header = readHeader(head, head.length);
      if (header !== null) return header;
    }
  } catch (e) {
    if (!(e instanceof Failure) || e.at !== null) throw e;
    throw new Failure(e.code, e.message, { at: name, cause: e });
  }
  throw new Failure("files.not_avro", `the file ends within its header, after ${head.length} bytes`, {
    at: name,
  });
}
