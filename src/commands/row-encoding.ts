/** How a lane writes decoded rows by a schema that the registry has. */
import type { RowEncoding } from "../adapters/kafka/sink/row-writer.ts";
import { encodeColumns } from "../core/codecs/avro/encode-columns.ts";
import { confluentEnvelope } from "../core/codecs/framing/confluent.ts";
import { encodeJsonColumns } from "../core/codecs/json/encode.ts";
import { numbersIn } from "../core/codecs/protobuf/field-numbers.ts";
import { messageOfColumns } from "../core/codecs/protobuf/message-of-columns.ts";
import { encodeProtobufRows } from "../core/codecs/protobuf/rows-of-columns.ts";
import { partsOf } from "../core/codecs/protobuf/schema-of-columns.ts";
import { Failure } from "../core/failure/failure.ts";
import type { ColumnField } from "../core/types/table-batch.ts";
import type { RowEncode, RowSchema } from "./row-schemas.ts";

/** `schema`: that of the columns, as `rowSchema` gave it. */
export function rowEncoding(
  { format, record }: RowEncode,
  { id, text }: RowSchema,
  fields: readonly ColumnField[],
): RowEncoding {
  switch (format) {
    case "avro": {
      const by = { text, references: [] };
      return { envelope: confluentEnvelope(id), encode: (table) => encodeColumns(by, table) };
    }
    case "json_schema":
      return { envelope: confluentEnvelope(id), encode: encodeJsonColumns };
    case "protobuf": {
      const schema = { format, text, references: [], id: String(id), subject: null, version: null } as const;
      const numbers = numbersIn(schema, record);
      if (numbers === null) throw new Failure("internal.bug", `a schema of ours without ${record}`);
      const message = messageOfColumns(fields, partsOf(record).name, numbers);
      return {
        envelope: confluentEnvelope(id, FIRST),
        encode: (table) => encodeProtobufRows(message, table),
      };
    }
  }
}

/** The table's message stands first in its file. */
const FIRST: readonly number[] = [0];
