"""Leaves a compacted topic with every kind of hole. Arguments: bootstrap, topic, which must exist with compaction, records.

As many records, of a tenth as many keys, in all codecs and in transactions, some aborted, then single `tick` records until the log has been
cleaned: until fewer than half of the offsets still hold a record. Prints JSON {end, left}.
"""

import json
import sys
import time

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

bootstrap, topic, records = sys.argv[1], sys.argv[2], int(sys.argv[3])
each = records // 10
common = {"bootstrap.servers": bootstrap, "log_level": 0}
producers = [Producer({**common, "compression.type": c, "linger.ms": 50, "enable.idempotence": True}) for c in ["none", "gzip", "snappy", "lz4", "zstd"]]
for turn in range(10):
    p = producers[turn % 5]
    for i in range(each):
        value = None if turn == 9 and i < 3 else b"value %d of turn %d " % (i, turn) * 6
        # Later turns leave holes of every length in earlier ones: half of the keys move on by half of their number.
        p.produce(topic, key=b"key-%d" % (i if turn % 2 else i + each // 2), value=value, partition=0)
        if i % 10_000 == 9_999:
            p.flush(30)
    p.flush(30)
tx = Producer({**common, "transactional.id": topic, "compression.type": "lz4"})
tx.init_transactions(60)
for turn in range(6):
    tx.begin_transaction()
    for i in range(max(10, each // 10)):
        tx.produce(topic, key=b"tx-%d" % (i % 3), value=b"transaction %d " % turn * 6, partition=0)
    tx.flush(30)
    tx.abort_transaction(60) if turn % 3 == 1 else tx.commit_transaction(60)


def left():
    ended = False
    consumer = Consumer({**common, "group.id": "left", "enable.partition.eof": True, "isolation.level": "read_uncommitted"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    n, end = 0, 0
    while not ended:
        for m in consumer.consume(1000, 0.2):
            if m.error() and m.error().code() == KafkaError._PARTITION_EOF:
                ended, end = True, m.offset()
            elif not m.error():
                n += 1
    consumer.close()
    return n, end


for tick in range(400):
    producers[0].produce(topic, key=b"tick", value=b"tick %d" % tick, partition=0)
    producers[0].flush(30)
    time.sleep(0.1)
    if tick % 10 == 9:
        n, end = left()
        if n < end / 4:
            print(json.dumps({"end": end, "left": n}))
            sys.exit(0)
sys.exit("the log was not cleaned")
