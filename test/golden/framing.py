"""Envelopes as the serializers of confluent-kafka 2.16 write them. Run: python3 framing.py > framing.json"""
import json
import zlib

from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, timestamp_pb2

AVRO = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"sku","type":"string"}]}'
JSON = '{"title":"Order","type":"object","properties":{"id":{"type":"integer"}}}'
ORDER = {"id": 7, "sku": "abc"}
RANGE = descriptor_pb2.DescriptorProto.ExtensionRange
PART = descriptor_pb2.UninterpretedOption.NamePart

client = SchemaRegistryClient.new_client({"url": "mock://golden"})


def conf(where):
    return {"schema.id.serializer": where, "subject.name.strategy": topic_subject_name_strategy}


def place(kind):
    """The way from the file down to a message, by the order in the file's own descriptor."""
    d, path = kind.DESCRIPTOR, []
    while d is not None:
        above = d.containing_type
        siblings = list(d.file.message_types_by_name.values()) if above is None else list(above.nested_types)
        path.insert(0, siblings.index(d))
        d = above
    return path


def case(name, serializer, value, field=MessageField.VALUE, message=None):
    headers = []
    data = serializer(value, SerializationContext("orders", field, headers))
    return {
        "name": name,
        "part": "key" if field == MessageField.KEY else "value",
        "message": message,
        "bytes": data.hex(),
        "headers": [[k, v.hex()] for k, v in headers],
    }


def avro(where):
    return AvroSerializer(client, AVRO, conf=conf(where))


def proto(name, value, where):
    serializer = ProtobufSerializer(type(value), client, conf={"use.deprecated.format": False, **conf(where)})
    out = case(name, serializer, value, message=place(type(value)))
    out["payload"] = value.SerializeToString().hex()
    return out


cases = [
    case("avro, id before the payload", avro(prefix_schema_id_serializer), ORDER),
    case("avro, GUID in a header", avro(header_schema_id_serializer), ORDER),
    case("avro key, GUID in a header", avro(header_schema_id_serializer), ORDER, MessageField.KEY),
    case("json, id before the payload", JSONSerializer(JSON, client, conf=conf(prefix_schema_id_serializer)), {"id": 7}),
    proto("protobuf, the one message of its file", timestamp_pb2.Timestamp(seconds=5), prefix_schema_id_serializer),
    proto("protobuf, a nested message", RANGE(start=1, end=2), prefix_schema_id_serializer),
    proto("protobuf, nested in a later one", PART(name_part="a", is_extension=False), prefix_schema_id_serializer),
    proto("protobuf, GUID and indexes in a header", RANGE(start=1, end=2), header_schema_id_serializer),
]
for c, payload in zip(cases, ["0e06616263"] * 3 + [b'{"id":7}'.hex()]):
    c["payload"] = payload
text = b"payload " * 40
print(json.dumps({"cases": cases, "zlib": {"plain": text.hex(), "packed": zlib.compress(text).hex()}}, indent=1))
