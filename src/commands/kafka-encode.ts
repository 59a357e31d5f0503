/** What a row of a table is as the value of a record, as far as the configuration says it. */
import { filledName } from "../adapters/kafka/sink/settings.ts";
import { recordNameOf } from "../core/codecs/avro/schema-of-columns.ts";
import type { LaneEncode } from "./lane-config.ts";
import type { RowEncode } from "./row-schemas.ts";

interface Registry {
  readonly url: readonly string[];
}

/** A Kafka sink, with its secrets or before. */
interface EncodedSink {
  readonly receives: string;
  readonly topic: string;
  readonly encode?:
    | {
        readonly format: "json" | RowEncode["format"];
        readonly subject: string;
        readonly record?: string | undefined;
        readonly register: boolean;
        readonly registry?: Registry | undefined;
      }
    | undefined;
}

interface EncodeConfig {
  readonly decode: { readonly registry?: Registry | undefined } | null;
}

/** Null: records go as they are. The topic of decoded rows has no braces in it. */
export function encodeOf({ receives, encode, topic }: EncodedSink): LaneEncode | null {
  if (receives !== "decoded" || encode === undefined) return null;
  const { format, subject, record } = encode;
  if (format === "json") return { format };
  return { format, subject: filledName(subject, { topic }), record: record ?? recordNameOf(topic) };
}

const NAMES = { avro: "Avro", protobuf: "Protobuf", json_schema: "JSON" } as const;

/** Whether names of columns are only what such formats have: letters, digits and _. */
export function wantsPlainNames(sink: {
  readonly encode?: { readonly format: string } | undefined;
}): boolean {
  return sink.encode?.format === "avro" || sink.encode?.format === "protobuf";
}

/** For people. */
export function encodingText(config: EncodeConfig, sink: EncodedSink): string {
  const encoding = encodeOf(sink);
  if (encoding === null) return "";
  if (encoding.format === "json") return " as JSON";
  const registry = sink.encode?.registry ?? config.decode?.registry;
  const how = sink.encode?.register === false ? "there under" : "registered under";
  return ` as ${NAMES[encoding.format]}, ${encoding.record}, by the schema ${how} ${encoding.subject} at ${registry?.url.join(", ") ?? "no registry"}`;
}
