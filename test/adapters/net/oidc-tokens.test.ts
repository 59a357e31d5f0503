/**
 * Goal: tokens of the client credentials grant are had, shared and renewed, and an endpoint that misbehaves gives one
 * coded failure that tells no secret. Method: a provider on a real socket; the clock of expiry and renewal is ours.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type OidcSettings, OidcTokens } from "../../../src/adapters/net/oidc-tokens.ts";
import { asFailure, Failure, failureLine } from "../../../src/core/failure/failure.ts";
import { ManualClock } from "../../brokers/kafka/manual-clock.ts";
import { type Misbehaviour, OidcServer } from "../../brokers/oidc/server.ts";
import { makeTls } from "../../servers/kafka/tls.ts";

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
/** Characters on purpose that a header, a form and a regular expression treat in their own ways. */
const SECRET = "s3cr$t:+&=%40 .*";
const chance = { next: () => 0, bytes: (n: number) => new Uint8Array(n) };
const closing: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function server(tls?: { cert: string; key: string }): OidcServer {
  const s = new OidcServer({
    key,
    clientId: "id:x y",
    clientSecret: SECRET,
    issuer: "i",
    audience: "a",
    lifetimeSeconds: 100,
    ...(tls === undefined ? {} : { tls }),
  });
  closing.push(() => s.close());
  return s;
}

function tokens(tokenUrl: string, more: Partial<OidcSettings> = {}) {
  const clock = new ManualClock();
  const settings: OidcSettings = {
    tokenUrl,
    clientId: "id:x y",
    clientSecret: SECRET,
    scope: null,
    audience: null,
    clientAuth: "basic",
    ca: null,
    timeoutMs: 5_000,
    section: "source.sasl.oidc",
    ...more,
  };
  const t = new OidcTokens(settings, { clock, chance });
  closing.push(() => t.close(new Failure("internal.cancelled", "end of the test")));
  return { t, clock };
}

const outcome = (p: Promise<string>): Promise<Failure> =>
  p.then(
    () => Promise.reject(new Error("a token came")),
    (e) => asFailure(e),
  );

/** Lets what is under way on real sockets come to its end. */
async function until(done: () => boolean): Promise<void> {
  while (!done()) await Bun.sleep(1);
}

async function another(t: OidcTokens, first: string): Promise<string> {
  for (;;) {
    const now = await t.token();
    if (now !== first) return now;
    await Bun.sleep(1);
  }
}

describe("a request", () => {
  for (const clientAuth of ["basic", "post"] as const) {
    test(`${clientAuth}: id and secret arrive whole, scope and audience with them`, async () => {
      const s = server();
      const { t } = tokens(s.url, { clientAuth, scope: "kafka more", audience: "a b" });
      expect((await t.token()).split(".").length).toBe(3);
      expect(s.requests[0]?.form).toMatchObject({
        grant_type: "client_credentials",
        scope: "kafka more",
        audience: "a b",
      });
      expect(s.requests[0]?.authorization === null).toBe(clientAuth === "post");
    });
  }

  test("over TLS, with an authority of one's own and with none", async () => {
    const tls = makeTls(mkdtempSync(join(tmpdir(), "twg-oidc-")));
    const pem = readFileSync(tls.serverPem, "utf8");
    const s = server({ cert: pem, key: pem });
    expect(await tokens(s.url, { ca: readFileSync(tls.ca, "utf8") }).t.token()).toContain(".");
    const failure = await outcome(tokens(s.url).t.token());
    expect(failure.code).toBe("net.tls_untrusted");
    expect(failure.hint).toContain("source.sasl.oidc");
    const wrong = await outcome(tokens(s.url, { ca: readFileSync(tls.wrongCa, "utf8") }).t.token());
    expect(wrong.code).toBe("net.tls_untrusted");
  });
});

describe("a token", () => {
  test("is fetched once for however many ask, and kept", async () => {
    const s = server();
    const { t } = tokens(s.url);
    const all = await Promise.all([t.token(), t.token(), t.token()]);
    expect(new Set([...all, await t.token()]).size).toBe(1);
    expect(s.requests.length).toBe(1);
  });

  test("is renewed at 70 % of its life, with nobody waiting", async () => {
    const s = server();
    const { t, clock } = tokens(s.url);
    const first = await t.token();
    const gate = Promise.withResolvers<void>();
    s.script.push(async () => {
      await gate.promise;
      return Response.json({ access_token: "second", expires_in: 100 });
    });
    clock.advance(69_999);
    expect(s.requests.length).toBe(1);
    clock.advance(1);
    await until(() => s.requests.length === 2);
    // The old one serves until the new one is here.
    expect(await t.token()).toBe(first);
    gate.resolve();
    expect(await another(t, first)).toBe("second");
    expect(s.requests.length).toBe(2);
  });

  test("serves to its end while the endpoint is away, which is asked again and again", async () => {
    const s = server();
    const { t, clock } = tokens(s.url);
    const first = await t.token();
    s.script.push(...Array<Misbehaviour>(3).fill(() => new Response("busy", { status: 503 })));
    clock.advance(70_000);
    await until(() => s.requests.length === 2 && clock.waiting > 0);
    expect(await t.token()).toBe(first);
    // The next try comes half a second to a second later, the one after it later still.
    await until(() => {
      clock.advance(100);
      return s.requests.length === 4;
    });
    expect(await t.token()).toBe(first);
    await until(() => {
      clock.advance(100);
      return s.requests.length === 5;
    });
    await another(t, first);
  });

  test("that has ended is not used: the next login asks, and hears why there is none", async () => {
    const s = server();
    const { t, clock } = tokens(s.url);
    await t.token();
    s.script.push(...Array<Misbehaviour>(50).fill(() => new Response("", { status: 500 })));
    clock.advance(99_500);
    expect((await outcome(t.token())).code).toBe("oidc.unavailable");
  });

  test("without expires_in lasts as long as the JWT says", async () => {
    const s = server();
    s.tellExpiry = false;
    // Its end is of the wall clock of this machine; the other clock is set to it.
    const { t, clock } = tokens(s.url);
    s.script.push(() => Response.json({ access_token: s.sign({ exp: clock.now() / 1000 + 50 }) }));
    await t.token();
    clock.advance(34_999);
    expect(s.requests.length).toBe(1);
    clock.advance(1);
    await until(() => s.requests.length === 2);
  });

  test("that says nothing of its life is fetched again after a minute", async () => {
    const s = server();
    const { t, clock } = tokens(s.url);
    s.script.push(() => Response.json({ access_token: "opaque", expires_in: "soon" }));
    expect(await t.token()).toBe("opaque");
    clock.advance(42_000);
    await until(() => s.requests.length === 2);
  });

  test("expires_in as text counts", async () => {
    const s = server();
    const { t, clock } = tokens(s.url);
    s.script.push(() => Response.json({ access_token: "opaque", expires_in: "10" }));
    await t.token();
    clock.advance(7_000);
    await until(() => s.requests.length === 2);
  });
});

describe("an endpoint that", () => {
  const echo: Misbehaviour = () =>
    Response.json(
      {
        error: "invalid_client",
        error_description: `client secret ${SECRET} (${encodeURIComponent(SECRET)}) is wrong\n`,
      },
      { status: 401 },
    );
  const html = () => new Response("<html><h1>Sign in</h1>", { headers: { "content-type": "text/html" } });
  const huge = () =>
    new Response(
      new ReadableStream({
        pull: (c) => c.enqueue(new Uint8Array(1 << 16).fill(32)),
      }),
    );
  const away = (request: Request) => Response.redirect(new URL("/elsewhere", request.url).href, 307);
  const cases: [string, Misbehaviour, string, boolean, RegExp][] = [
    ["refuses the client", echo, "oidc.refused", false, /invalid_client: client secret \*\*\*/],
    ["answers 400 without a word", () => new Response("", { status: 400 }), "oidc.refused", false, /400/],
    ["answers 500", () => new Response("oops", { status: 500 }), "oidc.unavailable", true, /500/],
    ["asks to slow down", () => new Response("", { status: 429 }), "oidc.unavailable", true, /429/],
    ["is a page for people", html, "oidc.answer_invalid", false, /<html>/],
    ["is not there", () => new Response("", { status: 404 }), "oidc.answer_invalid", false, /404/],
    ["never stops", huge, "oidc.answer_invalid", false, /more than 512 KiB/],
    ["redirects", away, "oidc.answer_invalid", false, /307/],
    ["gives no token", () => Response.json({ id_token: "x" }), "oidc.answer_invalid", false, /access_token/],
    ["gives a list", () => Response.json([1]), "oidc.answer_invalid", false, /no JSON object/],
    [
      "gives another type",
      () => Response.json({ access_token: "x", token_type: "mac" }),
      "oidc.answer_invalid",
      false,
      /mac/,
    ],
    [
      "gives a token that has ended",
      () => Response.json({ access_token: "x", expires_in: 0 }),
      "oidc.answer_invalid",
      false,
      /ended already/,
    ],
    [
      "gives a token that no header can carry",
      () => Response.json({ access_token: "a b" }),
      "sasl.credentials_invalid",
      false,
      /token endpoint/,
    ],
  ];
  for (const [name, misbehave, code, retry, text] of cases) {
    test(`${name}: ${code}`, async () => {
      const s = server();
      s.script.push(misbehave);
      const { t } = tokens(s.url);
      const failure = await outcome(t.token());
      expect(failure).toMatchObject({ code, retry });
      expect(failure.message).toMatch(text);
      expect(failureLine(failure)).not.toContain(SECRET);
      expect(failureLine(failure)).not.toContain(encodeURIComponent(SECRET));
      // The next login asks anew, and nothing is asked twice: a redirect was not followed.
      expect(await t.token()).toContain(".");
      expect(s.requests.length).toBe(2);
    });
  }

  test("never answers: given up in time", async () => {
    const s = server();
    s.script.push(() => new Promise(() => {}));
    const { t, clock } = tokens(s.url);
    const asked = outcome(t.token());
    await until(() => s.requests.length === 1);
    clock.advance(5_000);
    expect(await asked).toMatchObject({ code: "oidc.unavailable", retry: true });
    expect(clock.waiting).toBe(0);
  });

  test("stops in mid-answer: given up in time", async () => {
    const s = server();
    let begun = false;
    s.script.push(
      () =>
        new Response(
          new ReadableStream({
            start: (c) => {
              c.enqueue(new TextEncoder().encode('{"access'));
              begun = true;
            },
          }),
        ),
    );
    const { t, clock } = tokens(s.url);
    const asked = outcome(t.token());
    await until(() => begun);
    clock.advance(5_000);
    expect((await asked).code).toBe("oidc.unavailable");
  });

  test("is not there at all", async () => {
    const s = server();
    const url = s.url;
    await s.close();
    expect(await outcome(tokens(url).t.token())).toMatchObject({ code: "net.refused", retry: true });
  });
});

describe("closing", () => {
  const closed = new Failure("internal.cancelled", "closed");

  test("ends the request under way and all later ones", async () => {
    const s = server();
    s.script.push(() => new Promise(() => {}));
    const { t, clock } = tokens(s.url);
    const asked = outcome(t.token());
    await until(() => s.requests.length === 1);
    t.close(closed);
    expect((await asked).code).toBe("internal.cancelled");
    expect((await outcome(t.token())).code).toBe("internal.cancelled");
    expect(clock.waiting).toBe(0);
  });

  test("ends the renewal", async () => {
    const s = server();
    const { t, clock } = tokens(s.url);
    await t.token();
    expect(clock.waiting).toBe(1);
    s.script.push(() => new Promise(() => {}));
    clock.advance(70_000);
    await until(() => s.requests.length === 2);
    t.close(closed);
    await until(() => clock.waiting === 0);
    clock.advance(1_000_000);
    expect(s.requests.length).toBe(2);
  });
});
