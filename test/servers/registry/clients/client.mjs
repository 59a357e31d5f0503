/** Two more independent clients. Usage: client.mjs URL WANTED; prints what they wrote and what they read. */

import { AvroSerializer, SchemaRegistryClient, SerdeType } from "@confluentinc/schemaregistry";
import { SchemaRegistry, SchemaType } from "@kafkajs/confluent-schema-registry";

const [url, wanted] = process.argv.slice(2);
const ORDER = JSON.stringify({ type: "record", name: "JsOrder", fields: [{ name: "id", type: "int" }] });
const kafkajs = new SchemaRegistry({ host: url });
const confluent = new SchemaRegistryClient({ baseURLs: [url] });

async function write() {
  const { id } = await kafkajs.register({ type: SchemaType.AVRO, schema: ORDER }, { subject: "js-value" });
  const encoded = await kafkajs.encode(id, { id: 7 });
  const serializer = new AvroSerializer(confluent, SerdeType.VALUE, {
    useLatestVersion: true,
    subjectNameStrategy: (topic) => `${topic}-value`,
  });
  const again = await serializer.serialize("js", { id: 8 });
  return { order: ORDER, records: [encoded.toString("hex"), again.toString("hex")] };
}

async function read({ id, avro, subject }) {
  return {
    decoded: await kafkajs.decode(Buffer.from(avro, "hex")),
    schema: (await confluent.getBySubjectAndId(subject, id)).schema,
  };
}

console.log(JSON.stringify({ written: await write(), read: await read(JSON.parse(wanted)) }));
process.exit(0);
