/** The options of a schema registry that speaks Confluent's interface: for decoding, and for sinks that register. */
import * as z from "zod";
import { clientCredentials } from "./oidc-options.ts";
import { byteSize, durationMs, MIB, secretString, wholeNumber } from "./option-types.ts";
import { certWithKey, clientTls } from "./tls-options.ts";

const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;

function urlProblem(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) return "not an http(s) URL";
  if (url.username !== "" || url.password !== "") return "credentials do not belong into a URL";
  if (url.search !== "" || url.hash !== "") return "a URL with a query or a fragment";
  return null;
}

const oneUrl = z.string().superRefine((text, ctx) => {
  const message = urlProblem(text);
  if (message !== null) ctx.addIssue({ code: "custom", message, params: { code: "config.range" } });
});

const registryShape = {
  url: z
    .array(oneUrl)
    .min(1)
    .max(16)
    .describe("Where the registry is; the next one is asked where one does not answer. A path is kept.")
    .meta({
      allowed: "a list of http:// or https:// URLs, without credentials, query or fragment",
      examples: [["https://registry-1.internal:8081", "https://registry-2.internal:8081"]],
    }),
  username: secretString()
    .optional()
    .describe("User name, or API key: sent with `password` to the configured hosts only.")
    .meta({ examples: ["twg"] }),
  password: secretString()
    .optional()
    .describe("Password, or API secret.")
    .meta({ examples: [{ secret: "registry-password" }] }),
  token: secretString()
    .optional()
    .describe("Bearer token, in place of user name and password.")
    .meta({ examples: [{ secret: "registry-token" }], instead: true }),
  oidc: clientCredentials({
    tokenUrl: "https://id.internal/realms/data/protocol/openid-connect/token",
    secret: "registry-oidc-secret",
    scope: "schema-registry",
    audience: "schema-registry",
    ca: "/etc/twg/oidc-ca.crt",
  })
    .optional()
    .describe("Bearer tokens from an OpenID Connect provider by the client credentials grant.")
    .meta({ instead: true }),
  headers: z
    .record(z.string().regex(HEADER_NAME).meta({ allowed: "a header's name" }), secretString())
    .optional()
    .describe("Headers that go with every request to the configured hosts.")
    .meta({
      allowed: "a table of names with texts or secrets",
      examples: [{ "target-sr-cluster": "lsrc-1", "confluent-identity-pool-id": "pool-1" }],
      instead: true,
    }),
  tls: z
    .strictObject(
      clientTls({
        certificate: "the registry's certificate",
        peers: "registries",
        serverName: "Name that the registry's certificate must hold, where it is not the host of the URL.",
        examples: {
          ca: "/etc/twg/ca.crt",
          cert: "/etc/twg/client.crt",
          key: "registry-client-key",
          name: "registry.internal",
        },
      }),
    )
    .superRefine(certWithKey)
    .optional()
    .describe("Of https:// URLs."),
  timeout_ms: durationMs({ min: 100, max: 120_000 })
    .default(10_000)
    .describe("Longest that one request may take, its whole answer included.")
    .meta({
      unit: "ms",
      examples: ["10s"],
      why: "Registries answer in milliseconds; another URL is waiting.",
    }),
  attempts: wholeNumber({ min: 1, max: 20 })
    .default(3)
    .describe("How often all URLs are tried in turn, with growing pauses, before the caller hears of it.")
    .meta({ examples: [3], why: "A restart passes unnoticed; after an outage whoever waits asks again." }),
  max_schema_bytes: byteSize({ min: 1024, max: 64 * MIB })
    .default(4 * MIB)
    .describe("Largest schema, all of its references together.")
    .meta({
      unit: "bytes",
      examples: ["4MiB"],
      why: "Far above any that a person wrote; a limit before memory.",
    }),
  cache_bytes: byteSize({ min: MIB, max: 1024 * MIB })
    .default(32 * MIB)
    .describe("Most bytes of schema texts that are remembered; the least used ones go first.")
    .meta({ unit: "bytes", examples: ["32MiB"], why: "Thousands of usual schemas." }),
  refresh_ms: durationMs({ min: 0, max: 86_400_000 })
    .default(60_000)
    .describe("How long the latest version of a subject counts as such. Schemas by id never change.")
    .meta({ unit: "ms", examples: ["1m"], why: "A new version is seen within a minute." }),
  missing_grace_ms: durationMs({ min: 0, max: 60_000 })
    .default(2_000)
    .describe("A schema id that is not known is asked for again for so long before its records are refused.")
    .meta({
      unit: "ms",
      examples: ["2s"],
      why: "A node that follows may not have seen what was just registered.",
    }),
  missing_ttl_ms: durationMs({ min: 0, max: 86_400_000 })
    .default(30_000)
    .describe("How long it is remembered that the registry does not know a schema.")
    .meta({
      unit: "ms",
      examples: ["30s"],
      why: "Bad records cost one question in that time, not one each.",
    }),
};

type Shape = z.output<z.ZodObject<typeof registryShape>>;

/** At most one way to log in, and each whole. */
function loginProblems(o: Shape): { path: keyof Shape; message: string; allowed: string }[] {
  const ways = [o.username ?? o.password, o.token, o.oidc].filter((w) => w !== undefined);
  if (ways.length > 1) {
    const path = o.token === undefined ? "oidc" : "token";
    const allowed = "one of `username` with `password`, `token` and `oidc`";
    return [{ path, message: "more than one way to log in", allowed }];
  }
  if ((o.username === undefined) === (o.password === undefined)) return [];
  const path = o.username === undefined ? "username" : "password";
  return [{ path, message: "`username` and `password` go together", allowed: "both, or neither" }];
}

/** Refines the whole table. */
function checkLogin(o: Shape, ctx: z.core.$RefinementCtx): void {
  for (const { path, message, allowed } of loginProblems(o))
    ctx.addIssue({ code: "custom", path: [path], message, params: { code: "config.conflict", allowed } });
}

export const registrySpec = z.strictObject(registryShape).superRefine(checkLogin);
export type RegistryOptions = z.output<typeof registrySpec>;
