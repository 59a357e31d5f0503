/**
 * Goal: whatever a registry does, the one who waits hears one coded failure in bounded time, that may be retried unless it
 * is a verdict on the schema, and no secret leaves for another host or a message. Method: a registry that misbehaves on a
 * real socket; pauses and time-outs pass by a clock of ours.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { failureLine } from "../../../src/core/failure/failure.ts";
import { OidcServer } from "../../brokers/oidc/server.ts";
import { failed, type Misbehaviour } from "../../brokers/registry/server.ts";
import { type Certificates, makeCertificates } from "../net/certificates.ts";
import { avro, ORDER, RegistryWorld } from "./world.ts";

const world = new RegistryWorld();
afterEach(() => world.close());
const byId = { by: "id", id: 1 } as const;

/** What comes of one question while the registry misbehaves so, and how often it was asked. */
async function outcome(
  misbehaviour: Misbehaviour,
): Promise<{ code: string; retry: boolean; text: string; asked: number }> {
  const server = world.server();
  server.always = misbehaviour;
  const failure = await world.failure(world.client(server.url).schema(byId));
  return { code: failure.code, retry: failure.retry, text: failureLine(failure), asked: server.seen.length };
}

describe("answers", () => {
  const page = (status: number) =>
    new Response("<html>Sign in</html>", { status, headers: { "content-type": "text/html" } });
  const json = (value: unknown) => Response.json(value);
  const cases: [string, Misbehaviour, string, number][] = [
    ["401", () => failed(401, 40101, "no"), "registry.denied", 1],
    ["403", () => failed(403, 40301, "no"), "registry.denied", 1],
    ["a 404 of another server", () => page(404), "registry.answer_invalid", 3],
    [
      "a 404 of the registry's own framework",
      () => failed(404, 404, "HTTP 404 Not Found"),
      "registry.answer_invalid",
      3,
    ],
    ["405", () => page(405), "registry.answer_invalid", 3],
    ["418", () => page(418), "registry.answer_invalid", 3],
    ["429", () => failed(429, 429, "slow down"), "registry.unavailable", 3],
    ["500", () => failed(500, 50001, "backend"), "registry.unavailable", 3],
    ["a 503 of 10 MB", () => failed(503, 50301, "x".repeat(10 << 20)), "registry.unavailable", 3],
    ["502 of a proxy", () => page(502), "registry.unavailable", 3],
    ["a page for people", () => page(200), "registry.answer_invalid", 3],
    ["nothing", () => new Response(""), "registry.answer_invalid", 3],
    ["a list", () => json([1]), "registry.answer_invalid", 1],
    ["no schema", () => json({ id: 1 }), "registry.answer_invalid", 1],
    [
      "references that are none",
      () => json({ schema: "x", references: [{ name: 1 }] }),
      "registry.answer_invalid",
      1,
    ],
    [
      "references that are no list",
      () => json({ schema: "x", references: {} }),
      "registry.answer_invalid",
      1,
    ],
    ["no UTF-8", () => new Response(new Uint8Array([0x22, 0xff, 0x22])), "registry.answer_invalid", 3],
    ["JSON of many levels", () => new Response("[".repeat(900_000)), "registry.answer_invalid", 3],
    ["a page of 10 MB", () => new Response("<p>".repeat(3 << 20)), "registry.answer_invalid", 3],
  ];
  for (const [name, misbehaviour, code, asked] of cases) {
    test(name, async () => {
      expect(await outcome(misbehaviour)).toMatchObject({ code, asked, retry: true });
    });
  }

  test("422 without verdict on a schema", async () => {
    expect(await outcome(() => failed(422, 42202, "The specified version is not valid"))).toMatchObject({
      code: "registry.refused",
      retry: false,
      asked: 1,
    });
  });

  test("Retry-After is waited for", async () => {
    const server = world.server();
    server.store.add("a", avro());
    server.script.push(() => new Response("", { status: 503, headers: { "retry-after": "7" } }));
    const before = world.clock.monotonic();
    expect((await world.of(world.client(server.url).schema(byId))).text).toBe(ORDER);
    expect(world.clock.monotonic() - before).toBeGreaterThanOrEqual(7000);
  });
});

describe("connections", () => {
  test("one that never answers is given up in time", async () => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    const found = await outcome(() => promise);
    resolve(new Response(""));
    expect(found).toMatchObject({ code: "registry.unreachable", retry: true, asked: 3 });
    expect(found.text).toContain("no whole answer within 10000 ms");
  });

  test("an answer that stops in its middle is given up in time", async () => {
    const half = () => {
      const stream = new ReadableStream({ start: (c) => c.enqueue(new TextEncoder().encode('{"schema":"')) });
      return new Response(stream, { headers: { "content-type": "application/json" } });
    };
    expect(await outcome(half)).toMatchObject({ code: "registry.unreachable", retry: true, asked: 3 });
  });

  test("one that dies in mid-answer is asked again", async () => {
    const server = world.server();
    server.store.add("a", avro());
    const deaths = [true];
    const socket = world.also(new Dying(server.port, () => deaths.pop() ?? false));
    expect((await world.of(world.client(socket.url).schema(byId))).text).toBe(ORDER);
    expect(socket.died).toBe(1);
  });

  test("nobody there, a name that is none", async () => {
    const server = world.server();
    await server.close();
    const failure = await world.failure(world.client(server.url).schema(byId));
    expect([failure.code, failure.retry, failure.message]).toEqual([
      "registry.unreachable",
      true,
      `127.0.0.1:${server.port}: connection refused`,
    ]);
    const unresolved = await world.failure(world.client("http://registry.invalid").schema(byId));
    expect([unresolved.code, unresolved.retry]).toEqual(["registry.unreachable", true]);
  });

  test("a registry that restarts is found again", async () => {
    const first = world.server();
    first.store.add("a", avro());
    const { port, store } = first;
    const client = world.client(first.url, { attempts: 5 });
    await first.close();
    const asked = client.schema(byId);
    world.clock.advance(100);
    world.server({ port, store });
    expect((await world.of(asked)).text).toBe(ORDER);
  });

  test("the next URL answers, and is the first one from then on", async () => {
    const [dead, broken, living] = [world.server(), world.server(), world.server()];
    await dead.close();
    broken.always = () => failed(503, 50003, "no leader");
    for (let i = 1; i <= 3; i++) living.store.add("a", avro(`${i}`));
    const client = world.client([dead.url, broken.url, living.url]);
    for (let id = 1; id <= 3; id++) await world.of(client.schema({ by: "id", id }));
    expect([broken.seen.length, living.seen.length]).toEqual([1, 3]);
    const none = await world.failure(world.client([dead.url, broken.url]).schema(byId));
    expect([none.code, none.message.split(":")[0]]).toEqual([
      "registry.unavailable",
      "none of 2 registries answered",
    ]);
  });

  test("closing ends what is under way", async () => {
    const server = world.server();
    server.always = () => new Promise(() => {});
    const client = world.client(server.url);
    const asked = client.schema(byId);
    while (server.seen.length === 0) await Bun.sleep(1);
    client.close();
    expect((await world.failure(asked)).code).toBe("internal.cancelled");
  });
});

describe("redirects", () => {
  const to = (location: string, status = 302) => new Response(null, { status, headers: { location } });
  const login = { by: "password", username: "u", password: "hush-hush" } as const;

  test("are followed with the login on the same host, without on another", async () => {
    const [home, other] = [world.server(), world.server()];
    for (const s of [home, other]) for (const text of ["1", "2"]) s.store.add("a", avro(text));
    home.script.push(
      () => to("/schemas/ids/2"),
      null,
      () => to(`${other.url}/schemas/ids/1`),
    );
    const client = world.client(home.url, { login, headers: { "x-secret": "hush" } });
    expect((await client.schema(byId)).text).toBe("2");
    expect((await client.schema({ by: "id", id: 2 })).text).toBe("1");
    const authorization = `Basic ${btoa("u:hush-hush")}`;
    expect(home.seen.map((s) => [s.authorization, s.headers.get("x-secret")])).toEqual([
      [authorization, "hush"],
      [authorization, "hush"],
      [authorization, "hush"],
    ]);
    expect(other.seen.map((s) => [s.authorization, s.headers.get("x-secret")])).toEqual([[null, null]]);
  });

  test("to another of the configured hosts keep the login, what registers included", async () => {
    const [first, second] = [world.server(), world.server()];
    first.always = (r) => to(`${second.url}${new URL(r.url).pathname}`, 307);
    const client = world.client([first.url, second.url], { login });
    await client.register("a", { format: "avro", text: ORDER }, false);
    expect((await client.schema(byId)).text).toBe(ORDER);
    expect(new Set(second.seen.map((s) => s.authorization))).toEqual(
      new Set([`Basic ${btoa("u:hush-hush")}`]),
    );
  });

  test("end after a few, and never change what a request is", async () => {
    const server = world.server();
    const client = world.client(server.url, { attempts: 1 });
    server.always = (r) => to(new URL(r.url).pathname);
    expect(failureLine(await world.failure(client.schema(byId)))).toContain("more than 5 redirects");
    expect(server.seen.length).toBe(6);
    server.always = () => to("http://other.invalid/", 307);
    const schema = { format: "avro", text: ORDER } as const;
    expect((await world.failure(client.register("a", schema, false))).code).toBe("registry.answer_invalid");
    server.always = () => to("/subjects/b/versions", 303);
    expect((await world.failure(client.register("a", schema, false))).code).toBe("registry.answer_invalid");
    server.always = () => to("ftp://x/");
    expect((await world.failure(client.schema(byId))).message).toContain("a redirect from http: to ftp:");
    server.always = () => new Response(null, { status: 302 });
    expect((await world.failure(client.schema(byId))).message).toContain("302 without a place to go to");
  });
});

describe("logins", () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = privateKey.export({ type: "pkcs8", format: "pem" }) as string;

  test("user and password, bearer token", async () => {
    const basic = world.server({ authorization: `Basic ${btoa("u:p:+ü".replace("ü", "\xc3\xbc"))}` });
    basic.store.add("a", avro());
    const login = { by: "password", username: "u", password: "p:+ü" } as const;
    expect((await world.client(basic.url, { login }).schema(byId)).text).toBe(ORDER);
    const bearer = world.server({ authorization: "Bearer t.o" });
    bearer.store.add("a", avro());
    expect((await world.client(bearer.url, { login: { by: "token", token: "t.o" } }).schema(byId)).text).toBe(
      ORDER,
    );
  });

  test("a server that echoes the secrets does not get them into messages", async () => {
    const server = world.server();
    const login = { by: "password", username: "u", password: "hush-hush" } as const;
    server.always = (r) =>
      failed(401, 401, `${r.headers.get("authorization")} hush-hush ${r.headers.get("x-key")}`);
    const client = world.client(server.url, { login, headers: { "x-key": "hidden" } });
    const failure = await world.failure(client.schema(byId));
    expect(failure.message).toBe("schema id 1: the registry answered 401: Basic *** *** ***");
    server.always = (r) => new Response(`<p>${r.headers.get("authorization")} hush-hush`);
    const page = failureLine(await world.failure(client.schema({ by: "id", id: 2 })));
    expect(page).toContain("no JSON, it begins: <p>Basic *** ***");
  });

  test("tokens of the client credentials grant; one that is refused is replaced once", async () => {
    const oidc = world.also(
      new OidcServer({
        key,
        clientId: "c",
        clientSecret: "s",
        issuer: "i",
        audience: "a",
        lifetimeSeconds: 1000,
      }),
    );
    const server = world.server();
    for (const text of ["1", "2", "3"]) server.store.add("a", avro(text));
    const client = world.client(server.url, {
      login: {
        by: "oidc",
        tokenUrl: oidc.url,
        clientId: "c",
        clientSecret: "s",
        scope: null,
        audience: null,
        clientAuth: "basic",
        ca: null,
        timeoutMs: 5000,
        section: "decode.registry.oidc",
      },
    });
    await world.of(client.schema(byId));
    server.script.push(() => failed(401, 401, "token expired"));
    expect((await world.of(client.schema({ by: "id", id: 2 }))).text).toBe("2");
    expect(oidc.requests.length).toBe(2);
    const tokens = server.seen.map((s) => s.authorization);
    expect(tokens[1]).toBe(tokens[0]!);
    expect(tokens[2]).not.toBe(tokens[1]!);
    server.always = () => failed(401, 401, "never");
    oidc.script.push(null, () => Response.json({ error: "invalid_client" }, { status: 401 }));
    expect((await world.failure(client.schema({ by: "id", id: 3 }))).code).toBe("registry.denied");
    const refused = await world.failure(client.schema({ by: "id", id: 3 }));
    expect([refused.code, refused.retry, refused.hint]).toEqual([
      "registry.denied",
      true,
      "Check decode.registry.oidc.client_id, client_secret, scope and client_auth",
    ]);
  });
});

describe("TLS", () => {
  let certificates: Certificates;
  beforeAll(() => {
    certificates = makeCertificates();
  });
  const section = "decode.registry.tls";

  test("the authority is ours, the name must hold, our certificate is shown", async () => {
    const { ca, server: pair, client, named } = certificates;
    const server = world.server({ tls: { ...pair, clientCa: ca } });
    server.store.add("a", avro());
    const tls = { ca, cert: client.cert, key: client.key, section };
    expect((await world.of(world.client(server.url, { tls }).schema(byId))).text).toBe(ORDER);
    const without = await world.failure(
      world.client(server.url, { tls: { ca, section }, attempts: 1 }).schema(byId),
    );
    expect(without.code).toBe("registry.unreachable");
    const other = world.server({ tls: named });
    other.store.add("a", avro());
    const wrong = await world.failure(
      world.client(other.url, { tls: { ca, section }, attempts: 1 }).schema(byId),
    );
    expect([wrong.code, wrong.hint]).toEqual([
      "registry.unreachable",
      "Dial a name that the certificate holds, or set decode.registry.tls.server_name",
    ]);
    const right = { ca, section, serverName: "localhost" };
    expect((await world.of(world.client(other.url, { tls: right }).schema(byId))).text).toBe(ORDER);
  });

  test("an authority that is not ours", async () => {
    const server = world.server({ tls: certificates.server });
    for (const tls of [null, { ca: certificates.otherCa, section }]) {
      const failure = await world.failure(world.client(server.url, { tls, attempts: 1 }).schema(byId));
      expect([failure.code, failure.hint]).toEqual([
        "registry.unreachable",
        "Set decode.registry.tls.ca to the certificate of the authority that signed it",
      ]);
    }
    expect(server.seen).toEqual([]);
  });
});

afterAll(() => world.close());

/** Passes bytes on to a registry; of a connection for which `kills` says so only half of the answer, and then nothing. */
class Dying {
  readonly #listener: Bun.TCPSocketListener<unknown>;
  died = 0;

  constructor(port: number, kills: () => boolean) {
    this.#listener = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data: async (socket, chunk) => {
          const text = new TextDecoder().decode(chunk);
          const path = text.split(" ")[1]!;
          const answer = await fetch(`http://127.0.0.1:${port}${path}`);
          const body = await answer.text();
          const dies = kills();
          socket.write(
            `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${dies ? body.slice(0, 10) : body}`,
          );
          socket.flush();
          if (!dies) return;
          this.died++;
          socket.terminate();
        },
      },
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#listener.port}`;
  }

  close(): void {
    this.#listener.stop(true);
  }
}
