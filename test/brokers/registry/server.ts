/**
 * A schema registry on a real socket: the part of Confluent's REST interface that clients use, with its error codes. It
 * checks what a strict one checks (logins, JSON, references, compatibility by a rule of the test), and misbehaves on order.
 */
import { SchemaStore, type Stored, type Version } from "./store.ts";

export interface RegistryServerOptions {
  readonly port?: number;
  readonly tls?: { readonly cert: string; readonly key: string; readonly clientCa?: string };
  /** The Authorization header that is asked for. */
  readonly authorization?: string;
  readonly store?: SchemaStore;
}

/** What a request gets in place of its answer. */
export type Misbehaviour = (request: Request) => Response | Promise<Response>;

export interface SeenRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly authorization: string | null;
  readonly headers: Headers;
}

const MIME = { "content-type": "application/vnd.schemaregistry.v1+json" };

export class RegistryServer {
  readonly store: SchemaStore;
  readonly #options: RegistryServerOptions;
  readonly #server: Bun.Server<undefined>;
  /** Also once it is closed. */
  readonly port: number;
  readonly seen: SeenRequest[] = [];
  /** For the requests to come, the oldest first; null: in order. */
  readonly script: (Misbehaviour | null)[] = [];
  /** For every request that the script says nothing of. */
  always: Misbehaviour | null = null;

  constructor(options: RegistryServerOptions = {}) {
    this.#options = options;
    this.store = options.store ?? new SchemaStore();
    const { tls } = options;
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: options.port ?? 0,
      idleTimeout: 60,
      ...(tls === undefined
        ? {}
        : {
            tls: {
              cert: tls.cert,
              key: tls.key,
              ...(tls.clientCa === undefined
                ? {}
                : { ca: tls.clientCa, requestCert: true, rejectUnauthorized: true }),
            },
          }),
      fetch: (request) => this.#answer(request),
    });
    this.port = this.#server.port ?? 0;
  }

  get url(): string {
    return `${this.#options.tls === undefined ? "http" : "https"}://127.0.0.1:${this.port}`;
  }

  async close(): Promise<void> {
    await this.#server.stop(true);
  }

  async #answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const authorization = request.headers.get("authorization");
    const { method, headers } = request;
    this.seen.push({ method, path: url.pathname + url.search, authorization, headers });
    const misbehave = this.script.shift() ?? this.always;
    if (misbehave !== null) return await misbehave(request);
    const wanted = this.#options.authorization;
    if (wanted !== undefined && authorization !== wanted) return failed(401, 401, "Unauthorized");
    return await this.#route(method, url, request);
  }

  async #route(method: string, url: URL, request: Request): Promise<Response> {
    const parts = url.pathname.split("/").slice(1).map(decodeURIComponent);
    const [area, first = "", , version] = parts;
    if (method === "GET" && area === "schemas" && parts.length === 3) {
      if (first === "ids") return shown(this.store.byId(Number(parts[2])));
      if (first === "guids") return shown(this.store.byGuid(parts[2]!));
    }
    if (method === "GET" && url.pathname === "/schemas/types")
      return Response.json(["JSON", "PROTOBUF", "AVRO"], { headers: MIME });
    // Some clients set their rule of compatibility before they register.
    if (area === "config")
      return method === "PUT" ? Response.json(await request.json()) : failed(404, 40408, "none");
    if (area !== "subjects") return failed(404, 404, "HTTP 404 Not Found");
    if (method === "GET" && parts[2] === "versions") return this.#version(first, version);
    if (method !== "POST") return failed(405, 405, "HTTP 405 Method Not Allowed");
    const stored = await posted(request);
    if (stored === null) return failed(422, 42201, "Invalid schema");
    for (const r of stored.references) {
      if (!this.store.versions(r.subject)?.some((v) => v.version === r.version))
        return failed(
          422,
          42201,
          `No schema reference found for subject "${r.subject}" and version ${r.version}`,
        );
    }
    if (parts.length === 2) {
      if (this.store.versions(first) === null) return failed(404, 40401, `Subject '${first}' not found.`);
      const found = this.store.find(first, stored);
      return found === null
        ? failed(404, 40403, "Schema not found")
        : Response.json(versionBody(found), { headers: MIME });
    }
    const added = this.store.add(first, stored);
    if (typeof added === "string") return failed(409, 409, added);
    return Response.json({ id: added.id, guid: added.guid }, { headers: MIME });
  }

  /** `version` undefined: the numbers of all. */
  #version(subject: string, version: string | undefined): Response {
    const versions = this.store.versions(subject);
    if (versions === null) return failed(404, 40401, `Subject '${subject}' not found.`);
    if (version === undefined)
      return Response.json(
        versions.map((v) => v.version),
        { headers: MIME },
      );
    const found =
      version === "latest" ? versions.at(-1) : versions.find((v) => v.version === Number(version));
    return found === undefined
      ? failed(404, 40402, `Version ${version} not found.`)
      : Response.json(versionBody(found), { headers: MIME });
  }
}

function typed({ schemaType, references }: Stored): object {
  return {
    // Avro is the type that goes without saying.
    ...(schemaType === "AVRO" ? {} : { schemaType }),
    ...(references.length === 0 ? {} : { references }),
  };
}

function versionBody(v: Version): object {
  return { subject: v.subject, id: v.id, guid: v.guid, version: v.version, schema: v.schema, ...typed(v) };
}

function shown(stored: Stored | null): Response {
  if (stored === null) return failed(404, 40403, "Schema not found");
  return Response.json({ schema: stored.schema, ...typed(stored) }, { headers: MIME });
}

async function posted(request: Request): Promise<Stored | null> {
  const body = (await request.json()) as Partial<Stored>;
  const { schema, schemaType = "AVRO", references = [] } = body;
  if (typeof schema !== "string" || schema === "" || !["AVRO", "JSON", "PROTOBUF"].includes(schemaType))
    return null;
  if (schemaType !== "PROTOBUF") {
    try {
      JSON.parse(schema);
    } catch {
      return null;
    }
  }
  return { schema, schemaType, references };
}

export function failed(status: number, code: number, message: string): Response {
  return Response.json({ error_code: code, message }, { status, headers: MIME });
}
