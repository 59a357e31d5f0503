/**
 * Schemas of a registry with Confluent's interface. What it answered once is remembered: schemas by id for good, the
 * latest version of a subject for a while, and for a shorter while that there is no such schema. However many ask for the
 * same, one question is under way.
 */
import { asFailure, Failure } from "../../core/failure/failure.ts";
import type { SchemaRef, SchemaResolver, SchemaText } from "../../core/schema/resolver.ts";
import type { Clock } from "../../core/time/clock.ts";
import { type Asked, isObject, notRegistry } from "./answers.ts";
import { BoundedCache } from "./bounded-cache.ts";
import { resolveReferences } from "./references.ts";
import { type RegistryParts, RegistryRequests } from "./requests.ts";
import {
  invalid,
  type NamedReference,
  type NewSchema,
  readSchema,
  type SchemaAnswer,
  schemaBody,
  whole,
} from "./schema-answer.ts";
import type { RegistrySettings } from "./settings.ts";

/** Rough bytes of a failure that is remembered. */
const FAILURE_BYTES = 1024;
const GRACE_PAUSE_MS = 250;
/** A table does not grow so often. */
const MAX_VERSIONS = 1000;

export interface Registered {
  readonly id: number;
  /** Newer registries give one. */
  readonly guid: string | null;
}

type Remembered = { readonly schema: SchemaText } | { readonly failure: Failure };

export class RegistryClient implements SchemaResolver {
  readonly #requests: RegistryRequests;
  #settings: RegistrySettings;
  readonly #clock: Clock;
  readonly #schemas: BoundedCache<Remembered>;
  /** Single versions of subjects, as references name them. */
  readonly #versions: BoundedCache<SchemaAnswer>;
  readonly #registered: BoundedCache<Registered>;
  readonly #flights = new Map<string, Promise<unknown>>();

  constructor(settings: RegistrySettings, parts: RegistryParts) {
    this.#requests = new RegistryRequests(settings, parts);
    this.#settings = settings;
    this.#clock = parts.clock;
    const { cacheBytes } = settings;
    this.#schemas = new BoundedCache(cacheBytes / 2);
    this.#versions = new BoundedCache(cacheBytes / 4);
    this.#registered = new BoundedCache(cacheBytes / 4);
  }

  async schema(ref: SchemaRef): Promise<SchemaText> {
    switch (ref.by) {
      case "id": {
        const { id } = ref;
        return await this.#remembered(`id ${id}`, Number.POSITIVE_INFINITY, async () => {
          const answer = await this.#patient(`/schemas/ids/${id}`, `schema id ${id}`);
          return await this.#whole(answer, String(id), `schema id ${id}`);
        });
      }
      case "guid": {
        const { guid } = ref;
        return await this.#remembered(`guid ${guid}`, Number.POSITIVE_INFINITY, async () => {
          const answer = await this.#patient(`/schemas/guids/${guid}`, `schema GUID ${guid}`);
          return await this.#whole(answer, guid, `schema GUID ${guid}`);
        });
      }
      case "default":
        throw new Failure("internal.bug", "a registry was asked for a schema that nothing names");
    }
  }

  async latest(subject: string): Promise<SchemaText> {
    const what = `the latest version of ${subject}`;
    return await this.#remembered(`latest ${subject}`, this.#settings.refreshMs, async () => {
      const answer = await this.#ask(`/subjects/${encodeURIComponent(subject)}/versions/latest`, what);
      if (answer.id === null) throw notRegistry("a version without an id", this.#asked(what));
      return await this.#whole({ ...answer, subject: answer.subject ?? subject }, String(answer.id), what);
    });
  }

  /** Those of a subject that are not deleted, ascending, as they are now. None: there is no such subject. */
  async versions(subject: string): Promise<readonly SchemaText[]> {
    const what = `the versions of ${subject}`;
    const path = `/subjects/${encodeURIComponent(subject)}/versions`;
    let numbers: unknown;
    try {
      numbers = await this.#requests.ask({ method: "GET", path, body: null, what });
    } catch (e) {
      if (e instanceof Failure && e.code === "registry.unknown_subject") return [];
      throw e;
    }
    const found = Array.isArray(numbers) ? numbers.map(whole) : [null];
    if (found.includes(null)) throw notRegistry("no list of numbers", this.#asked(what));
    if (found.length > MAX_VERSIONS) throw invalid(`there are ${found.length}`, this.#asked(what));
    const versions: SchemaText[] = [];
    for (const version of found.map(Number).sort((a, b) => a - b)) {
      const named = `${subject} version ${version}`;
      const answer = await this.#ask(`${path}/${version}`, named);
      versions.push(await this.#whole(answer, String(answer.id ?? version), named));
    }
    return versions;
  }

  /** Its id under the subject; the same schema again is no new version. Rejects with registry.incompatible, .refused, … */
  async register(subject: string, schema: NewSchema, normalize: boolean): Promise<Registered> {
    const key = JSON.stringify([subject, normalize, schemaBody(schema)]);
    const held = this.#registered.get(key);
    if (held !== null) return held.value;
    return await this.#flight(`register ${key}`, async () => {
      const what = `registering a schema under ${subject}`;
      const answer = await this.#requests.ask({
        method: "POST",
        path: `/subjects/${encodeURIComponent(subject)}/versions${normalize ? "?normalize=true" : ""}`,
        body: schemaBody(schema),
        what,
      });
      const id = isObject(answer) ? whole(answer["id"]) : null;
      if (id === null) throw notRegistry("an answer without an id", this.#asked(what));
      const guid = isObject(answer) && typeof answer["guid"] === "string" ? answer["guid"] : null;
      const registered = { id, guid };
      this.#registered.put(key, registered, 2 * key.length);
      return registered;
    });
  }

  /** The version under which a subject has this schema already. Rejects with registry.unknown_schema where it has not. */
  async lookup(subject: string, schema: NewSchema, normalize: boolean): Promise<SchemaAnswer> {
    const what = `a schema under ${subject}`;
    const answer = await this.#requests.ask({
      method: "POST",
      path: `/subjects/${encodeURIComponent(subject)}${normalize ? "?normalize=true" : ""}`,
      body: schemaBody(schema),
      what,
    });
    return readSchema(answer, this.#asked(what));
  }

  /** Requests from now on are made by these; what is remembered stays. */
  renew(settings: RegistrySettings): void {
    this.#settings = settings;
    this.#requests.renew(settings);
  }

  close(): void {
    this.#requests.close();
  }

  async #ask(path: string, what: string): Promise<SchemaAnswer> {
    const answer = await this.#requests.ask({ method: "GET", path, body: null, what });
    return readSchema(answer, this.#asked(what));
  }

  /** What was registered a moment ago may not have come to the node that we asked. */
  async #patient(path: string, what: string): Promise<SchemaAnswer> {
    const end = this.#clock.monotonic() + this.#settings.missingGraceMs;
    for (let pause = GRACE_PAUSE_MS; ; pause *= 2) {
      try {
        return await this.#ask(path, what);
      } catch (e) {
        const left = end - this.#clock.monotonic();
        if (!(e instanceof Failure) || e.code !== "registry.unknown_schema" || left <= 0) throw e;
        await this.#requests.rest(Math.min(pause, left));
      }
    }
  }

  async #whole(answer: SchemaAnswer, id: string, what: string): Promise<SchemaText> {
    const { format, text, subject, version } = answer;
    const references = await resolveReferences(answer, {
      maxBytes: this.#settings.maxSchemaBytes,
      load: (r) => this.#version(r),
      refuse: (why) => invalid(why, this.#asked(what)),
    });
    return { format, text, references, id, subject, version };
  }

  /** Soft-deleted versions too: what refers to them is still in use. */
  async #version({ subject, version }: NamedReference): Promise<SchemaAnswer> {
    const what = `${subject} version ${version}`;
    const held = this.#versions.get(what);
    if (held !== null) return held.value;
    return await this.#flight(what, async () => {
      const path = `/subjects/${encodeURIComponent(subject)}/versions/${version}?deleted=true`;
      const answer = await this.#ask(path, what);
      this.#versions.put(what, answer, 2 * answer.text.length);
      return answer;
    });
  }

  async #remembered(key: string, freshMs: number, load: () => Promise<SchemaText>): Promise<SchemaText> {
    const held = this.#schemas.get(key);
    if (held !== null && held.until > this.#clock.monotonic()) {
      if ("failure" in held.value) throw held.value.failure;
      return held.value.schema;
    }
    return await this.#flight(key, async () => {
      try {
        const schema = await load();
        this.#schemas.put(key, { schema }, sizeOf(schema), this.#clock.monotonic() + freshMs);
        return schema;
      } catch (e) {
        const failure = asFailure(e);
        // What was known stays in use while nobody can be asked.
        if (failure.retry && held !== null && "schema" in held.value) return held.value.schema;
        const until = this.#clock.monotonic() + this.#settings.missingTtlMs;
        if (isVerdict(failure)) this.#schemas.put(key, { failure }, FAILURE_BYTES, until);
        throw failure;
      }
    });
  }

  #flight<T>(key: string, run: () => Promise<T>): Promise<T> {
    const under = this.#flights.get(key) as Promise<T> | undefined;
    if (under !== undefined) return under;
    const flight = run().finally(() => this.#flights.delete(key));
    this.#flights.set(key, flight);
    return flight;
  }

  #asked(what: string): Asked {
    const { urls, section } = this.#settings;
    return { what, at: urls.length === 1 ? urls[0]! : urls.join(", "), section };
  }
}

/** The registry's word on a schema, and not on the state of things. */
function isVerdict({ code, retry }: Failure): boolean {
  return !retry && code.startsWith("registry.");
}

/** Characters of JavaScript take at most 2 bytes each. */
function sizeOf(schema: SchemaText): number {
  const all = (list: SchemaText["references"]): number =>
    list.reduce((n, r) => n + 2 * r.text.length + all(r.references), 0);
  return 2 * schema.text.length + all(schema.references);
}
