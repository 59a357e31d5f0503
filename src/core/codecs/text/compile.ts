/** Payloads that are UTF-8 text as they stand, such as most keys: one column. Bytes that are none are refused. */
import type { BytesBuilder, ColumnBuilder } from "../../types/column-builder.ts";
import type { ColumnField } from "../../types/table-batch.ts";
import type { Value } from "../../types/value.ts";
import { DecodeError, type DecodeFault, type Payloads, type RecordDecoder } from "../record-codec.ts";

const FIELDS: readonly ColumnField[] = [{ name: "value", type: { id: "utf8" }, nullable: false }];
const NOT_TEXT = "the bytes are no UTF-8";

export interface TextOptions {
  readonly isUtf8: (bytes: Uint8Array) => boolean;
}

export function compileText({ isUtf8 }: TextOptions): RecordDecoder {
  const text = new TextDecoder("utf-8", { ignoreBOM: true });
  return {
    fields: FIELDS,
    decode({ bytes, starts, ends, count }: Payloads, columns: readonly ColumnBuilder[], fault): number {
      const b = columns[0] as BytesBuilder;
      let rows = 0;
      b.reserve(count);
      for (let i = 0; i < count; i++) {
        const one = bytes.subarray(starts[i]!, ends[i]!);
        if (isUtf8(one)) {
          b.push(one);
          rows++;
        } else fault({ row: i, code: "decode.encoding", path: "", reason: NOT_TEXT } satisfies DecodeFault);
      }
      return rows;
    },
    value(bytes, from, to): Value {
      const one = bytes.subarray(from, to);
      if (!isUtf8(one)) throw new DecodeError("decode.encoding", "", NOT_TEXT);
      return { kind: "string", value: text.decode(one) };
    },
  };
}
