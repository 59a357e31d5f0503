/** Goal: options become settings, and what cannot stand together is told by path. Method: tables of options. */
import { describe, expect, test } from "bun:test";
import { registrySettings } from "../../../src/adapters/registry/settings.ts";
import { type RegistryOptions, registrySpec } from "../../../src/core/config/registry-options.ts";
import type { Resolved } from "../../../src/core/config/secret.ts";

const url = ["https://r:8081/contexts/a/", "http://s"];
const settings = (more: object) =>
  registrySettings(registrySpec.parse({ url, ...more }) as Resolved<RegistryOptions>, "decode.registry");

function problems(more: object): [string, string][] {
  const result = registrySpec.safeParse({ url, ...more });
  return (result.error?.issues ?? []).map((i) => [i.path.join("."), i.message]);
}

describe("settings", () => {
  test("URLs keep their path and lose the slash at its end; defaults", () => {
    expect(settings({})).toMatchObject({
      urls: ["https://r:8081/contexts/a", "http://s"],
      login: { by: "nothing" },
      headers: {},
      tls: null,
      timeoutMs: 10_000,
      attempts: 3,
      maxSchemaBytes: 4 << 20,
    });
  });

  test("each way to log in", () => {
    expect(settings({ username: "u", password: "p" }).login).toEqual({
      by: "password",
      username: "u",
      password: "p",
    });
    expect(settings({ token: "t\n" }).login).toEqual({ by: "token", token: "t" });
    const oidc = { token_url: "https://i/t", client_id: "c", client_secret: "s" };
    expect(settings({ oidc }).login).toMatchObject({
      by: "oidc",
      clientSecret: "s",
      section: "decode.registry.oidc",
    });
  });

  test("headers and certificates", () => {
    const pem = "-----BEGIN x";
    const tls = { ca: pem, cert: pem, key: pem, server_name: "n" };
    expect(settings({ tls, headers: { "target-sr-cluster": "l" } })).toMatchObject({
      headers: { "target-sr-cluster": "l" },
      tls: { ca: pem, cert: pem, key: pem, serverName: "n", section: "decode.registry.tls" },
    });
  });
});

describe("what is refused", () => {
  test("URLs that are none, or hold what they must not", () => {
    const bad = ["x", "ftp://x", "http://u:p@x", "http://x/?a=1", "http://x/#a"];
    expect(problems({ url: bad })).toEqual([
      ["url.0", "not an http(s) URL"],
      ["url.1", "not an http(s) URL"],
      ["url.2", "credentials do not belong into a URL"],
      ["url.3", "a URL with a query or a fragment"],
      ["url.4", "a URL with a query or a fragment"],
    ]);
    expect(problems({ url: [] }).length).toBe(1);
  });

  test("logins that are half, or two", () => {
    expect(problems({ username: "u" })).toEqual([["password", "`username` and `password` go together"]]);
    expect(problems({ password: "u" })).toEqual([["username", "`username` and `password` go together"]]);
    expect(problems({ password: "p", token: "t" })).toEqual([["token", "more than one way to log in"]]);
    expect(problems({ tls: { cert: "-----BEGIN x" } })).toEqual([
      ["tls.key", "`cert` and `key` go together"],
    ]);
    expect(problems({ headers: { "a b": "x" } }).length).toBe(1);
  });
});
