"""Record ids by the words of the specification alone. Run: python3 record-id.py > record-id.json"""
import hashlib
import json

DOMAIN = "twg.record-id.1"


def part(text):
    raw = text.encode()
    return len(raw).to_bytes(4, "big") + raw


def record_id(transport, cluster, topic, incarnation, partition, offset):
    parts = [DOMAIN, transport, cluster, topic, str(incarnation)]
    base = hashlib.sha256(b"".join(part(p) for p in parts)).digest()[:16]
    place = bytes(4) + partition.to_bytes(4, "big", signed=True) + offset.to_bytes(8, "big", signed=True)
    return bytes(a ^ b for a, b in zip(base, place)).hex()


CASES = [
    ("kafka", "", "a", 0, 0, 0),
    ("kafka", "", "a", 0, 0, 1),
    ("kafka", "", "a", 0, 1, 0),
    ("kafka", "", "a", 1, 0, 0),
    ("kafka", "lkc-1", "orders", 0, 3, 255),
    ("kafka", "lkc-1", "orders", 0, 3, 256),
    ("kafka", "5L6g3nShT-eMCtK--X86sw", "orders.v2_eu-west", 12, 2147483647, 9007199254740993),
    ("kafka", "5L6g3nShT-eMCtK--X86sw", "orders.v2_eu-west", 12, 65537, 4294967295),
    ("kafka", "5L6g3nShT-eMCtK--X86sw", "orders.v2_eu-west", 12, 65537, 4294967296),
    ("kafka", "c", "t", 0, 0, 9223372036854775807),
    # The border between two parts matters: these two would be one text without lengths.
    ("kafka", "ab", "c", 0, 0, 0),
    ("kafka", "a", "bc", 0, 0, 0),
    # Longer than one and two blocks of SHA-256, and not ASCII.
    ("kafka", "c" * 60, "t" * 249, 7, 5, 1234567890123),
    ("kafka", "\u00e9", "\u20ac\U0001f600", 0, 1, 2),
]
FIELDS = ["transport", "cluster", "topic", "incarnation", "partition", "offset"]

out = [{**dict(zip(FIELDS, c)), "offset": str(c[5]), "id": record_id(*c)} for c in CASES]
print(json.dumps(out, indent=2, ensure_ascii=True))
