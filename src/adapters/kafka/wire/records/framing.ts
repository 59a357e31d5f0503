/**
 * Whether a batch can be framed: the fields that no checksum covers, or that are needed to find where it ends.
 */
import { Failure } from "../../../../core/failure/failure.ts";
import * as L from "./layout.ts";

/**
 * Whether the batch at `at` can be framed: null, or the failure without a place. Needs L.MAGIC_END bytes before
 * `end`; the last offset of magic 2 is looked at if its header is there.
 */
export function framingTrouble(view: DataView, at: number, end: number): Failure | null {
  const magic = view.getInt8(at + L.AT_MAGIC);
  if (magic < 0 || magic > 2) {
    return new Failure("kafka.unknown_magic", `record batch of magic ${magic}, 0 to 2 are known`);
  }
  const size = L.PREFIX_BYTES + view.getInt32(at + L.AT_LENGTH);
  const smallest = L.SMALLEST[magic]!;
  if (size < smallest) {
    return new Failure(
      "kafka.corrupt_batch",
      `record batch of ${size} bytes, magic ${magic} needs ${smallest}`,
    );
  }
  const delta = magic === 2 && end - at >= L.V2_RECORDS ? view.getInt32(at + L.V2_LAST_OFFSET_DELTA) : 0;
  // The high half decides for all but the last offsets of the number line, and needs no bigint.
  const high = view.getInt32(at);
  if (high < 0 || delta < 0 || (high === 0x7fff_ffff && endsTooHigh(view, at, delta))) {
    const base = view.getBigInt64(at);
    return new Failure(
      "kafka.corrupt_batch",
      `record batch at the offset ${base}, last offset delta ${delta}`,
    );
  }
  return null;
}

function endsTooHigh(view: DataView, at: number, delta: number): boolean {
  return view.getBigInt64(at) + BigInt(delta) > L.LARGEST_OFFSET;
}
