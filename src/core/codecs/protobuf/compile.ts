/** A schema and the message of it that payloads hold, to a decoder. */
import type { DescMessage, Registry } from "@bufbuild/protobuf";
import type { SchemaText } from "../../schema/resolver.ts";
import type { ColumnBuilder } from "../../types/column-builder.ts";
import type { ColumnField } from "../../types/table-batch.ts";
import type { Value } from "../../types/value.ts";
import { valueJson } from "../../types/value-json.ts";
import { DecodeError, type DecodeFault, type Payloads, type RecordDecoder } from "../record-codec.ts";
import { registryOf } from "./descriptors.ts";
import { EnumNames } from "./enum-names.ts";
import { generate } from "./generate.ts";
import { columnsOf, type MessagePlan, type PlanOptions, planOf, type Shape } from "./plan.ts";
import { ValueReader } from "./value-reader.ts";
import { ProtobufEncoder } from "./value-writer.ts";
import { emptyMessage, instant, lapse, quad, twice32, twice64, twiceBool, twiceBytes } from "./well-known.ts";
import {
  clearBits,
  copyBytes,
  groupEnd,
  isUtf8,
  lengthAt,
  ODD,
  out,
  setBits,
  skipValue,
  tagAt,
  varint64,
} from "./wire.ts";

/** What generated code calls, by the names that it uses. */
const RUNTIME: Readonly<Record<string, unknown>> = {
  ODD,
  out,
  quad,
  varint64,
  lengthAt,
  tagAt,
  skipValue,
  groupEnd,
  copyBytes,
  isUtf8,
  setBits,
  clearBits,
  instant,
  lapse,
  emptyMessage,
  twiceBool,
  twice32,
  twice64,
  twiceBytes,
};

export interface ProtobufOptions {
  /**
   * The record's message: its full name, or the path of indexes that an envelope gives (message 1, in it message 0).
   * Map entries are not counted. Absent: the first message.
   */
  readonly message?: string | readonly number[];
  /** Default null: messages in messages are structs. */
  readonly flatten?: PlanOptions["flatten"];
}

/** Runs payloads into the builders that `bind` was given. */
interface Machine {
  bind(columns: readonly ColumnBuilder[], row: number, more: number): void;
  run(bytes: Uint8Array, starts: Int32Array, ends: Int32Array, from: number, count: number): number;
  end(): number;
}

export interface ProtobufCodec {
  readonly desc: DescMessage;
  readonly plan: MessagePlan;
  /** Of flattened names. */
  readonly separator: string;
  readonly decoder: RecordDecoder;
  readonly encoder: ProtobufEncoder;
}

export function compileProtobuf(writer: SchemaText, options: ProtobufOptions = {}): RecordDecoder {
  return protobufCodec(registryOf(writer), options).decoder;
}

/** Decoder and encoder of one message. */
export function protobufCodec(
  schema: ReturnType<typeof registryOf>,
  options: ProtobufOptions,
): ProtobufCodec {
  const desc = messageOf(schema, options.message ?? [0]);
  const plans: PlanOptions = { flatten: options.flatten ?? null };
  const plan = planOf(desc, schema.registry, plans);
  const separator = plans.flatten?.separator ?? "";
  const reader = new ValueReader(plan, separator);
  const encoder = new ProtobufEncoder(plan, separator);
  const decoder = new ProtobufDecoder(plan, columnsOf(plan, plans), reader, encoder);
  return { desc, plan, separator, decoder, encoder };
}

function messageOf(
  {
    registry,
    main,
  }: { readonly registry: Registry; readonly main: { readonly messages: readonly DescMessage[] } },
  wanted: string | readonly number[],
): DescMessage {
  if (typeof wanted === "string") {
    const named = registry.getMessage(wanted);
    if (named !== undefined) return named;
    throw new DecodeError("decode.schema", "", `the schema has no message ${wanted}; it has ${known(main)}`);
  }
  let within = main.messages;
  let found: DescMessage | undefined;
  for (const i of wanted) {
    found = within[i];
    if (found === undefined) break;
    within = found.nestedMessages;
  }
  if (found !== undefined) return found;
  const why = `the schema has no message at ${JSON.stringify(wanted)}; it has ${known(main)}`;
  throw new DecodeError("decode.schema", "", why);
}

function known({ messages }: { readonly messages: readonly DescMessage[] }): string {
  const names = messages.slice(0, 5).map((m) => m.typeName);
  return names.length === 0 ? "none" : names.join(", ") + (messages.length > 5 ? ", …" : "");
}

class ProtobufDecoder implements RecordDecoder {
  readonly fields: readonly ColumnField[];
  readonly #machine: Machine;
  readonly #reader: ValueReader;
  readonly #encoder: ProtobufEncoder;

  constructor(
    plan: MessagePlan,
    fields: readonly ColumnField[],
    reader: ValueReader,
    encoder: ProtobufEncoder,
  ) {
    this.fields = fields;
    this.#reader = reader;
    this.#encoder = encoder;
    this.#machine = machineOf(plan, reader);
  }

  decode(payloads: Payloads, columns: readonly ColumnBuilder[], fault: (f: DecodeFault) => void): number {
    const { bytes, starts, ends, count } = payloads;
    const machine = this.#machine;
    const before = columns[0]?.rows ?? 0;
    machine.bind(columns, before, count);
    try {
      let at = machine.run(bytes, starts, ends, 0, count);
      while (at < count) {
        this.#odd(bytes, starts[at]!, ends[at]!, at, fault);
        at = machine.run(bytes, starts, ends, at + 1, count);
      }
    } finally {
      // Rows before a fault of ours are whole; whoever catches it may still truncate the builders.
      machine.end();
    }
    return (columns[0]?.rows ?? 0) - before;
  }

  /** A payload that the generated code left: wrong, or unusual and then as its own writer would have written it. */
  #odd(bytes: Uint8Array, from: number, to: number, row: number, fault: (f: DecodeFault) => void): void {
    let value: Value;
    try {
      value = this.#reader.read(bytes, from, to);
    } catch (e) {
      if (!(e instanceof DecodeError)) throw e;
      fault({ row, code: e.code, path: e.path, reason: e.message });
      return;
    }
    const plain = this.#encoder.encode(value);
    const end = new Int32Array([plain.length]);
    if (this.#machine.run(plain, new Int32Array(1), end, 0, 1) !== 1)
      throw new Error("a payload of our own writing is odd");
  }

  value(bytes: Uint8Array, from: number, to: number): Value {
    return this.#reader.read(bytes, from, to);
  }
}

function machineOf(plan: MessagePlan, reader: ValueReader): Machine {
  const { code, enums, jsons } = generate(plan);
  const names = enums.map((s) => {
    if (s.is !== "enum") throw new Error("not an enum");
    const table = EnumNames.of(s.desc);
    return (number: number) => table.bytes(number);
  });
  const texts = jsons.map(({ shape, depth }) => {
    return (b: Uint8Array, p: number, e: number) => jsonBytes(reader, shape, b.subarray(p, e), depth);
  });
  // Only numbers of ours are in the code, never a text of the schema.
  const make = new Function(...Object.keys(RUNTIME), "E", "J", code) as (...args: unknown[]) => Machine;
  return make(...Object.values(RUNTIME), names, texts);
}

const UTF8 = new TextEncoder();

function jsonBytes(reader: ValueReader, shape: Shape, bytes: Uint8Array, depth: number): Uint8Array {
  try {
    return UTF8.encode(valueJson(reader.part(shape, bytes, depth)));
  } catch (e) {
    if (e instanceof DecodeError) throw ODD;
    throw e;
  }
}
