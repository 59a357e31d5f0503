"""Every record of a topic as librdkafka reads it, one JSON line at the end. Arguments: bootstrap, topic, isolation, and
how many there must be at least: a broker that has just become leader may still show an end below what was acknowledged,
until the others have fetched from it. If fewer are there 30 s later, those are printed.

A record is [partition, offset, timestamp, key, value, headers]: key and value as SHA-1 of their bytes with the length
in front, or null; headers as [[name, value in hex or null]].
"""

import hashlib
import json
import sys

from confluent_kafka import Consumer, TopicPartition

bootstrap, topic, isolation = sys.argv[1:4]
at_least = int(sys.argv[4])
consumer = Consumer(
    {
        "bootstrap.servers": bootstrap,
        "group.id": f"read-{topic}",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": isolation,
        "fetch.message.max.bytes": 20000000,
        "receive.message.max.bytes": 100000000,
        "check.crcs": True,
    }
)
partitions = sorted(consumer.list_topics(topic, 30).topics[topic].partitions)
consumer.assign([TopicPartition(topic, p, 0) for p in partitions])


def digest(value):
    return None if value is None else f"{len(value)}:{hashlib.sha1(value).hexdigest()}"


records = []
ended = set()
while len(ended) < len(partitions) or len(records) < at_least:
    m = consumer.poll(30)
    if m is None:
        if len(ended) == len(partitions):
            break
        sys.exit("nothing came for 30 s")
    if m.error() is not None:
        if m.error().name() != "_PARTITION_EOF":
            sys.exit(str(m.error()))
        ended.add(m.partition())
        continue
    headers = [[name, None if value is None else value.hex()] for name, value in m.headers() or []]
    records.append([m.partition(), m.offset(), m.timestamp()[1], digest(m.key()), digest(m.value()), headers])
consumer.close()
records.sort(key=lambda r: (r[0], r[1]))
print(json.dumps(records))
