/**
 * Codes of schema sources. Those that may be retried say that nothing is known of the schema yet: whoever waits for it
 * waits on, and no record is refused for them. The others are verdicts.
 */
import { spec } from "./code-spec.ts";

export const REGISTRY_CODES = {
  "registry.unreachable": spec(
    "environment",
    true,
    "No registry at the configured URLs could be asked. Decoding waits for it; raw records land all the same.",
  ),
  "registry.unavailable": spec(
    "environment",
    true,
    "The registry answered that it cannot now (429, 5xx). It is asked again with growing pauses.",
  ),
  "registry.denied": spec(
    "environment",
    true,
    "The registry refused our credentials or rights (401, 403). Decoding waits until somebody mends them.",
  ),
  "registry.answer_invalid": spec(
    "environment",
    true,
    "What answered at the registry's URL is no registry: a page for people, a redirect, a wrong path.",
  ),
  "registry.unknown_schema": spec("runtime", false, "The registry answered that it has no such schema."),
  "registry.unknown_subject": spec(
    "runtime",
    false,
    "The registry answered that it has no such subject, or no such version of it. Check decode.subject_strategy.",
  ),
  "registry.schema_invalid": spec(
    "runtime",
    false,
    "A schema cannot be used: of an unknown type, with a circle of references, or above a limit of its size.",
  ),
  "registry.incompatible": spec(
    "runtime",
    false,
    "The registry refused to register a schema: it breaks the compatibility rule of its subject (409).",
  ),
  "registry.refused": spec(
    "runtime",
    false,
    "The registry does not accept a request, such as a schema that it cannot read (422); its words are in the message.",
  ),
  "registry.folder": spec(
    "config",
    true,
    "The folder of schemas, its index or the schema file cannot be read, or is not what it should be. It is read anew when it is asked again.",
  ),
} as const;
