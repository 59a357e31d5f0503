"""What the tests ask of an independent client. Usage: registry_client.py URL WANTED; prints what it wrote and what it read."""
import json
import sys

from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

MONEY = '{"type":"record","name":"Money","namespace":"acme","fields":[{"name":"cents","type":"long"}]}'
ORDER = '{"type":"record","name":"Order","namespace":"acme","fields":[{"name":"id","type":"long"},{"name":"price","type":"acme.Money"}]}'
ORDER_2 = ORDER[:-2] + ',{"name":"note","type":"string","default":""}]}'
PERSON = '{"title":"Person","type":"object","properties":{"name":{"type":"string"}}}'

client = SchemaRegistryClient({"url": sys.argv[1]})


def conf(where):
    return {"schema.id.serializer": where, "subject.name.strategy": topic_subject_name_strategy}


def record(serializer, topic, value):
    headers = []
    data = serializer(value, SerializationContext(topic, MessageField.VALUE, headers))
    return {"topic": topic, "bytes": data.hex(), "headers": [[k, v.hex()] for k, v in headers]}


def message():
    """A message whose file imports another one."""
    pool = descriptor_pool.DescriptorPool()
    field = descriptor_pb2.FieldDescriptorProto
    inner = descriptor_pb2.FileDescriptorProto(name="acme/sku.proto", package="acme", syntax="proto3")
    inner.message_type.add(name="Sku").field.add(name="code", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    outer = descriptor_pb2.FileDescriptorProto(name="acme/item.proto", package="acme", syntax="proto3", dependency=["acme/sku.proto"])
    outer.message_type.add(name="Unused")
    item = outer.message_type.add(name="Item")
    item.field.add(name="sku", number=1, type=field.TYPE_MESSAGE, type_name=".acme.Sku", label=field.LABEL_OPTIONAL)
    pool.Add(inner)
    pool.Add(outer)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("acme.Item"))
    value = kind()
    value.sku.code = "abc"
    return value


def write():
    client.register_schema("money", Schema(MONEY, "AVRO"))
    references = [SchemaReference("acme.Money", "money", 1)]
    order = {"id": 7, "price": {"cents": 250}}
    out = {"records": [], "texts": {"money": MONEY, "order": ORDER, "order_2": ORDER_2, "person": PERSON}}
    for where in (prefix_schema_id_serializer, header_schema_id_serializer):
        serializer = AvroSerializer(client, Schema(ORDER, "AVRO", references), conf=conf(where))
        try:
            out["records"].append(record(serializer, "orders", order))
        except SerializationError as e:
            # A registry that gives no GUIDs.
            if "GUID" not in str(e):
                raise
    serializer = AvroSerializer(client, Schema(ORDER_2, "AVRO", references), conf=conf(prefix_schema_id_serializer))
    out["records"].append(record(serializer, "orders", {**order, "note": "x"}))
    out["records"].append(record(JSONSerializer(PERSON, client, conf=conf(prefix_schema_id_serializer)), "people", {"name": "Ann"}))
    value = message()
    serializer = ProtobufSerializer(type(value), client, conf={"use.deprecated.format": False, **conf(prefix_schema_id_serializer)})
    out["records"].append({**record(serializer, "items", value), "payload": value.SerializeToString().hex()})
    return out


def read(wanted):
    """Schemas by id as this client sees them, and an Avro record decoded by the schema that its envelope names."""
    schemas = []
    for i in wanted["ids"]:
        s = client.get_schema(i)
        schemas.append([s.schema_type, s.schema_str, [[r.name, r.subject, r.version] for r in s.references or []]])
    context = SerializationContext("ours", MessageField.VALUE, [])
    return {"schemas": schemas, "value": AvroDeserializer(client)(bytes.fromhex(wanted["avro"]), context)}


print(json.dumps({"written": write(), "read": read(json.loads(sys.argv[2]))}))
