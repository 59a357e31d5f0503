/** Prints the sample bodies of all messages as JSON lines, for Kafka's own classes to encode (see kafka-definitions.sh). */
import { APIS, type ApiName } from "../src/adapters/kafka/wire/protocol.ts";
import type { Field, Message } from "../src/adapters/kafka/wire/spec.ts";
import { sampleBody, VARIANTS } from "../test/adapters/kafka/wire/bodies.ts";

/** Kafka's JSON form: bytes in base64; tagged fields that are left out must be named with their default. */
function json(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString("base64"));
  if (Array.isArray(value)) return `[${value.map(json).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    return `{${Object.entries(value)
      .map(([k, v]) => `${JSON.stringify(k)}:${json(v)}`)
      .join(",")}}`;
  }
  return JSON.stringify(value);
}

for (const api of Object.keys(APIS) as ApiName[]) {
  for (const kind of ["request", "response"] as const) {
    const message: Message & { fields: readonly Field[] } = APIS[api][kind];
    for (let version = message.versions[0]; version <= message.versions[1]; version++) {
      for (const variant of VARIANTS) {
        const body = sampleBody(message, version, variant);
        console.log(
          `{"api":"${api}","kind":"${kind}","version":${version},"variant":${variant},"body":${json(body)}}`,
        );
      }
    }
  }
}
