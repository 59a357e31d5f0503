/** What is wrong with a schema file is told before anything is read: its records would all be refused. */
import { SchemaSources } from "../adapters/registry/schema-sources.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { DecodeError } from "../core/codecs/record-codec.ts";
import { type DecodeSection, payloadPlan } from "../core/config/decode-options.ts";
import type { Resolved } from "../core/config/secret.ts";
import { asFailure, Failure, failureLine } from "../core/failure/failure.ts";
import { payloadDecoder } from "./payload-decoder.ts";

/** Throws files.schema for the first file of the section, or of one of its topics, that cannot be read by. */
export async function checkSchemaFiles(decode: DecodeSection, prefix: string): Promise<void> {
  const { registry: _, ...offline } = decode;
  const sources = new SchemaSources(offline as Resolved<DecodeSection>, {
    clock: systemClock,
    chance: systemChance,
  });
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
      const path = e instanceof DecodeError && e.path !== "" ? ` at ${e.path}` : "";
      const what = e instanceof DecodeError ? `${e.code}${path}: ${e.message}` : failureLine(asFailure(e));
      throw new Failure("files.schema", `no ${plan.format} payload can be read by this schema: ${what}`, {
        at,
      });
    }
  }
}
