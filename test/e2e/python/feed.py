"""Keeps records coming, whatever happens to the brokers. Arguments: bootstrap, topic, JSON {partitions, rate, codecs?, limit?, spoil?, pad?};
`partitions` null: the keys decide, over all partitions that there are. `spoil`: of so many records one is cut short, and one has no value. `pad`: so many
bytes more in each value, which no codec makes smaller.

Writes until its standard input is closed or, with a limit, until so many are out; each record that is acknowledged by all in-sync replicas counts.
Prints `started` after the first acknowledgement, and at the end JSON {acknowledged, failed}.
"""

import base64
import json
import os
import select
import sys
import time

from confluent_kafka import KafkaException, Producer

bootstrap, topic, wanted = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
partitions, rate, limit, spoil = wanted["partitions"], wanted["rate"], wanted.get("limit"), wanted.get("spoil")
pad = wanted.get("pad", 0)
counts = {"acknowledged": 0, "failed": 0}
producers = [
    Producer({
        "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "compression.type": codec,
        "delivery.timeout.ms": 300_000, "request.timeout.ms": 5_000, "retry.backoff.max.ms": 300,
        "socket.connection.setup.timeout.ms": 2_000, "reconnect.backoff.max.ms": 500, "log_level": 0,
        "topic.metadata.refresh.interval.ms": 2_000,
    })
    for codec in wanted.get("codecs", ["none", "gzip", "snappy", "lz4", "zstd"])
]


def delivered(error, _message):
    counts["failed" if error else "acknowledged"] += 1
    if counts["acknowledged"] == 1:
        print("started", flush=True)


def told_to_stop():
    return select.select([sys.stdin], [], [], 0)[0] and sys.stdin.read(1) == ""


def value_of(n):
    value = b'{"n": %d, "what": "order order order order%s"}' % (n, base64.b64encode(os.urandom(pad * 3 // 4)))
    if spoil is not None and n % spoil in (1, 2):
        return value[:-9] if n % spoil == 1 else None
    return value


sent, began, stop = 0, time.monotonic(), False
while not stop:
    due = int((time.monotonic() - began) * rate)
    while sent < due and (limit is None or sent < limit):
        p = producers[(sent // 50) % len(producers)]
        try:
            p.produce(topic, value=value_of(sent), key=b"%d" % (sent % 997), partition=-1 if partitions is None else sent % partitions, on_delivery=delivered)
            sent += 1
        except (BufferError, KafkaException):
            break
    for p in producers:
        p.poll(0.002)
    stop = told_to_stop() if limit is None else sent >= limit
for p in producers:
    p.flush(300)
print(json.dumps(counts), flush=True)
