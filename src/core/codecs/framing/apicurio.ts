/**
 * Apicurio's envelopes.
 *
 *   before the payload   0  id (8 bytes, big endian)  payload
 *   or in a header       the 8 bytes of the id as the value of `apicurio.value.contentId` or `.globalId` (`apicurio.key.…`);
 *                        the payload has none then
 *
 * Which of its two kinds of id the 8 bytes are is the writers' setting (content ids by default since version 3), and the
 * registry must be asked for that kind; its Confluent-compatible interface takes content ids. With 4 bytes, the default
 * since version 3, the envelope is Confluent's. Sources: Legacy8ByteIdHandler and KafkaSerdeHeaders of
 * Apicurio/apicurio-registry (serdes/).
 */
import { type Framed, type FramedSchema, NO_VALUE } from "./framed.ts";
import type { FramedColumn, Framing, FramingOptions } from "./framing.ts";
import { isNull, lastHeader } from "./headers.ts";
import { Interner } from "./interner.ts";

const ID_BYTES = 8;
const ENVELOPE_BYTES = 1 + ID_BYTES;
/** Larger ids are no exact numbers; registries count up from 1. */
const MAX_HIGH = 0x1fffff;

export function apicurioFraming({ part }: Pick<FramingOptions, "part">): Framing {
  const names = ["contentId", "globalId"].map((id) => new TextEncoder().encode(`apicurio.${part}.${id}`));
  const interner = new Interner();
  return ({ column, headers, rows }: FramedColumn, first: number, out: Framed) => {
    out.begin(first, rows - first, column.data);
    interner.begin();
    for (let i = 0; i < out.rows; i++) {
      const row = first + i;
      const start = column.offsets[row]!;
      const end = column.offsets[row + 1]!;
      if (isNull(column, row)) {
        out.put(i, NO_VALUE, start, start);
        continue;
      }
      const entry = headers.entries > 0 ? idHeader(names, headers, row) : -1;
      if (entry >= 0) {
        const { offsets, data } = headers.values;
        const bytes = offsets[entry + 1]! - offsets[entry]!;
        if (bytes === ID_BYTES) put(interner, out, i, data, offsets[entry]!, start, end);
        else out.refuse(i, `the header with the schema id has ${bytes} bytes, not ${ID_BYTES}`);
      } else if (end - start < ENVELOPE_BYTES)
        out.refuse(i, `${end - start} bytes are too few for magic byte and schema id`);
      else if (column.data[start] !== 0)
        out.refuse(i, `the ${part} begins with byte ${column.data[start]}, Apicurio's framing with 0`);
      else put(interner, out, i, column.data, start + 1, start + ENVELOPE_BYTES, end);
    }
    return rows;
  };
}

function idHeader(names: readonly Uint8Array[], headers: FramedColumn["headers"], row: number): number {
  for (const name of names) {
    const entry = lastHeader(headers, row, name);
    if (entry >= 0) return entry;
  }
  return -1;
}

function put(
  interner: Interner,
  out: Framed,
  row: number,
  bytes: Uint8Array,
  at: number,
  start: number,
  end: number,
): void {
  if (highOf(bytes, at) > MAX_HIGH) {
    out.refuse(row, "the schema id is above 2^53");
    return;
  }
  let slot = interner.find(bytes, at, at + ID_BYTES);
  if (slot < 0) slot = interner.add(bytes, at, at + ID_BYTES, out, read(bytes, at));
  out.put(row, slot, start, end);
}

function highOf(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

function read(bytes: Uint8Array, at: number): FramedSchema {
  return { ref: { by: "id", id: highOf(bytes, at) * 2 ** 32 + highOf(bytes, at + 4) }, message: null };
}
