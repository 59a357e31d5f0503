/**
 * The envelope of AWS Glue: 3 (header version), compression (0 none, 5 zlib), the UUID of the schema version (16 bytes),
 * payload. Inflated payloads are held in memory of their own, batch by batch.
 * Source: AWSSchemaRegistryConstants and the (de)serializers of awslabs/aws-glue-schema-registry.
 */
import { Output } from "../../compression/output.ts";
import { Failure } from "../../failure/failure.ts";
import { type Framed, type FramedSchema, NO_VALUE } from "./framed.ts";
import type { FramedColumn, Framing, FramingOptions } from "./framing.ts";
import { guidText } from "./guid.ts";
import { isNull } from "./headers.ts";
import { Interner } from "./interner.ts";

const VERSION = 3;
const PLAIN = 0;
const ZLIB = 5;
const ENVELOPE_BYTES = 18;
const UUID_AT = 2;
/** Inflated payloads end a batch here, so that a batch's memory is this and one payload more. */
const INFLATED_BYTES = 16 * 1024 * 1024;

export function glueFraming({ codecs, maxPayloadBytes }: FramingOptions): Framing {
  const interner = new Interner();
  const output = new Output();
  return (from: FramedColumn, first: number, out: Framed) => {
    const { column, rows } = from;
    out.begin(first, rows - first, column.data);
    interner.begin();
    const packed = envelopes(from, first, out, interner);
    if (!packed) return rows;
    output.shrink(INFLATED_BYTES);
    let held = 0;
    for (let i = 0; i < out.rows; i++) {
      if (held >= INFLATED_BYTES) out.rows = i;
      else held = inflated(column.data, column.offsets[first + i]! + 1, i, held);
    }
    out.bytes = output.bytes;
    // Behind those of envelopes are those of what is in them; one by one into their places it would be the square of a batch.
    out.faults.sort((a, b) => a.row - b.row);
    // Faults of rows that belong to the next batch are told there.
    while ((out.faults.at(-1)?.row ?? -1) >= out.rows) out.faults.pop();
    return first + out.rows;

    /** Copies or inflates payload `i` behind the first `at` bytes of the output; gives where it ends. */
    function inflated(data: Uint8Array, compressionAt: number, i: number, at: number): number {
      if (out.slots[i]! < 0) return at;
      const start = out.starts[i]!;
      const end = out.ends[i]!;
      output.begin(at, maxPayloadBytes);
      try {
        if (data[compressionAt] === ZLIB) codecs.zlib(data, start, end, output);
        else output.append(data.subarray(start, end));
      } catch (e) {
        if (!(e instanceof Failure)) throw e;
        out.refuse(i, `the payload cannot be inflated: ${e.message}`);
        return at;
      }
      out.put(i, out.slots[i]!, at, output.end);
      return output.end;
    }
  };
}

/** True: some payload is compressed. */
function envelopes({ column }: FramedColumn, first: number, out: Framed, interner: Interner): boolean {
  const { data, offsets } = column;
  let packed = false;
  for (let i = 0; i < out.rows; i++) {
    const row = first + i;
    const start = offsets[row]!;
    const end = offsets[row + 1]!;
    const at = start + UUID_AT;
    if (isNull(column, row)) out.put(i, NO_VALUE, start, start);
    else if (end - start < ENVELOPE_BYTES)
      out.refuse(i, `${end - start} bytes are too few for Glue's header of ${ENVELOPE_BYTES}`);
    else if (data[start] !== VERSION)
      out.refuse(i, `begins with byte ${data[start]}, Glue's framing with ${VERSION}`);
    else if (data[start + 1] !== PLAIN && data[start + 1] !== ZLIB)
      out.refuse(i, `compression byte ${data[start + 1]}, known are ${PLAIN} (none) and ${ZLIB} (zlib)`);
    else {
      packed ||= data[start + 1] === ZLIB;
      let slot = interner.find(data, at, start + ENVELOPE_BYTES);
      if (slot < 0) slot = interner.add(data, at, start + ENVELOPE_BYTES, out, schemaAt(data, at));
      out.put(i, slot, start + ENVELOPE_BYTES, end);
    }
  }
  return packed;
}

function schemaAt(data: Uint8Array, at: number): FramedSchema {
  return { ref: { by: "guid", guid: guidText(data, at) }, message: null };
}
