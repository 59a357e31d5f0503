"""Orders as Avro in Confluent's envelopes, encoded by hand from the specification; and what landed of them, by pyarrow.

  avro_orders.py produce BOOTSTRAP TOPIC {"first": 0, "records": 1000, "partitions": 3, "avro_keys": false}
  avro_orders.py check TYPED_FOLDER REJECTS_FOLDER
  avro_orders.py topics BOOTSTRAP SOURCE_TOPIC REGISTRY_URL; topics of letters and of rows are named after the source's

Order n is written by schema 1, or, where n is odd, by schema 2, which has one more field. Every 50th is spoiled in one
of four ways, every 77th has no value. All fields follow from n, so that a row shows whether it is right.
"""

import glob
import json
import os
import struct
import sys
import time


def long_(n):
    z = (n << 1) ^ (n >> 63)
    out = b""
    while z > 0x7F:
        out += bytes([z & 0x7F | 0x80])
        z >>= 7
    return out + bytes([z])


def text(s):
    b = s.encode()
    return long_(len(b)) + b


def name(n):
    return f"order {n} é" if n % 5 else ""


def note(n):
    return None if n % 3 == 0 else "x" * (n % 7)


def kind(n):
    if n % 77 == 7:
        return "tombstone"
    return ["truncated", "trailing", "framing", "schema"][n // 50 % 4] if n % 50 == 13 else "good"


def value(n):
    what = kind(n)
    if what == "tombstone":
        return None
    schema = 2 if n % 2 else 1
    body = long_(n) + text(name(n)) + struct.pack("<d", n / 4)
    body += long_(0) if note(n) is None else long_(1) + text(note(n))
    if schema == 2:
        body += long_(0) if n % 4 == 1 else long_(1) + long_(n % 1000)
    if what == "truncated":
        body = body[:-1]
    if what == "trailing":
        body += b"\0"
    if what == "framing":
        return b"\x07" + body
    return b"\0" + struct.pack(">I", 99 if what == "schema" else schema) + body


def key(n, wanted):
    """Text; with "avro_keys" a record of schema 3, every 50th of the good ones cut short."""
    if not wanted.get("avro_keys"):
        return str(n).encode()
    return b"\0" + struct.pack(">I", 3) + (long_(n) if good_key(n) else b"")


def good_key(n):
    return n % 50 != 27


def produce(bootstrap, topic, wanted):
    from confluent_kafka import Producer

    p = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    counts = {}
    bad_keys = 0
    for n in range(wanted["first"], wanted["first"] + wanted["records"]):
        counts[kind(n)] = counts.get(kind(n), 0) + 1
        bad_keys += kind(n) == "good" and not good_key(n)
        p.produce(topic, key=key(n, wanted), value=value(n), partition=n % wanted["partitions"])
        p.poll(0)
    p.flush()
    good = counts.pop("good")
    tombstones = counts.pop("tombstone", 0)
    bad = sum(counts.values())
    print(json.dumps({"good": good, "tombstones": tombstones, "bad": bad, "bad_keys": bad_keys}))


def rows_of(folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = [pq.read_table(f, partitioning=None) for f in glob.glob(folder + "/*.parquet")]
    return pa.concat_tables(tables, promote_options="default").to_pylist() if tables else []


CODES = {"truncated": "decode.truncated", "trailing": "decode.trailing", "framing": "decode.framing", "schema": "decode.schema"}


def check(typed, rejects):
    wrong = []
    ids = []
    places = set()
    for r in rows_of(typed):
        n = r["id"]
        ids.append(n)
        places.add((r["_twg_source_partition"], r["_twg_source_offset"]))
        schema = 2 if n % 2 else 1
        qty = None if schema == 1 or n % 4 == 1 else n % 1000
        seen = (r["name"], r["price"], r["note"], r.get("qty"), r["_twg_schema_id"])
        if kind(n) != "good" or seen != (name(n), n / 4, note(n), qty, str(schema)):
            wrong.append(f"{n}: {seen}")
    refused = []
    for r in rows_of(rejects):
        n = int(r["_twg_source_key"])
        refused.append(n)
        places.add((r["_twg_source_partition"], r["_twg_source_offset"]))
        if r["code"] != CODES.get(kind(n)) or r["_twg_source_value"] != value(n) or r["_twg_source_topic"] is None:
            wrong.append(f"reject {n}: {r['code']} {r['message']}")
    doubled = len(ids) - len(set(ids)) + len(refused) - len(set(refused))
    print(json.dumps({"rows": len(ids), "rejects": len(refused), "places": len(places), "doubled": doubled, "wrong": wrong[:5]}))


def records(bootstrap, topic):
    """Committed ones, as librdkafka reads them."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    reader = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "orders", "enable.auto.commit": False, "enable.partition.eof": True,
        "isolation.level": "read_committed", "auto.offset.reset": "earliest", "check.crcs": True,
    })
    found = list(reader.list_topics(topic, timeout=20).topics[topic].partitions)
    reader.assign([TopicPartition(topic, p, 0) for p in found])
    ended, end = set(), time.monotonic() + 120
    while len(ended) < len(found):
        if time.monotonic() > end:
            sys.exit(f"librdkafka did not reach the end of {topic}")
        for m in reader.consume(10_000, 0.5):
            if m.error() is None:
                yield m
            elif m.error().code() == KafkaError._PARTITION_EOF:
                ended.add(m.partition())
            else:
                sys.exit(f"librdkafka: {m.error()}")
    reader.close()


def dead(bootstrap, there, source, topic):
    """What each dead letter says of itself against the record that it says it was."""
    wrong = []
    seen = []
    bad = {place for place, m in there.items() if kind(int(m.key())) not in ("good", "tombstone")}
    for m in records(bootstrap, topic):
        h = {k: v.decode() for k, v in m.headers()}
        place = (int(h["_twg_source_partition"]), int(h["_twg_source_offset"]))
        seen.append(place)
        was = there[place]
        n = int(was.key())
        told = (h["_twg_source_topic"], h["_twg_reject_stage"], h["_twg_reject_code"], int(h["_twg_source_timestamp"]))
        same = (m.key(), m.value()) == (was.key(), value(n))
        if not same or told != (source, "decode", CODES.get(kind(n)), was.timestamp()[1]) or not h["_twg_reject_message"]:
            wrong.append(f"{n}: {h}")
        if m.timestamp()[1] < was.timestamp()[1]:
            wrong.append(f"{n} is older than its record")
    return {
        "letters": len(seen), "doubled": len(seen) - len(set(seen)), "foreign": len(set(seen) - bad),
        "lost": len(bad - set(seen)), "wrong": wrong[:5],
    }


def reader_of(client, kind, topic):
    """The vendor's own deserializer, by the schemas that the registry has; a row as a dict."""
    from confluent_kafka.schema_registry.avro import AvroDeserializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    if kind == "avro":
        read = AvroDeserializer(client)
        return lambda data: read(data, SerializationContext(topic, MessageField.VALUE))
    sys.path.append(os.path.join(os.path.dirname(__file__), "../../servers/registry"))
    import row_readers

    return row_readers.reader(client, kind, topic)


def typed(bootstrap, there, topic, registry, how):
    from confluent_kafka.schema_registry import SchemaRegistryClient

    client = SchemaRegistryClient({"url": registry})
    read = reader_of(client, how, topic)
    wanted = {place for place, m in there.items() if kind(int(m.key())) in ("good", "tombstone")}
    wrong, seen, last = [], [], {}
    for m in records(bootstrap, topic):
        h = {k: v.decode() for k, v in m.headers()}
        place = (int(h["_twg_source_partition"]), int(h["_twg_source_offset"]))
        seen.append(place)
        was = there[place]
        n = int(m.key())
        if (m.key(), m.timestamp()[1], m.partition()) != (was.key(), was.timestamp()[1], place[0]):
            wrong.append(f"{n}: another key, timestamp or partition")
        if place[1] < last.get(place[0], -1):
            wrong.append(f"{n} stands behind a later one")
        last[place[0]] = place[1]
        if m.value() is None:
            if kind(n) != "tombstone":
                wrong.append(f"{n} has no value")
            continue
        row = read(m.value())
        qty = None if n % 2 == 0 or n % 4 == 1 else n % 1000
        # Python's dicts of Protobuf messages have 64-bit numbers as texts, and nothing where a field is absent.
        if (int(row["id"]), row["name"], row["price"], row.get("note"), row.get("qty")) != (n, name(n), n / 4, note(n), qty):
            wrong.append(f"{n}: {row}")
    return {
        "rows": len(seen), "doubled": len(seen) - len(set(seen)), "foreign": len(set(seen) - wanted),
        "lost": len(wanted - set(seen)), "wrong": wrong[:5],
        # The reader's client may remember it in another form.
        "schema": SchemaRegistryClient({"url": registry}).get_latest_version(topic + "-value").schema.schema_str,
    }


if sys.argv[1] == "produce":
    produce(sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))
elif sys.argv[1] == "topics":
    bootstrap, source, registry = sys.argv[2:5]
    there = {(m.partition(), m.offset()): m for m in records(bootstrap, source)}
    rows = {how: typed(bootstrap, there, f"{how}.{source}", registry, how) for how in ("avro", "protobuf", "json")}
    print(json.dumps({"dead": dead(bootstrap, there, source, "dead." + source), **rows}))
else:
    check(sys.argv[2], sys.argv[3])
