/**
 * Framing: the envelope before a payload that says by which schema it was written. It is apart from the format, and it
 * destroys nothing: columns are read, payloads are places in them.
 */
import type { Codecs } from "../../compression/codec.ts";
import type { FramingName } from "../../config/decode-options.ts";
import type { BytesColumn, HeadersColumn } from "../../records/raw-batch.ts";
import { apicurioFraming } from "./apicurio.ts";
import { confluentFraming } from "./confluent.ts";
import { type Framed, NO_VALUE } from "./framed.ts";
import { glueFraming } from "./glue.ts";
import { isNull } from "./headers.ts";

export interface FramingOptions {
  /** Which part of the record it is: headers have a name for each. */
  readonly part: "key" | "value";
  /** Envelopes of Protobuf say which message of the file was written. */
  readonly protobuf: boolean;
  /** Most bytes of one inflated payload. */
  readonly maxPayloadBytes: number;
  /** For what has to be inflated. */
  readonly codecs: Pick<Codecs, "zlib">;
}

export interface FramedColumn {
  readonly column: BytesColumn;
  readonly headers: HeadersColumn;
  readonly rows: number;
}

/** Reads the envelopes from row `first` on into `out`; gives the row to go on from, `rows` when all are done. */
export type Framing = (from: FramedColumn, first: number, out: Framed) => number;

export function framingOf(name: FramingName, options: FramingOptions): Framing {
  switch (name) {
    case "none":
      return plainFraming;
    case "confluent":
      return confluentFraming(options);
    case "apicurio":
      return apicurioFraming(options);
    case "glue":
      return glueFraming(options);
  }
}

/** The whole key or value is the payload; its schema is the configured one. */
function plainFraming({ column, rows }: FramedColumn, first: number, out: Framed): number {
  const { offsets } = column;
  out.begin(first, rows - first, column.data);
  out.schemas.push({ ref: { by: "default" }, message: null });
  for (let i = 0; i < out.rows; i++) {
    const row = first + i;
    out.put(i, isNull(column, row) ? NO_VALUE : 0, offsets[row]!, offsets[row + 1]!);
  }
  return rows;
}
