"""A transaction that stays open until it is told its end. Arguments: bootstrap, topic, how many records, codec.

Prints `open` when its records are in the log; then a line on standard input, `commit` or `abort`, ends it.
"""

import sys

from confluent_kafka import Producer

bootstrap, topic, count, codec = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-open", "compression.type": codec, "log_level": 0})
producer.init_transactions(60)
producer.begin_transaction()
for i in range(count):
    producer.produce(topic, value=b"in transaction %d " % i * 8, partition=0)
producer.flush(60)
print("open", flush=True)
if sys.stdin.readline().strip() == "commit":
    producer.commit_transaction(60)
else:
    producer.abort_transaction(60)
print("{}", flush=True)
