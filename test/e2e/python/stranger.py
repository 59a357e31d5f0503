"""A member of a group by librdkafka. Arguments: bootstrap, topic, group, JSON of more configuration.

Commits what it read, and prints it as lines `partition from next` once it is committed; `member` when it has
partitions. Leaves when its standard input ends.
"""

import json
import select
import sys

from confluent_kafka import Consumer, KafkaException, TopicPartition

bootstrap, topic, group, more = sys.argv[1:5]
read = {}
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest", **json.loads(more)})


def commit(partitions):
    marks = [TopicPartition(topic, p, read[p][1]) for p in partitions if p in read]
    if not marks:
        return
    answers = consumer.commit(offsets=marks, asynchronous=False)
    for t in answers:
        if t.error is None:
            print(t.partition, *read.pop(t.partition), flush=True)


def lost(_consumer, partitions):
    for t in partitions:
        read.pop(t.partition, None)


consumer.subscribe(
    [topic],
    on_assign=lambda _c, p: p and print("member", flush=True),
    on_revoke=lambda _c, p: commit([t.partition for t in p]),
    on_lost=lost,
)
while not select.select([sys.stdin], [], [], 0)[0]:
    for m in consumer.consume(500, 0.1):
        if m.error() is None:
            read.setdefault(m.partition(), [m.offset(), 0])[1] = m.offset() + 1
    try:
        commit(list(read))
    except KafkaException:
        pass  # while the group forms anew: with the next one, or when they are revoked
consumer.close()
