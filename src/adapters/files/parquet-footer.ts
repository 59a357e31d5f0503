/** The footer of a Parquet file: found at its end, bounded before it is read. */
import {
  notParquet,
  type ParquetFooter,
  readFooter,
  unsupported,
} from "../../core/formats/parquet/read-footer.ts";
import type { FileBytes } from "../../core/ports/file-bytes.ts";

/** Larger ones are not read into memory. */
const MAX_FOOTER_BYTES = 256 * 1024 * 1024;
/** Magic, length of the footer, magic. */
const LEAST_BYTES = 12;
const TAIL_BYTES = 8;
const MAGIC = "PAR1";
/** Of a file whose footer is encrypted (parquet-format Encryption.md). */
const ENCRYPTED = "PARE";

/** Throws files.not_parquet, files.parquet_feature. */
export async function parquetFooter(
  file: Pick<FileBytes, "size" | "read">,
  name: string,
): Promise<ParquetFooter> {
  const { size } = file;
  if (size < LEAST_BYTES) throw notParquet(`${size} bytes are too few`, name);
  const head = textOf(await file.read(0, 4));
  const tail = await file.read(size - TAIL_BYTES, size);
  const end = textOf(tail.subarray(4));
  if (end === ENCRYPTED) throw unsupported("its footer is encrypted", name);
  if (head !== MAGIC || end !== MAGIC)
    throw notParquet(`${MAGIC} does not stand at ${head === MAGIC ? "its end" : "its begin"}`, name);
  const length = new DataView(tail.buffer, tail.byteOffset).getUint32(0, true);
  const at = size - TAIL_BYTES - length;
  if (at < MAGIC.length) throw notParquet(`a footer of ${length} bytes in a file of ${size}`, name);
  if (length > MAX_FOOTER_BYTES)
    throw unsupported(`a footer of ${length} bytes, at most ${MAX_FOOTER_BYTES} are read`, name);
  return readFooter(await file.read(at, size - TAIL_BYTES), at, name);
}

function textOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}
