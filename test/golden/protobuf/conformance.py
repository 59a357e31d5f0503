"""Makes conformance.json: the categories of the format's conformance suite as payloads, and what Google's implementation makes of each.

usage: python conformance.py  (needs protobuf 7.36.2; run in this folder)

A case: name, message, payload, and `canonical`: what that implementation writes after it read the payload, unknown fields left
out; null where it refuses to read it. The suite's own runner is a C++ program that no registry has built; its categories
(binary_json_conformance_suite.cc) are generated here from the same message definitions.
"""
import json
import struct

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.message import DecodeError

SETS = {
    "test_messages_proto2": "protobuf_test_messages.proto2.TestAllTypesProto2",
    "test_messages_proto3": "protobuf_test_messages.proto3.TestAllTypesProto3",
    "test_messages_edition2023": "protobuf_test_messages.editions.TestAllTypesEdition2023",
}


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def longer(n, extra):
    """A varint of more bytes than it needs."""
    b = bytearray(varint(n))
    for _ in range(extra):
        b[-1] |= 128
        b.append(0)
    return bytes(b)


def tag(number, wire):
    return varint(number << 3 | wire)


def block(b):
    return varint(len(b)) + b


def fixed32(n):
    return struct.pack("<I", n & 0xFFFFFFFF)


def fixed64(n):
    return struct.pack("<Q", n & (1 << 64) - 1)


def zigzag(n):
    return varint((n << 1) ^ (n >> 63))


MIN32, MAX32, MIN64, MAX64 = -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1
INT32 = [varint(n) for n in (0, 12345, MAX32, MIN32, 1 << 32 | 1, MAX64, MIN64, -1)] + [longer(0, 4), longer(7, 5)]
INT64 = [varint(n) for n in (0, 12345, MAX64, MIN64, -1)] + [longer(0, 4)]
UINT32 = [varint(n) for n in (0, 12345, 0xFFFFFFFF, 1 << 33 | 5)] + [longer(0, 4)]
UINT64 = [varint(n) for n in (0, 12345, (1 << 64) - 1)]
FLOATS = [0.0, 0.1, 1.7014118e38, 1e-45, -0.0, float("inf"), float("-inf"), float("nan")]
VALUES = {
    F.TYPE_DOUBLE: [struct.pack("<d", v) for v in FLOATS + [5e-324, 1.7976931348623157e308]],
    F.TYPE_FLOAT: [struct.pack("<f", v) for v in FLOATS],
    F.TYPE_INT32: INT32,
    F.TYPE_INT64: INT64,
    F.TYPE_UINT32: UINT32,
    F.TYPE_UINT64: UINT64,
    F.TYPE_SINT32: [zigzag(n) for n in (0, 12345, MAX32, MIN32)] + [varint(1 << 33 | 2)],
    F.TYPE_SINT64: [zigzag(n) for n in (0, 12345, MAX64, MIN64)],
    F.TYPE_FIXED32: [fixed32(n) for n in (0, 12345, 0xFFFFFFFF)],
    F.TYPE_FIXED64: [fixed64(n) for n in (0, 12345, -1)],
    F.TYPE_SFIXED32: [fixed32(n) for n in (0, 12345, MAX32, MIN32)],
    F.TYPE_SFIXED64: [fixed64(n) for n in (0, 12345, MAX64, MIN64)],
    F.TYPE_BOOL: [varint(n) for n in (0, 1, -1, 12345678, 1 << 62)] + [longer(0, 4), longer(1, 8)],
    F.TYPE_STRING: [block(b) for b in (b"", b"Hello world!", b"'\"?\\\x07\x08", "谷歌".encode(), "😀".encode())],
    F.TYPE_BYTES: [block(b) for b in (b"", b"Hello world!", b"\x01\x02", b"\xfb")],
    F.TYPE_ENUM: [varint(n) for n in (0, 1, 2, -1)],
    F.TYPE_MESSAGE: [block(b"")],
    F.TYPE_GROUP: [b""],
}
WIRE = {
    F.TYPE_DOUBLE: 1, F.TYPE_FIXED64: 1, F.TYPE_SFIXED64: 1, F.TYPE_FLOAT: 5, F.TYPE_FIXED32: 5, F.TYPE_SFIXED32: 5,
    F.TYPE_STRING: 2, F.TYPE_BYTES: 2, F.TYPE_MESSAGE: 2, F.TYPE_GROUP: 3,
}  # fmt: skip


def is_map(f):
    return f.type == F.TYPE_MESSAGE and f.message_type.GetOptions().map_entry


def valued(f, number, value):
    """The field with a value, tag and all."""
    wire = WIRE.get(f.type, 0)
    return tag(number, wire) + (value + tag(number, 4) if wire == 3 else value)


def field_cases(f):
    n = f.number
    if is_map(f):
        yield from map_cases(f)
        return
    values = VALUES[f.type]
    wire = WIRE.get(f.type, 0)
    for i, v in enumerate(values):
        yield f"ValidDataScalar.{f.name}[{i}]", valued(f, n, v)
    yield f"ValidData.{f.name}.several", b"".join(valued(f, n, v) for v in values)
    yield f"ValidData.{f.name}.reversed", b"".join(valued(f, n, v) for v in reversed(values))
    if f.is_repeated and wire not in (2, 3):
        yield f"ValidDataRepeated.{f.name}.packed", tag(n, 2) + block(b"".join(values))
        yield f"ValidDataRepeated.{f.name}.packedEmpty", tag(n, 2) + block(b"")
        yield f"ValidDataRepeated.{f.name}.mixed", tag(n, 2) + block(values[0]) + valued(f, n, values[1]) + tag(n, 2) + block(values[-1])
    # Each wire type, right or wrong, whole.
    for w, v in ((0, varint(150)), (1, bytes(8)), (2, block(b"\x08\x01")), (3, b"\x08\x01" + tag(n, 4)), (5, bytes(4))):
        yield f"WireType.{f.name}.{w}", tag(n, w) + v
    for w in (4, 6, 7):
        yield f"BadWireType.{f.name}.{w}", tag(n, w) + b"\x01"
    yield f"PrematureEofBeforeValue.{f.name}", tag(n, wire)
    last = values[-1] if wire != 3 else b""
    if len(last) > 0:
        yield f"PrematureEofInsideValue.{f.name}", tag(n, wire) + (last[:-1] if wire != 2 or last != b"\x00" else b"\x05")
    yield f"PrematureEofInTag.{f.name}", tag(n, wire)[:-1] + bytes([tag(n, wire)[-1] | 128])
    if wire not in (2, 3):
        yield f"PrematureEofInPackedField.{f.name}", tag(n, 2) + varint(len(values[-1]) + 1) + values[-1]
        yield f"PrematureEofInPackedFieldValue.{f.name}", tag(n, 2) + block((values[1] + values[-1])[:-1])
    if f.type == F.TYPE_STRING:
        for bad in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\xe8"):
            yield f"RejectInvalidUtf8.{f.name}.{bad.hex()}", tag(n, 2) + block(bad)
    if f.type in (F.TYPE_MESSAGE, F.TYPE_GROUP):
        yield from message_cases(f)


def framed(f, content):
    return valued(f, f.number, content if f.type == F.TYPE_GROUP else block(content))


def message_cases(f):
    inner = f.message_type.fields
    for g in inner[:6]:
        if is_map(g):
            continue
        one, two = valued(g, g.number, VALUES[g.type][0]), valued(g, g.number, VALUES[g.type][-1])
        yield f"Message.{f.name}.{g.name}", framed(f, two)
        yield f"RepeatedScalarMessageMerge.{f.name}.{g.name}", framed(f, two) + framed(f, b"") + framed(f, one)
        yield f"PrematureEofInSubmessageValue.{f.name}.{g.name}", framed(f, two[:-1])
    if len(inner) > 1 and not is_map(inner[0]) and not is_map(inner[1]):
        a = valued(inner[0], inner[0].number, VALUES[inner[0].type][-1])
        b = valued(inner[1], inner[1].number, VALUES[inner[1].type][-1])
        yield f"RepeatedScalarMessageMerge.{f.name}", framed(f, a) + framed(f, b)
    yield f"UnknownInMessage.{f.name}", framed(f, tag(123456, 2) + block(b"x"))
    yield f"EndGroupInMessage.{f.name}", framed(f, tag(99, 4))


def map_cases(f):
    key, value = f.message_type.fields_by_name["key"], f.message_type.fields_by_name["value"]
    k1, k2 = valued(key, 1, VALUES[key.type][0]), valued(key, 1, VALUES[key.type][1])
    v1, v2 = valued(value, 2, VALUES[value.type][0]), valued(value, 2, VALUES[value.type][-1])

    def entry(*parts):
        return tag(f.number, 2) + block(b"".join(parts))

    yield f"ValidDataMap.{f.name}.Default", entry(k1, v1)
    yield f"ValidDataMap.{f.name}.MissingDefault", entry()
    yield f"ValidDataMap.{f.name}.NonDefault", entry(k2, v2)
    yield f"ValidDataMap.{f.name}.Unordered", entry(v2, k2)
    yield f"ValidDataMap.{f.name}.MissingKey", entry(v2)
    yield f"ValidDataMap.{f.name}.MissingValue", entry(k2)
    yield f"ValidDataMap.{f.name}.DuplicateKey", entry(k2, v1) + entry(k1, v2) + entry(k2, v2)
    yield f"ValidDataMap.{f.name}.DuplicateKeyInMapEntry", entry(k1, k2, v2)
    yield f"ValidDataMap.{f.name}.DuplicateValueInMapEntry", entry(k2, v1, v2)
    yield f"ValidDataMap.{f.name}.UnknownInEntry", entry(k2, tag(77, 0), b"\x01", v2)
    yield f"ValidDataMap.{f.name}.WrongWireTypes", entry(tag(1, 5), bytes(4), v2) + entry(k2, tag(2, 5), bytes(4))
    yield f"PrematureEof.{f.name}", entry(k2, v2)[:-1]
    yield f"PrematureEofInEntry.{f.name}", entry((k2 + v2)[:-1])
    if value.type == F.TYPE_MESSAGE and value.message_type.fields:
        g = value.message_type.fields[0]
        a = valued(g, g.number, VALUES[g.type][-1])
        yield f"ValidDataMap.{f.name}.DuplicateValueMerge", entry(k2, tag(2, 2), block(a), tag(2, 2), block(b""))


def oneof_cases(desc):
    for o in desc.oneofs:
        fields = [f for f in o.fields]
        if len(fields) < 2:
            continue
        for f in fields:
            for g in fields:
                a = valued(f, f.number, VALUES[f.type][-1])
                b = valued(g, g.number, VALUES[g.type][0])
                yield f"ValidDataOneof.{f.name}.{g.name}", a + b
                yield f"ValidDataOneof.{f.name}.{g.name}.back", a + b + a


def other_cases():
    yield "Empty", b""
    for wire in range(4):
        yield f"IllegalZeroFieldNum.{wire}", bytes([wire]) + {0: b"\x01", 1: bytes(8), 2: b"\x01\x01", 3: b"\x08\x01\x04"}[wire]
    for name, number in (("high", 1 << 29), ("most", (1 << 29) - 1), ("higher", 1 << 32)):
        yield f"BadTag.{name}", tag(number, 0) + b"\x01"
    for extra in (1, 2, 3, 4, 5, 9):
        yield f"OverlongTag.{extra}", longer(1 << 3, extra) + b"\x01"
    for extra in (1, 3, 4, 5, 9):
        yield f"OverlongLength.{extra}", tag(9999, 2) + longer(1, extra) + b"a"
    for n in (9, 10, 11):
        yield f"OverlongVarint.{n}", tag(9999, 0) + b"\xff" * n + b"\x01"
        yield f"OverlongVarint.zero.{n}", tag(9999, 0) + b"\x80" * n + b"\x00"
        yield f"OverlongVarint.known.{n}", tag(1, 0) + b"\xff" * n + b"\x01"
    for last in (0, 1, 2, 127):
        yield f"TenthByte.{last}", tag(1, 0) + b"\xff" * 9 + bytes([last])
    for w, v in ((0, varint(-1)), (1, bytes(8)), (2, block(b"abc")), (3, tag(123456, 4)), (5, bytes(4))):
        yield f"Unknown.{w}", tag(123456, w) + v
        yield f"PrematureEofForUnknownValue.{w}", (tag(123456, w) + v)[:-1]
    yield "UnmatchedEndGroup", tag(201, 4)
    yield "UnmatchedEndGroupUnknown", tag(1234, 4)
    yield "UnmatchedEndGroupWrongNumber", tag(1234, 3) + tag(1235, 4)
    yield "UnmatchedEndGroupNested", tag(1234, 3) + tag(1235, 3) + tag(1234, 4) + tag(1235, 4)
    yield "UnknownGroup", tag(1234, 3) + tag(1, 0) + b"\x01" + tag(1235, 3) + tag(1235, 4) + tag(1234, 4)
    yield "Length.most", tag(9999, 2) + b"\xff\xff\xff\xff\x07"
    yield "Length.more", tag(9999, 2) + b"\xff\xff\xff\xff\x0f"


def main():
    cases = []
    for name, full in SETS.items():
        files = descriptor_pb2.FileDescriptorSet()
        with open(f"{name}.binpb", "rb") as f:
            files.ParseFromString(f.read())
        pool = descriptor_pool.DescriptorPool()
        for f in files.file:
            pool.Add(f)
        desc = pool.FindMessageTypeByName(full)
        cls = message_factory.GetMessageClass(desc)
        todo = list(other_cases()) + list(oneof_cases(desc))
        for f in desc.fields:
            todo += field_cases(f)
        for title, payload in todo:
            message = cls()
            try:
                message.ParseFromString(payload)
                message.DiscardUnknownFields()
                canonical = message.SerializePartialToString(deterministic=True).hex() if message.IsInitialized() else None
            except (DecodeError, UnicodeDecodeError, ValueError):
                canonical = None
            cases.append([title, payload.hex(), canonical if canonical != payload.hex() else 1])
        cases.append([full, name])
    with open("conformance.json", "w") as f:
        # One case a line; 1: the same bytes; a line with a message's name ends its cases.
        f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
    print(len(cases))


main()
