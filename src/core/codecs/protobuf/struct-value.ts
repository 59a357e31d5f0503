/**
 * google.protobuf.Struct, Value and ListValue are JSON by themselves: a map, anything, a list. Both ways.
 *
 *   Struct { map<string, Value> fields = 1 }     ListValue { repeated Value values = 1 }
 *   Value { oneof { null 1 (enum), number 2 (double), string 3, bool 4, Struct 5, ListValue 6 } }
 */
import type { Value } from "../../types/value.ts";
import { Cursor } from "./cursor.ts";
import { Sink } from "./sink.ts";
import { MAX_DEPTH } from "./wire.ts";

const STRUCT = "google.protobuf.Struct";
const LIST = "google.protobuf.ListValue";
const UTF8 = new TextEncoder();
const NULL: Value = { kind: "null" };

type Inner = "struct" | "value" | "list";

const innerOf = (type: string): Inner => (type === STRUCT ? "struct" : type === LIST ? "list" : "value");

/** `c`: the content of the message at `depth`. A Value that holds nothing is null. */
export function structValue(type: string, c: Cursor, depth: number): Value {
  return read(innerOf(type), [c], depth);
}

/** Pieces of one message: what is given twice merges. */
function read(inner: Inner, pieces: readonly Cursor[], depth: number): Value {
  const [first] = pieces;
  if (depth > MAX_DEPTH) first?.path.refuse("decode.depth", `messages more than ${MAX_DEPTH} deep`);
  if (inner === "struct") return readStruct(pieces, depth);
  return inner === "list" ? readList(pieces, depth) : readValue(pieces, depth);
}

const within = (c: Cursor, block: Uint8Array) => new Cursor(block, 0, block.length, c.path);

function readStruct(pieces: readonly Cursor[], depth: number): Value {
  const entries = new Map<string, Value>();
  for (const c of pieces) {
    while (!c.done) {
      const tag = c.tag();
      if (tag.number !== 1 || tag.wire !== 2) c.skip(tag, depth);
      else readEntry(within(c, c.block()), depth, entries);
    }
  }
  return {
    kind: "map",
    entries: [...entries].map(([key, value]) => [{ kind: "string", value: key }, value]),
  };
}

function readEntry(c: Cursor, depth: number, entries: Map<string, Value>): void {
  let key = "";
  const values: Cursor[] = [];
  while (!c.done) {
    const tag = c.tag();
    if (tag.number === 1 && tag.wire === 2) key = c.text();
    else if (tag.number === 2 && tag.wire === 2) values.push(within(c, c.block()));
    else c.skip(tag, depth);
  }
  entries.set(key, read("value", values, depth + 1));
}

function readList(pieces: readonly Cursor[], depth: number): Value {
  const items: Value[] = [];
  for (const c of pieces) {
    while (!c.done) {
      const tag = c.tag();
      if (tag.number !== 1 || tag.wire !== 2) c.skip(tag, depth);
      else items.push(read("value", [within(c, c.block())], depth + 1));
    }
  }
  return { kind: "list", items };
}

function readValue(pieces: readonly Cursor[], depth: number): Value {
  let value: Value = NULL;
  let open = null as { readonly number: number; readonly pieces: Cursor[] } | null;
  for (const c of pieces) {
    while (!c.done) {
      const tag = c.tag();
      if ((tag.number === 5 || tag.number === 6) && tag.wire === 2) {
        const block = within(c, c.block());
        if (open?.number === tag.number) open.pieces.push(block);
        else open = { number: tag.number, pieces: [block] };
        continue;
      }
      const plain = readPlain(tag, c);
      if (plain === null) c.skip(tag, depth);
      else {
        value = plain;
        open = null;
      }
    }
  }
  return open === null ? value : read(open.number === 5 ? "struct" : "list", open.pieces, depth + 1);
}

function readPlain(tag: { readonly number: number; readonly wire: number }, c: Cursor): Value | null {
  if (tag.number === 1 && tag.wire === 0) {
    c.varint("null_value");
    return NULL;
  }
  if (tag.number === 2 && tag.wire === 1) return { kind: "double", value: c.fixed(8).getFloat64(0, true) };
  if (tag.number === 3 && tag.wire === 2) return { kind: "string", value: c.text() };
  if (tag.number === 4 && tag.wire === 0) return { kind: "bool", value: c.varint("bool_value") !== 0n };
  return null;
}

/** Null: the Value is not of that type. */
export function structBytes(type: string, value: Value): Uint8Array | null {
  return write(innerOf(type), value);
}

function write(inner: Inner, value: Value): Uint8Array | null {
  const sink = new Sink();
  if (inner === "struct") {
    if (value.kind !== "map") return null;
    for (const [key, item] of value.entries) {
      const content = write("value", item);
      if (key.kind !== "string" || content === null) return null;
      const entry = new Sink();
      entry.tag(1, 2);
      entry.block(UTF8.encode(key.value));
      entry.tag(2, 2);
      entry.block(content);
      sink.tag(1, 2);
      sink.block(entry.take());
    }
    return sink.take();
  }
  if (inner === "value") return writeValue(value, sink);
  if (value.kind !== "list") return null;
  for (const item of value.items) {
    const content = write("value", item);
    if (content === null) return null;
    sink.tag(1, 2);
    sink.block(content);
  }
  return sink.take();
}

function writeValue(value: Value, sink: Sink): Uint8Array | null {
  switch (value.kind) {
    case "null":
      sink.tag(1, 0);
      sink.varint(0n);
      return sink.take();
    case "double":
      sink.tag(2, 1);
      sink.fixed(8, (v) => v.setFloat64(0, value.value, true));
      return sink.take();
    case "string":
      sink.tag(3, 2);
      sink.block(UTF8.encode(value.value));
      return sink.take();
    case "bool":
      sink.tag(4, 0);
      sink.varint(value.value ? 1n : 0n);
      return sink.take();
    case "map":
    case "list": {
      const content = write(value.kind === "map" ? "struct" : "list", value);
      if (content === null) return null;
      sink.tag(value.kind === "map" ? 5 : 6, 2);
      sink.block(content);
      return sink.take();
    }
    default:
      return null;
  }
}
