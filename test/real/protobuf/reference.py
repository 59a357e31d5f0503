"""Google's Protobuf for Python beside us: makes records by chance, and compares what landed in Parquet with what it reads itself.

Commands on standard input, one a line, answered by a line of JSON:
  make SET MESSAGE SEED COUNT FILE DAMAGED FULL  payloads by chance, each behind its length of four bytes: a share of them
                                            damaged, a share with many fields, the others with few
  compare SET MESSAGE FILE PARQUET FAULTS   FAULTS: {row: code} of the payloads that we refused
"""
import base64
import json
import math
import random
import struct
import sys
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.message import DecodeError

E9 = 10**9
INTS = {
    F.TYPE_INT32: (32, True), F.TYPE_SINT32: (32, True), F.TYPE_SFIXED32: (32, True),
    F.TYPE_UINT32: (32, False), F.TYPE_FIXED32: (32, False),
    F.TYPE_INT64: (64, True), F.TYPE_SINT64: (64, True), F.TYPE_SFIXED64: (64, True),
    F.TYPE_UINT64: (64, False), F.TYPE_FIXED64: (64, False),
}  # fmt: skip
JSON_TYPES = ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue")
WRAPPERS = {f"google.protobuf.{n}Value" for n in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")}
TEXTS = ["", "a", "order 7", "é", "日本語", "🙂 x", "\x00", "y" * 70, "z" * 300]

classes = {}


def message_class(path, name):
    if (path, name) not in classes:
        files = descriptor_pb2.FileDescriptorSet()
        with open(path, "rb") as f:
            files.ParseFromString(f.read())
        pool = descriptor_pool.DescriptorPool()
        for f in files.file:
            pool.Add(f)
        classes[path, name] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    return classes[path, name]


# --- records by chance


def whole(r, bits, signed):
    value = r.getrandbits(r.randint(1, bits))
    if signed:
        value = value - (1 << bits - 1) if r.random() < 0.3 else value >> 1
        value = max(-(1 << bits - 1), min((1 << bits - 1) - 1, value))
    return value


def scalar(r, f):
    t = f.type
    if t in INTS:
        return whole(r, *INTS[t])
    if t == F.TYPE_BOOL:
        return r.random() < 0.5
    if t == F.TYPE_STRING:
        return r.choice(TEXTS)
    if t == F.TYPE_BYTES:
        return r.randbytes(r.randint(0, 9))
    if t == F.TYPE_ENUM:
        return r.choice(f.enum_type.values).number
    odd = [0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, 1e-40]
    value = r.choice(odd) if r.random() < 0.3 else r.uniform(-1e9, 1e9)
    return struct.unpack("<f", struct.pack("<f", value))[0] if t == F.TYPE_FLOAT else value


def is_map(f):
    return f.message_type is not None and f.message_type.GetOptions().map_entry


def fill(r, message, depth, share):
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        message.seconds, message.nanos = r.randint(-9 * E9, 9 * E9), r.randint(0, E9 - 1)
        return
    if name == "google.protobuf.Duration":
        sign = r.choice([1, -1])
        message.seconds, message.nanos = sign * r.randint(0, 315_576_000_000 - 1), sign * r.randint(0, E9 - 1)
        return
    if name in JSON_TYPES:
        share = 0.4
    fields = list(message.DESCRIPTOR.fields)
    r.shuffle(fields)
    for f in fields:
        required = f.is_required
        if not required and r.random() > share:
            continue
        if f.message_type is not None and not is_map(f) and depth > 4 and not required:
            continue
        if is_map(f):
            target, value = getattr(message, f.name), f.message_type.fields_by_name["value"]
            for _ in range(r.randint(0, 3)):
                key = scalar(r, f.message_type.fields_by_name["key"])
                if value.message_type is None:
                    target[key] = scalar(r, value)
                elif depth <= 4:
                    fill(r, target[key], depth + 1, share)
        elif f.is_repeated:
            target = getattr(message, f.name)
            for _ in range(r.randint(0, 3)):
                if f.message_type is None:
                    target.append(scalar(r, f))
                else:
                    fill(r, target.add(), depth + 2, share)
        elif f.message_type is None:
            setattr(message, f.name, scalar(r, f))
        else:
            inner = getattr(message, f.name)
            inner.SetInParent()
            fill(r, inner, depth + 1, share)


def damaged(r, payload):
    b = bytearray(payload)
    kind = r.randint(0, 3)
    if kind == 0:
        return bytes(b[: r.randint(0, len(b))])
    if kind == 1 and b:
        at = r.randrange(len(b))
        return bytes(b[:at] + b[at : at + r.randint(1, 40)] + b[at:])
    for _ in range(r.randint(1, 4)):
        if b:
            b[r.randrange(len(b))] = r.choice([0, 1, 0x7F, 0x80, 0xFF, r.randrange(256)])
    return bytes(b)


def make(path, name, seed, count, out, damage, full):
    cls = message_class(path, name)
    r = random.Random(int(seed))
    large = len(cls.DESCRIPTOR.fields) > 80
    with open(out, "wb") as f:
        for _ in range(int(count)):
            message = cls()
            shares = [0.05, 0.3] if large else [0.1, 0.4, 0.8] if r.random() < float(full) else [0.01, 0.03]
            fill(r, message, 0 if not large else 3, r.choice(shares))
            payload = message.SerializePartialToString()
            if r.random() < 0.3:
                # Two writings behind each other are one message, merged.
                other = cls()
                fill(r, other, 3, 0.05)
                payload += other.SerializePartialToString()
            if r.random() < float(damage):
                payload = damaged(r, payload)
            f.write(struct.pack("<I", len(payload)) + payload)
    return {"made": int(count)}


# --- cells: what a column of the Arrow type must hold of a field


def enum_text(f, number):
    value = f.enum_type.values_by_number.get(number)
    return str(number) if value is None else value.name


def entries(m, f):
    """Of a map field, those also that the package hides among unknown fields: with fields beside key and value."""
    value = getattr(m, f.name)
    out = {k: value[k] for k in value}
    for u in unknown_fields.UnknownFieldSet(m):
        if u.field_number == f.number and u.wire_type == 2:
            entry = message_factory.GetMessageClass(f.message_type)()
            entry.ParseFromString(u.data)
            out.setdefault(entry.key, entry.value)
    return out


def nanoseconds(m):
    return m.seconds * E9 + m.nanos


def is_empty(message_type):
    """Messages that hold messages of any kind in their own way have no fields either: callers look at those before."""
    return len(message_type.fields) == 0


def json_of(f, value):
    """What JSON text says of one value of a field."""
    if f.message_type is not None:
        return json_message(value)
    if f.type == F.TYPE_ENUM:
        return enum_text(f, value)
    if f.type == F.TYPE_BYTES:
        return base64.b64encode(value).decode()
    if f.type in (F.TYPE_FLOAT, F.TYPE_DOUBLE):
        return json_float(value)
    return value


def json_float(value):
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def json_message(m):
    name = m.DESCRIPTOR.full_name
    if name == "google.protobuf.Struct":
        return {k: json_message(v) for k, v in entries(m, m.DESCRIPTOR.fields_by_name["fields"]).items()}
    if name == "google.protobuf.ListValue":
        return [json_message(v) for v in m.values]
    if name == "google.protobuf.Value":
        kind = m.WhichOneof("kind")
        if kind is None or kind == "null_value":
            return None
        value = getattr(m, kind)
        return json_float(value) if kind == "number_value" else value if kind in ("string_value", "bool_value") else json_message(value)
    if name == "google.protobuf.Timestamp":
        return ("instant", nanoseconds(m))
    if name == "google.protobuf.Duration":
        return Decimal(nanoseconds(m)) / E9
    if name in WRAPPERS:
        return json_of(m.DESCRIPTOR.fields[0], m.value)
    if m.DESCRIPTOR.GetOptions().message_set_wire_format:
        return base64.b64encode(m.SerializePartialToString()).decode()
    if is_empty(m.DESCRIPTOR):
        return True
    out = {}
    for f in m.DESCRIPTOR.fields:
        value = getattr(m, f.name)
        if is_map(f):
            item = f.message_type.fields_by_name["value"]
            pairs = [(k, json_of(item, v)) for k, v in entries(m, f).items()]
            text = f.message_type.fields_by_name["key"].type == F.TYPE_STRING
            out[f.name] = dict(pairs) if text or not pairs else [{"key": k, "value": v} for k, v in pairs]
        elif f.is_repeated:
            out[f.name] = [json_of(f, v) for v in value]
        elif not f.has_presence or m.HasField(f.name):
            out[f.name] = json_of(f, value)
    return out


def same_json(seen, wanted):
    if isinstance(wanted, tuple):
        return isinstance(seen, str) and instant_of(seen) == wanted[1]
    if isinstance(wanted, dict):
        return isinstance(seen, dict) and seen.keys() == wanted.keys() and all(same_json(seen[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list):
        if not isinstance(seen, list) or len(seen) != len(wanted):
            return False
        if wanted and isinstance(wanted[0], dict) and wanted[0].keys() == {"key", "value"}:
            key = lambda e: str(e["key"])  # noqa: E731
            seen, wanted = sorted(seen, key=key), sorted(wanted, key=key)
        return all(map(same_json, seen, wanted))
    if isinstance(wanted, float) and isinstance(seen, (int, Decimal)):
        return float(seen) == wanted
    return type(seen) is type(wanted) and seen == wanted or isinstance(wanted, Decimal) and seen == wanted


def instant_of(text):
    import datetime

    head, _, rest = text.partition(".")
    t = datetime.datetime.fromisoformat(head).replace(tzinfo=datetime.timezone.utc)
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (t - epoch) // datetime.timedelta(seconds=1) * E9 + int(rest.rstrip("Z"))


def cell(type_, f, value):
    """What to_cells gives of one value of a field in a column of the type."""
    if f.message_type is None:
        return enum_text(f, value) if f.type == F.TYPE_ENUM else value
    name = f.message_type.full_name
    if name == "google.protobuf.Timestamp" and pa.types.is_timestamp(type_):
        return nanoseconds(value)
    if name == "google.protobuf.Duration" and pa.types.is_decimal(type_):
        return Decimal(nanoseconds(value)) / E9
    if name in WRAPPERS:
        return value.value
    if f.message_type.GetOptions().message_set_wire_format:
        return value.SerializePartialToString()
    if is_empty(f.message_type):
        return True
    return row(type_, value) if pa.types.is_struct(type_) else ("json", json_message(value))


def row(type_, m):
    out = {}
    for f in m.DESCRIPTOR.fields:
        inner = type_.field(f.name).type
        value = getattr(m, f.name)
        if is_map(f):
            item = f.message_type.fields_by_name["value"]
            out[f.name] = {k: cell(inner.item_type, item, v) for k, v in entries(m, f).items()}
        elif f.is_repeated:
            out[f.name] = [cell(inner.value_type, f, v) for v in value]
        elif f.has_presence and not m.HasField(f.name):
            out[f.name] = None
        else:
            out[f.name] = cell(inner, f, value)
    return out


def to_cells(a):
    """An Arrow array as Python values: instants as whole nanoseconds, maps as pairs."""
    if isinstance(a, pa.ChunkedArray):
        a = a.combine_chunks() if a.num_chunks != 1 else a.chunk(0)
    t = a.type
    if pa.types.is_timestamp(t):
        # The zone is put into the footer by the sink, which has no part here.
        assert t.unit == "ns", t
        return a.cast(pa.int64()).to_pylist()
    if pa.types.is_struct(t):
        parts = [to_cells(a.field(i)) for i in range(t.num_fields)]
        names = [t.field(i).name for i in range(t.num_fields)]
        valid = a.is_valid().to_pylist()
        return [dict(zip(names, (p[i] for p in parts))) if valid[i] else None for i in range(len(a))]
    if pa.types.is_map(t):
        keys, items, offsets = to_cells(a.keys), to_cells(a.items), a.offsets.to_pylist()
        return [list(zip(keys[offsets[i] : offsets[i + 1]], items[offsets[i] : offsets[i + 1]])) if v else None for i, v in enumerate(a.is_valid().to_pylist())]
    if pa.types.is_list(t):
        values, offsets = to_cells(a.values), a.offsets.to_pylist()
        return [values[offsets[i] : offsets[i + 1]] if v else None for i, v in enumerate(a.is_valid().to_pylist())]
    return a.to_pylist()


def same(seen, wanted):
    if isinstance(wanted, tuple):
        return isinstance(seen, str) and same_json(json.loads(seen, parse_float=Decimal), wanted[1])
    if isinstance(wanted, dict) and isinstance(seen, list):
        return len(seen) == len(wanted) and all(k in wanted and same(v, wanted[k]) for k, v in seen)
    if isinstance(wanted, dict):
        return isinstance(seen, dict) and all(same(seen[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list):
        return isinstance(seen, list) and len(seen) == len(wanted) and all(map(same, seen, wanted))
    if isinstance(wanted, float) and isinstance(seen, float):
        # The engine that writes Parquet makes one of 0.0 and -0.0 in a dictionary.
        return seen == wanted or math.isnan(seen) and math.isnan(wanted)
    return type(seen) is type(wanted) and seen == wanted


def first_different_json(where, seen, wanted):
    if isinstance(wanted, dict) and isinstance(seen, dict) and seen.keys() == wanted.keys():
        for k in wanted:
            if not same_json(seen[k], wanted[k]):
                return first_different_json(f"{where}.{k}", seen[k], wanted[k])
    return where, seen, wanted


def first_different(where, seen, wanted):
    """The smallest part that differs."""
    if isinstance(wanted, tuple) and isinstance(seen, str):
        return first_different_json(where, json.loads(seen, parse_float=Decimal), wanted[1])
    if isinstance(wanted, dict) and isinstance(seen, dict):
        for k in wanted:
            if not same(seen[k], wanted[k]):
                return first_different(f"{where}.{k}", seen[k], wanted[k])
    if isinstance(wanted, list) and isinstance(seen, list) and len(seen) == len(wanted):
        for i, (s, w) in enumerate(zip(seen, wanted)):
            if not same(s, w):
                return first_different(f"{where}[{i}]", s, w)
    return where, seen, wanted


def compare(path, name, payloads, parquet, faults):
    cls = message_class(path, name)
    refused = {int(k): v for k, v in json.loads(open(faults).read()).items()}
    table = pq.read_table(parquet)
    table.validate(full=True)
    columns = {c: to_cells(table.column(c)) for c in table.column_names}
    record = pa.struct(list(table.schema))
    out = {"payloads": 0, "rows": 0, "both_refused": 0, "only_ours": {}, "only_theirs": 0, "cells": 0, "different": 0, "samples": []}

    def sample(*what):
        if len(out["samples"]) < 5:
            out["samples"].append([str(w)[:300] for w in what])

    with open(payloads, "rb") as f:
        n = 0
        while head := f.read(4):
            payload = f.read(struct.unpack("<I", head)[0])
            message = cls()
            try:
                message.ParseFromString(payload)
                theirs = message.IsInitialized()
            except (DecodeError, UnicodeDecodeError):
                theirs = False
            code = refused.get(n)
            if code is None and not theirs:
                out["only_theirs"] += 1
                sample("only theirs", payload.hex())
                out["rows"] += 1
            elif code is not None:
                if not theirs:
                    out["both_refused"] += 1
                else:
                    out["only_ours"][code] = out["only_ours"].get(code, 0) + 1
                    if code not in ("decode.range",):
                        sample("only ours", code, payload.hex())
            else:
                at = out["rows"]
                out["rows"] += 1
                wanted = row(record, message)
                for c, value in wanted.items():
                    out["cells"] += 1
                    if not same(columns[c][at], value):
                        out["different"] += 1
                        sample(*first_different(c, columns[c][at], value), payload.hex())
            n += 1
    out["payloads"] = n
    assert out["rows"] == table.num_rows, (out["rows"], table.num_rows)
    return out


for line in sys.stdin:
    command, *arguments = line.split()
    print(json.dumps({"make": make, "compare": compare}[command](*arguments)), flush=True)
