"""A member of a consumer group. Arguments: bootstrap, topic, group. Prints `member` once it has partitions; leaves when its input ends."""

import select
import sys

from confluent_kafka import Consumer

bootstrap, topic, group = sys.argv[1:4]
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
consumer.subscribe([topic], on_assign=lambda _c, _p: print("member", flush=True))
while not select.select([sys.stdin], [], [], 0)[0]:
    consumer.poll(0.1)
consumer.close()
