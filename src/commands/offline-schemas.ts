/** Schemas that files tell, without asking a server, and why one cannot be used. */
import { SchemaSources } from "../adapters/registry/schema-sources.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { DecodeError } from "../core/codecs/record-codec.ts";
import type { DecodeSection } from "../core/config/decode-options.ts";
import type { Resolved } from "../core/config/secret.ts";
import { asFailure, Failure, failureLine } from "../core/failure/failure.ts";

export function offlineSchemas(decode: DecodeSection): SchemaSources {
  // Secrets are the registry's alone.
  const { registry: _, ...offline } = decode;
  return new SchemaSources(offline as Resolved<DecodeSection>, { clock: systemClock, chance: systemChance });
}

/** As one line: code, place in the schema, what is wrong. What is said of the file needs no second code. */
export function schemaFault(e: unknown): string {
  if (e instanceof Failure && e.code === "files.schema")
    return e.hint === null ? e.message : `${e.message}. ${e.hint}`;
  if (!(e instanceof DecodeError)) return failureLine(asFailure(e));
  return `${e.code}${e.path === "" ? "" : ` at ${e.path}`}: ${e.message}`;
}
