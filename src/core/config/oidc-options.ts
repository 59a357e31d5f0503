/** The options of the client credentials grant (RFC 6749 section 4.4), for everything that logs in with such tokens. */
import * as z from "zod";
import { durationMs, pemText, secretString } from "./option-types.ts";

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

function tokenUrlProblem(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) return "not an http(s) URL";
  if (url.username !== "" || url.password !== "") return "the secret does not belong into a URL";
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname))
    return "the client secret would travel in plain text";
  return null;
}

/** Names of the examples. */
export interface OidcWords {
  readonly tokenUrl: string;
  readonly secret: string;
  readonly scope: string;
  readonly audience: string;
  readonly ca: string;
}

export function clientCredentials(words: OidcWords) {
  return z.strictObject({
    token_url: z
      .string()
      .superRefine((text, ctx) => {
        const message = tokenUrlProblem(text);
        if (message !== null) ctx.addIssue({ code: "custom", message, params: { code: "config.range" } });
      })
      .describe("Token endpoint of the identity provider.")
      .meta({
        allowed: "an https:// URL; http:// on this machine only",
        examples: [words.tokenUrl],
      }),
    client_id: z
      .string()
      .min(1)
      .max(1024)
      .describe("Client id.")
      .meta({ examples: ["twg"] }),
    client_secret: secretString()
      .describe("Client secret.")
      .meta({ examples: [{ secret: words.secret }] }),
    client_auth: z
      .enum(["basic", "post"])
      .default("basic")
      .describe("Where client id and secret stand: in the Authorization header, or in the request's body.")
      .meta({ examples: ["post"], why: "Every provider must take the header (RFC 6749)." }),
    scope: z
      .string()
      .min(1)
      .max(2048)
      .optional()
      .describe("Scopes to ask for, separated by spaces.")
      .meta({ examples: [words.scope], why: "Without it: what the provider gives this client by itself." }),
    audience: z
      .string()
      .min(1)
      .max(2048)
      .optional()
      .describe("Audience to ask for, where the provider wants it named.")
      .meta({ examples: [words.audience] }),
    ca: pemText()
      .optional()
      .describe("Certificates of the authorities that may have signed the endpoint's certificate, PEM.")
      .meta({
        examples: [{ file: words.ca }],
        why: "Without it: the authorities that the system trusts.",
      }),
    timeout_ms: durationMs({ min: 100, max: 120_000 })
      .default(10_000)
      .describe("Longest that the endpoint may take for its whole answer.")
      .meta({
        unit: "ms",
        examples: ["10s"],
        why: "A token is renewed long before it ends; a retry has room.",
      }),
  });
}

export type ClientCredentials = z.output<ReturnType<typeof clientCredentials>>;
