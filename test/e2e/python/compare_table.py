"""Compares a table with what librdkafka reads, value by value. Arguments: bootstrap, topic, JSON of the table's place.

Each side makes one line of text for a record (partition, offset, timestamp, its type, key, value, headers, bytes as hex)
in the order of partition and offset: librdkafka's here in Python, the table's by psql from a COPY. Prints JSON: counts,
a hash of all lines of each side, and `differences`, which is empty if all is equal.
"""

import hashlib
import json
import sys
import time

from confluent_kafka import Consumer, KafkaError, TopicPartition
from table_lines import shown, table_lines

bootstrap, topic, target = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
TYPES = {1: "CreateTime", 2: "LogAppendTime"}


def kafka_lines(partition):
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "compare", "enable.auto.commit": False, "enable.partition.eof": True,
        "isolation.level": "read_committed", "auto.offset.reset": "error", "queued.max.messages.kbytes": 100_000,
    })
    place = TopicPartition(topic, partition)
    low, _ = consumer.get_watermark_offsets(place, timeout=20)
    consumer.assign([TopicPartition(topic, partition, low)])
    end = time.monotonic() + 600
    while time.monotonic() < end:
        for m in consumer.consume(10_000, 1.0):
            if m.error():
                if m.error().code() != KafkaError._PARTITION_EOF:
                    sys.exit(f"librdkafka: {m.error()}")
                consumer.close()
                return
            kind, ms = m.timestamp()
            headers = ",".join(f"{shown(k.encode())}={shown(v)}" for k, v in m.headers() or [])
            yield f"{partition}|{m.offset()}|{ms}|{TYPES.get(kind, '-')}|{shown(m.key())}|{shown(m.value())}|{headers}"
    sys.exit("librdkafka did not reach the end of the topic")


def partitions():
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "compare"})
    found = sorted(consumer.list_topics(topic, timeout=20).topics[topic].partitions)
    consumer.close()
    return found


differences, counts, hashes = [], [0, 0], [hashlib.sha256(), hashlib.sha256()]


def counted(lines, side):
    for line in lines:
        counts[side] += 1
        hashes[side].update(line.encode() + b"\n")
        yield line


def all_kafka():
    for p in partitions():
        yield from kafka_lines(p)


ours, theirs = counted(table_lines(target, topic), 0), counted(all_kafka(), 1)
for record in theirs:
    row = next(ours, None)
    if row != record and len(differences) < 5:
        differences.append(f"librdkafka {record[:300]} table {str(row)[:300]}")
for row in ours:
    if len(differences) < 10:
        differences.append(f"only in the table: {row[:300]}")
if hashes[0].digest() != hashes[1].digest() and not differences:
    differences.append("the hashes differ")
print(json.dumps({
    "kafka_rows": counts[1], "rows": counts[0], "kafka_hash": hashes[1].hexdigest(), "table_hash": hashes[0].hexdigest(), "differences": differences,
}))
