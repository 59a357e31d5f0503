"""Records of Kafka in which every field of a raw batch has its ordinary, its empty and its extreme values.
Run: python3 records.py > records.json (needs nothing beside Python; the formats are laid out here from KIP-98 and KIP-31/32).

`hex`: a fetch response's bytes, legacy messages and batches one behind the other. `rows`: what each record is, by the names of
metadata columns without prefix; null where the format has no such field or the record none.
"""
import importlib.util
import json
import pathlib
import struct
import zlib

spec = importlib.util.spec_from_file_location("ids", pathlib.Path(__file__).parent.parent / "record-id.py")
ids = importlib.util.module_from_spec(spec)
with open("/dev/null", "w") as quiet:
    import contextlib

    with contextlib.redirect_stdout(quiet):
        spec.loader.exec_module(ids)

STREAM = {"transport": "kafka", "cluster": "5L6g3nShT-eMCtK--X86sw", "topic": "orders.v2", "incarnation": 2, "partition": 7}
INGEST = 1_700_000_000_500
MAX = 2**63 - 1
MIN = -(2**63)


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc ^= b
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def varint(n):
    n = (n << 1 ^ n >> 63) & (2**64 - 1)
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def sized(b):
    return varint(-1) if b is None else varint(len(b)) + b


def wrapped(n):
    return (n + 2**63) % 2**64 - 2**63


class Corpus:
    def __init__(self):
        self.bytes = b""
        self.rows = []

    def row(self, offset, timestamp, kind, r, batch):
        self.rows.append({
            "source_transport": STREAM["transport"],
            "source_cluster": STREAM["cluster"],
            "source_topic": STREAM["topic"],
            "source_partition": STREAM["partition"],
            "source_offset": str(offset),
            "source_leader_epoch": batch.get("epoch"),
            "source_timestamp": None if kind is None else str(timestamp),
            "source_timestamp_type": kind,
            "source_key": None if r.get("key") is None else r["key"].hex(),
            "source_value": None if r.get("value") is None else r["value"].hex(),
            "source_headers": [{"key": k.hex(), "value": None if v is None else v.hex()} for k, v in r.get("headers", [])],
            "source_producer_id": None if batch.get("pid") is None else str(batch["pid"]),
            "source_producer_epoch": batch.get("pepoch"),
            "source_base_sequence": batch.get("sequence"),
            "source_transactional": batch.get("transactional", False),
            "record_id": ids.record_id(*(STREAM[k] for k in STREAM), offset),
            "ingest_ts": str(INGEST),
        })

    def v2(self, base, records, **batch):
        """records: (offset delta, timestamp, fields)"""
        first = records[0][1]
        body = b""
        for delta, timestamp, r in records:
            rec = b"\0" + varint(wrapped(timestamp - first)) + varint(delta) + sized(r.get("key")) + sized(r.get("value"))
            headers = r.get("headers", [])
            rec += varint(len(headers)) + b"".join(sized(k) + sized(v) for k, v in headers)
            body += varint(len(rec)) + rec
        append = batch.get("append")
        attributes = (8 if append is not None else 0) | (16 if batch.get("transactional") else 0)
        latest = append if append is not None else max(t for _, t, _ in records)
        none = lambda name: -1 if batch.get(name) is None else batch[name]
        tail = struct.pack(
            ">hiqqqhii", attributes, records[-1][0], first, latest, none("pid"), none("pepoch"), none("sequence"), len(records)
        ) + body
        self.bytes += struct.pack(">qiibI", base, len(tail) + 9, none("epoch"), 2, crc32c(tail)) + tail
        for delta, timestamp, r in records:
            kind = "CreateTime" if append is None else "LogAppendTime"
            self.row(base + delta, timestamp if append is None else append, kind, r, batch)

    def legacy(self, offset, magic, r, timestamp=None):
        data = lambda b: struct.pack(">i", -1) if b is None else struct.pack(">i", len(b)) + b
        rest = struct.pack(">bb", magic, 0) + (struct.pack(">q", timestamp) if magic else b"")
        rest += data(r.get("key")) + data(r.get("value"))
        self.bytes += struct.pack(">qiI", offset, len(rest) + 4, zlib.crc32(rest)) + rest
        self.row(offset, timestamp, "CreateTime" if magic else None, r, {})


c = Corpus()
# Before timestamps, and with the first ones.
c.legacy(0, 0, {"key": b"k", "value": b"magic 0"})
c.legacy(3, 0, {})
c.legacy(4, 1, {"key": b"", "value": b""}, -1)
c.legacy(5, 1, {"value": b"magic 1"}, 1_500_000_000_000)
# What a record is made of; no producer's fields, no epoch. Holes as compaction leaves them.
T = 1_700_000_000_000
c.v2(10, [
    (0, T, {}),
    (1, T + 1, {"key": b"", "value": b""}),
    (2, T - 5, {"key": None, "value": b"no key"}),
    (5, T, {"key": b"a tombstone", "value": None}),
    (6, -1, {"key": "schlüssel\u4e16\U0001f600".encode(), "value": bytes(range(256))}),
    (7, 0, {"key": b"\xff\xfe\x00", "value": b"\x00" * 3}),
    (8, T, {"value": b"v" * 5000, "headers": [(b"one", b"1")]}),
    (9, T, {"headers": [(b"b", b"1"), (b"a", b"2"), (b"b", b"3"), (b"b", b"1")]}),
    (10, T, {"headers": [(b"null", None), (b"empty", b""), (b"null", None)]}),
    (11, T, {"headers": [(b"", b"no name"), (b"", None), (b"\xc3\x28\xff", b"\xff\x00"), ("\u00e9".encode(), "\u4e16".encode())]}),
    (12, T, {"key": b"k", "value": b"v", "headers": [(b"_twg_source_offset", b"not ours"), (b"h" * 300, b"x" * 300)]}),
])
# A transaction, above what a double holds; times of every size.
c.v2(2**53 + 1, [
    (0, T, {"value": b"t"}),
    (1, 253402300799999, {"value": b"year 9999"}),
    (2, -62135596800000, {"value": b"year 1"}),
    (3, 2**53 + 1, {"value": b"beyond a double"}),
    (4, -(2**53) - 1, {"value": b"beyond a double, before 1970"}),
    (5, MAX, {"value": b"greatest"}),
    (6, MIN, {"value": b"least"}),
    (7, MIN + 1, {"value": b"next to least"}),
], epoch=7, pid=2**62 + 1, pepoch=32767, sequence=2**31 - 1, transactional=True)
# An idempotent producer's first batch under the first leader; the broker's own times.
c.v2(2**60 + 3, [(0, T, {"value": b"append"}), (1, T + 9, {"value": None, "key": b"append"})],
     epoch=0, pid=0, pepoch=0, sequence=0, append=T + 77)
c.v2(2**62, [(0, T, {"value": b"far epoch"})], epoch=2**31 - 1, pid=MAX, pepoch=1, sequence=5)
# The last offset that a batch can have: the position behind it is the greatest int64.
c.v2(MAX - 1, [(0, MAX, {"value": b"last"})])

print(json.dumps({"stream": STREAM, "ingest_ts": INGEST, "hex": c.bytes.hex(), "rows": c.rows}, indent=1))
