/** What is wrong with a schema file is told before anything is read: its records would all be refused. */
import { type DecodeSection, payloadPlan } from "../core/config/decode-options.ts";
import { Failure } from "../core/failure/failure.ts";
import { offlineSchemas, schemaFault } from "./offline-schemas.ts";
import { payloadDecoder } from "./payload-decoder.ts";

/** Throws files.schema for the first file of the section, or of one of its topics, that cannot be read by. */
export async function checkSchemaFiles(decode: DecodeSection, prefix: string): Promise<void> {
  const sources = offlineSchemas(decode);
  // A topic of no name has what the section says for all.
  for (const topic of ["", ...(decode.topic ?? []).map((t) => t.name)]) {
    const plan = payloadPlan(decode, topic, "value");
    if (plan === null || plan.schemaFile === null) continue;
    const { schemaFile: at } = plan;
    try {
      const schema = await sources.table(topic, "value");
      if (schema === null) continue;
      payloadDecoder(schema, plan, null, { prefix, maxPayloadBytes: decode.max_payload_bytes });
    } catch (e) {
      throw new Failure(
        "files.schema",
        `no ${plan.format} payload can be read by this schema: ${schemaFault(e)}`,
        {
          at,
        },
      );
    }
  }
}
