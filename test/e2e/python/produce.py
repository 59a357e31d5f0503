"""Fills a topic with records of every kind that producers make. Arguments: bootstrap, topic, JSON {records, partitions, seed, pad}.

Five idempotent producers, one per compression, and two transactional ones write in turn, so batches of all kinds lie
between each other in every partition; of the transactions some are committed and some aborted, an aborted one last.
Prints JSON {visible, aborted}: how many records a reader of committed records must find, and how many it must not.
"""

import json
import random
import sys

from confluent_kafka import Producer

bootstrap, topic, wanted = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
records, partitions = wanted["records"], wanted["partitions"]
pad = "." * wanted.get("pad", 0)
chance = random.Random(wanted["seed"])
BASE = 1_750_000_000_000
CHUNK = max(50, min(2_000, records // 40))
failed = []


def producer(**more):
    return Producer({
        "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 10, "batch.size": 200_000,
        "queue.buffering.max.messages": 1_000_000, **more,
    })


def delivered(error, _message):
    if error:
        failed.append(str(error))


WORDS = ["order", "shipped", "returned", "basket", "customer", "warehouse", "invoice", "refund", "münchen", "東京"]
SHAPES = [
    json.dumps({"id": 0, "kind": chance.choice(WORDS), "note": " ".join(chance.choices(WORDS, k=chance.randint(3, 40)))})[1:]
    for _ in range(500)
]


def header_list(i):
    many = chance.randint(1, 4)
    pairs = [(chance.choice(["trace", "source", "", "kind"]), chance.choice([None, b"", b"\x00\xff", str(i).encode()]))
             for _ in range(many)]
    return pairs + [pairs[0]] if i % 3 == 0 else pairs


def put(p, i):
    draw = chance.random()
    value = None if draw < 0.02 else b"" if draw < 0.03 else f'{{"n": {i}, {SHAPES[i % 500]}{pad}'.encode()
    draw = chance.random()
    key = None if draw < 0.1 else b"" if draw < 0.11 else b"k-%d" % (i % 9973)
    headers = header_list(i) if chance.random() < 0.1 else None
    more = {} if headers is None else {"headers": headers}
    p.produce(topic, value=value, key=key, partition=i % partitions, timestamp=BASE + i * 7, on_delivery=delivered, **more)


plain = [producer(**{"compression.type": c}) for c in ["none", "gzip", "snappy", "lz4", "zstd"]]
keeps = producer(**{"transactional.id": f"{topic}-keeps", "compression.type": "lz4"})
drops = producer(**{"transactional.id": f"{topic}-drops", "compression.type": "zstd"})
for p in (keeps, drops):
    p.init_transactions(60)

visible = aborted = i = turn = 0
while visible < records:
    n = min(CHUNK, records - visible)
    kind = turn % 8
    turn += 1
    if kind == 5:
        keeps.begin_transaction()
        for _ in range(n):
            put(keeps, i)
            i += 1
        keeps.commit_transaction(60)
        visible += n
        continue
    if kind == 6:
        drops.begin_transaction()
        for _ in range(CHUNK // 2):
            put(drops, i)
            i += 1
        drops.flush(60)
        drops.abort_transaction(60)
        aborted += CHUNK // 2
        continue
    p = plain[kind % 5]
    for _ in range(n):
        put(p, i)
        i += 1
    visible += n
    p.poll(0)
    if turn % 8 == 0:
        for q in plain:
            q.flush(60)
for p in plain:
    p.flush(120)
drops.begin_transaction()
for _ in range(partitions * 3):
    put(drops, i)
    i += 1
drops.flush(60)
drops.abort_transaction(60)
aborted += partitions * 3
if failed:
    sys.exit(f"{len(failed)} records were not delivered: {failed[0]}")
print(json.dumps({"visible": visible, "aborted": aborted}))
