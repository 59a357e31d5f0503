"""All records of a topic that readers of committed records see, by librdkafka."""

import sys
import time

from confluent_kafka import Consumer, KafkaError, TopicPartition


def consumer(bootstrap):
    return Consumer({
        "bootstrap.servers": bootstrap, "group.id": "compare", "enable.auto.commit": False, "enable.partition.eof": True,
        "isolation.level": "read_committed", "auto.offset.reset": "error", "queued.max.messages.kbytes": 100_000,
        "fetch.message.max.bytes": 20_000_000, "receive.message.max.bytes": 100_000_000, "check.crcs": True,
    })


def records(bootstrap, topic):
    reader = consumer(bootstrap)
    found = sorted(reader.list_topics(topic, timeout=20).topics[topic].partitions)
    lows = {p: reader.get_watermark_offsets(TopicPartition(topic, p), timeout=20)[0] for p in found}
    reader.assign([TopicPartition(topic, p, lows[p]) for p in found])
    ended, end = set(), time.monotonic() + 600
    while len(ended) < len(found):
        if time.monotonic() > end:
            sys.exit(f"librdkafka did not reach the end of {topic}")
        for m in reader.consume(10_000, 0.5):
            if m.error():
                if m.error().code() != KafkaError._PARTITION_EOF:
                    sys.exit(f"librdkafka: {m.error()}")
                ended.add(m.partition())
                continue
            ended.discard(m.partition())
            yield m
    reader.close()
