"""One record in and out over one listener, by librdkafka; the topic is made if it is not there. Arguments: bootstrap, topic, JSON of client settings.
Prints the record's value; exits 1 with the client's reason if it is refused."""

import json
import sys

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

bootstrap, topic, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
reasons = []
common = {"bootstrap.servers": bootstrap, "error_cb": lambda e: reasons.append(str(e)), **settings}


def fail(what):
    sys.exit(f"{what}: {'; '.join(reasons)}")


admin = AdminClient(common)
try:
    known = admin.list_topics(timeout=8).topics
except Exception as error:  # the reason came through error_cb
    fail(error)
if topic not in known:
    for future in admin.create_topics([NewTopic(topic, 1)], request_timeout=20).values():
        future.result()
producer = Producer(common)
producer.produce(topic, value=b"hello")
if producer.flush(20):
    fail("not delivered")
consumer = Consumer({**common, "group.id": topic})
consumer.assign([TopicPartition(topic, 0, 0)])
message = consumer.poll(20)
if message is None or message.error():
    fail(f"not read: {message and message.error()}")
print(message.value().decode())
consumer.close()
