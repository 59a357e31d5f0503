"""Rows that were written by a schema of the registry, as the vendor's own deserializers read them.

  row_readers.py REGISTRY_URL < requests

A request is a line {"format": "protobuf" | "json", "topic": ..., "payloads": [hex, ...]}; the answer is a line with a list of
what each payload is. Protobuf messages are of the class that the subject's latest version describes, whatever wrote them; the
registry says what they were written by. JSON is validated against the schema that wrote it.
"""

import json
import sys

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext


def message_class(client, subject):
    import base64

    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

    text = client.get_latest_version(subject, fmt="serialized").schema.schema_str
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    name = (file.package + "." if file.package else "") + file.message_type[0].name
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def reader(client, kind, topic):
    """Takes bytes, gives a dict."""
    context = SerializationContext(topic, MessageField.VALUE)
    if kind == "json":
        read = JSONDeserializer(None, schema_registry_client=client)
        return lambda data: read(data, context)
    from google.protobuf import json_format

    read = ProtobufDeserializer(message_class(client, topic + "-value"), {"use.deprecated.format": False}, client)

    def message(data):
        m = read(data, context)
        size = m.ByteSize()
        m.DiscardUnknownFields()
        if m.ByteSize() != size:
            raise ValueError(f"fields that the schema does not have: {data.hex()}")
        return json_format.MessageToDict(m, preserving_proto_field_name=True)

    return message


if __name__ == "__main__":
    registry = SchemaRegistryClient({"url": sys.argv[1]})
    for line in sys.stdin:
        wanted = json.loads(line)
        read = reader(registry, wanted["format"], wanted["topic"])
        print(json.dumps([read(bytes.fromhex(p)) for p in wanted["payloads"]]), flush=True)
