/**
 * From references to values. The backends are a port: folders and the environment are asked by
 * `adapters/secrets`. Calling it again re-reads everything, which is what SIGHUP does.
 */
import type { Code } from "../failure/codes.ts";
import type { ConfigPath, Problem } from "./problem.ts";
import { pathText, quoted } from "./problem.ts";
import { FileRef, type Resolved, Secret, SecretRef } from "./secret.ts";

export type Lookup =
  | { readonly state: "present"; readonly secret: Secret }
  | { readonly state: "empty" }
  | { readonly state: "missing" }
  /** There, but no use: the reason says why, without the value. */
  | { readonly state: "unreadable"; readonly reason: string };

export interface SecretBackend {
  /** `directory`, `environment`; shown to people. */
  readonly name: string;
  /** Where this backend looks for the secret: a file path, a variable's name. */
  place(secret: string): string;
  lookup(secret: string): Promise<Lookup>;
}

export interface SecretSources {
  /** Asked in order; the first that has the secret, be it empty or unreadable, decides. */
  readonly backends: readonly SecretBackend[];
  readFile(path: string): Promise<Lookup>;
}

export interface FoundRef {
  readonly path: ConfigPath;
  readonly ref: SecretRef | FileRef;
}

export interface RefStatus {
  readonly path: string;
  /** Name of the secret, or path of the file. */
  readonly name: string;
  /** The backend that decided; the first one that was asked where none has it. */
  readonly backend: string;
  readonly place: string;
  readonly state: Lookup["state"];
  readonly reason: string;
}

export interface Asked {
  readonly found: FoundRef;
  readonly status: RefStatus;
  readonly lookup: Lookup;
}

/** Every reference in a configuration value, in reading order. */
export function collectRefs(value: unknown, base: ConfigPath = []): FoundRef[] {
  if (value instanceof SecretRef || value instanceof FileRef) return [{ path: base, ref: value }];
  if (value instanceof Secret || typeof value !== "object" || value === null) return [];
  const entries: Iterable<[string | number, unknown]> = Array.isArray(value)
    ? value.entries()
    : Object.entries(value);
  return [...entries].flatMap(([key, child]) => collectRefs(child, [...base, key]));
}

export async function askRefs(refs: readonly FoundRef[], sources: SecretSources): Promise<Asked[]> {
  return Promise.all(refs.map((found) => ask(found, sources)));
}

async function ask(found: FoundRef, sources: SecretSources): Promise<Asked> {
  const path = pathText(found.path);
  const { ref } = found;
  const answer = (lookup: Lookup, name: string, backend: string, place: string): Asked => {
    const reason = lookup.state === "unreadable" ? lookup.reason : "";
    return { found, lookup, status: { path, name, backend, place, state: lookup.state, reason } };
  };
  if (ref instanceof FileRef) return answer(await sources.readFile(ref.path), ref.path, "file", ref.path);
  for (const backend of sources.backends) {
    const lookup = await backend.lookup(ref.name);
    if (lookup.state !== "missing") return answer(lookup, ref.name, backend.name, backend.place(ref.name));
  }
  const names = sources.backends.map((b) => b.name).join(", ");
  const places = sources.backends.map((b) => b.place(ref.name)).join(", ");
  return answer({ state: "missing" }, ref.name, names, places);
}

const CODE_OF: Readonly<Record<Exclude<Lookup["state"], "present">, Code>> = {
  missing: "secrets.missing",
  empty: "secrets.empty",
  unreadable: "secrets.unreadable",
};

/** One problem per reference that has no value. */
export function refProblems(
  asked: readonly Asked[],
  file: string,
  lineOf: (path: ConfigPath) => number,
): Problem[] {
  return asked.flatMap(({ found, status }) => {
    if (status.state === "present") return [];
    const what =
      found.ref instanceof FileRef ? `the file ${quoted(status.name)}` : `the secret ${quoted(status.name)}`;
    const hint =
      status.state === "missing" ? `looked for ${status.place}` : `${status.place}${reasonText(status)}`;
    return [
      {
        code: CODE_OF[status.state],
        file,
        line: lineOf(found.path),
        path: status.path,
        seen: `${what}, which is ${status.state}`,
        allowed: "a reference that a backend can answer",
        hint,
      },
    ];
  });
}

function reasonText(status: RefStatus): string {
  return status.reason === "" ? "" : ` ${status.reason}`;
}

/** A copy with the references replaced. Each must have been asked and present. */
export function replaceRefs<T>(value: T, asked: readonly Asked[]): Resolved<T> {
  const values = new Map<unknown, Secret>();
  for (const { found, lookup } of asked) if (lookup.state === "present") values.set(found.ref, lookup.secret);
  return copied(value, values) as Resolved<T>;
}

function copied(value: unknown, values: ReadonlyMap<unknown, Secret>): unknown {
  if (value instanceof SecretRef || value instanceof FileRef) return values.get(value) ?? value;
  if (value instanceof Secret || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((v) => copied(v, values));
  if (Object.getPrototypeOf(value) !== Object.prototype && Object.getPrototypeOf(value) !== null)
    return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, copied(v, values)]));
}
