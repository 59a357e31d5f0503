/**
 * What a registry's answer means, classified in one place. The question that decides: is it the registry's word that
 * there is no such schema (a verdict, on which records are refused), or is nothing known yet (whoever waits waits on)?
 */
import type { Code } from "../../core/failure/codes.ts";
import { Failure } from "../../core/failure/failure.ts";

export interface Asked {
  /** "schema id 7", "the latest version of orders-value". */
  readonly what: string;
  /** URL, without anything secret. */
  readonly at: string;
  /** Of the configuration. */
  readonly section: string;
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** Subject, version and schema not found (Confluent's interface, "Errors"). Other texts of 404 come from other servers. */
const NOT_FOUND: ReadonlyMap<unknown, Code> = new Map<unknown, Code>([
  [40401, "registry.unknown_subject"],
  [40402, "registry.unknown_subject"],
  [40403, "registry.unknown_schema"],
]);

/** Of any status but 200. `said`: the registry's own words, cleared of secrets. */
export function refusal(status: number, body: JsonObject | null, said: string, asked: Asked): Failure {
  const { what, at, section } = asked;
  const fail = (code: Code, text: string, hint?: string): Failure => {
    const words = said === "" ? "" : `: ${said}`;
    return new Failure(code, `${what}: ${text}${words}`, { at, ...(hint === undefined ? {} : { hint }) });
  };
  if (status === 401 || status === 403)
    return fail(
      "registry.denied",
      `the registry answered ${status}`,
      `Check the login of [${section}], and that it may read`,
    );
  if (status === 404) {
    const code = NOT_FOUND.get(body?.["error_code"]);
    if (code !== undefined) return fail(code, "the registry has none");
    const hint = `${section}.url: is the path right? A registry's own 404 names an error_code`;
    return fail(
      "registry.answer_invalid",
      "no registry answered, but a server that knows no such path",
      hint,
    );
  }
  if (status === 409) return fail("registry.incompatible", "the registry refused it as incompatible");
  // 408 and 429 pass; so do all faults of the server itself (50001 backend, 50002 time-out, 50003 no leader).
  if (status >= 500 || status === 429 || status === 408)
    return fail("registry.unavailable", `the registry answered ${status}`);
  if (status === 405) {
    const hint = `${section}.url: is the path right?`;
    return fail("registry.answer_invalid", `the server answered ${status}`, hint);
  }
  // 422: a schema, a subject or a version that is not valid; whatever else the registry holds to be our fault.
  if (body?.["error_code"] !== undefined || status === 422)
    return fail("registry.refused", `the registry answered ${status}`);
  return fail(
    "registry.answer_invalid",
    `the server answered ${status}`,
    `${section}.url: is it the registry?`,
  );
}

export function notRegistry(what: string, asked: Asked): Failure {
  return new Failure("registry.answer_invalid", `${asked.what}: the server sent ${what}`, {
    at: asked.at,
    hint: `${asked.section}.url: is it the registry, and not a page for people?`,
  });
}

/** The JSON of an answer; undefined where it is none. */
export function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
