"""What the tests ask of a cluster, by librdkafka's admin client. Arguments: bootstrap, command, JSON of its parameters; prints JSON."""

import json
import sys
import time

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, IsolationLevel, TopicPartition
from confluent_kafka import admin as ka

bootstrap, command, parameters = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
client = ka.AdminClient({"bootstrap.servers": bootstrap, "socket.connection.setup.timeout.ms": 3000})
READY_S = 60


def all_done(futures):
    for future in futures.values():
        future.result(60)


def partitions_of(topic):
    found = client.list_topics(topic, timeout=10).topics[topic]
    return None if found.error else sorted(found.partitions)


def create(topic, partitions=1, replicas=1, config=None):
    """Resolves when every partition has a leader and takes part."""
    all_done(client.create_topics([ka.NewTopic(topic, partitions, replicas, config=config or {})], request_timeout=30))
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        found = client.list_topics(topic, timeout=10).topics[topic]
        if not found.error and len(found.partitions) == partitions and all(p.leader >= 0 for p in found.partitions.values()):
            return {}
        time.sleep(0.1)
    raise SystemExit(f"{topic} was not ready within {READY_S} s")


def delete(topic):
    all_done(client.delete_topics([topic]))
    end = time.monotonic() + READY_S
    while partitions_of(topic) and time.monotonic() < end:
        time.sleep(0.1)
    return {}


def add_partitions(topic, total):
    all_done(client.create_partitions([ka.NewPartitions(topic, total)]))
    return {}


def alter(topic, config):
    entries = [ka.ConfigEntry(name, value, incremental_operation=ka.AlterConfigOpType.SET) for name, value in config.items()]
    all_done(client.incremental_alter_configs([ka.ConfigResource(ka.ConfigResource.Type.TOPIC, topic, incremental_configs=entries)]))
    return {}


def leaders(topic):
    found = client.list_topics(topic, timeout=10).topics[topic].partitions
    return {str(p): found[p].leader for p in found}


def replicas(topic):
    found = client.list_topics(topic, timeout=10).topics[topic].partitions
    return {str(p): found[p].replicas for p in found}


def ends(topic, committed=True):
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    asked = {TopicPartition(topic, p): ka.OffsetSpec.latest() for p in partitions_of(topic)}
    return {str(t.partition): f.result(30).offset for t, f in client.list_offsets(asked, isolation_level=level).items()}


def truncate(topic, before):
    """Removes what is below `before`, as retention would. `before`: partition -> offset."""
    all_done(client.delete_records([TopicPartition(topic, int(p), o) for p, o in before.items()]))
    return {}


def commits(topic, group):
    asked = [TopicPartition(topic, p) for p in partitions_of(topic)]
    (future,) = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, asked)]).values()
    return {str(t.partition): t.offset for t in future.result(30).topic_partitions}


def commit(topic, group, offsets):
    marks = [TopicPartition(topic, int(p), o) for p, o in offsets.items()]
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=marks, asynchronous=False)
    consumer.close()
    return {}


def scram(user, password, mechanism="SCRAM-SHA-512"):
    kind = {"SCRAM-SHA-256": ka.ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ka.ScramMechanism.SCRAM_SHA_512}[mechanism]
    info = ka.ScramCredentialInfo(kind, 4096)
    all_done(client.alter_user_scram_credentials([ka.UserScramCredentialUpsertion(user, info, password.encode())]))
    return {}


def acl(kind, name, user, operation="READ"):
    """From then on only this user may use the topic or group in this way."""
    binding = ka.AclBinding(
        ka.ResourceType[kind], name, ka.ResourcePatternType.LITERAL, f"User:{user}", "*",
        ka.AclOperation[operation], ka.AclPermissionType.ALLOW,
    )
    all_done(client.create_acls([binding]))
    return {}


def no_acls(kind, name):
    any_of = ka.AclBindingFilter(
        ka.ResourceType[kind], name, ka.ResourcePatternType.LITERAL, None, None,
        ka.AclOperation.ANY, ka.AclPermissionType.ANY,
    )
    all_done(client.delete_acls([any_of]))
    return {}


COMMANDS = [create, delete, add_partitions, alter, leaders, replicas, ends, truncate, commits, commit, scram, acl, no_acls]
print(json.dumps({c.__name__: c for c in COMMANDS}[command](**parameters)))
