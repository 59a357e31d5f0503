/** The `tls` and `sasl` sections of everything that talks to Kafka brokers. */
import * as z from "zod";
import { awsCredentials, awsProblems } from "../../core/config/aws-options.ts";
import { durationMs, pemText, secretString } from "../../core/config/option-types.ts";
import { certWithKey, clientTls } from "../../core/config/tls-options.ts";
import { SASL_MECHANISMS, type SaslMechanism, takesPassword } from "../../core/sasl/mechanism.ts";
import { EXTENSION_KEY, EXTENSION_VALUE } from "../../core/sasl/oauthbearer.ts";

export const kafkaTls = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe("Speak TLS with the brokers.")
      .meta({ why: "Writing the section means wanting it; false turns it off without deleting it." }),
    ...clientTls({
      certificate: "the brokers' certificates",
      peers: "brokers",
      serverName: "Name that the brokers' certificates must hold, where it is not the host that is dialled.",
      examples: {
        ca: "/etc/twg/ca.crt",
        cert: "/etc/twg/client.crt",
        key: "kafka-client-key",
        name: "kafka.internal",
      },
    }),
  })
  .superRefine(certWithKey);

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

function tokenUrlProblem(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) return "not an http(s) URL";
  if (url.username !== "" || url.password !== "") return "the secret does not belong into a URL";
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname))
    return "the client secret would travel in plain text";
  return null;
}

const oidc = z.strictObject({
  token_url: z
    .string()
    .superRefine((text, ctx) => {
      const message = tokenUrlProblem(text);
      if (message !== null) ctx.addIssue({ code: "custom", message, params: { code: "config.range" } });
    })
    .describe("Token endpoint of the identity provider.")
    .meta({
      allowed: "an https:// URL; http:// on this machine only",
      examples: ["https://id.internal/realms/data/protocol/openid-connect/token"],
    }),
  client_id: z
    .string()
    .min(1)
    .max(1024)
    .describe("Client id.")
    .meta({ examples: ["twg"] }),
  client_secret: secretString()
    .describe("Client secret.")
    .meta({ examples: [{ secret: "oidc-client-secret" }] }),
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
    .meta({ examples: ["kafka"], why: "Without it: what the provider gives this client by itself." }),
  audience: z
    .string()
    .min(1)
    .max(2048)
    .optional()
    .describe("Audience to ask for, where the provider wants it named.")
    .meta({ examples: ["kafka-cluster"] }),
  ca: pemText()
    .optional()
    .describe("Certificates of the authorities that may have signed the endpoint's certificate, PEM.")
    .meta({
      examples: [{ file: "/etc/twg/oidc-ca.crt" }],
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

const awsShape = {
  region: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/)
    .optional()
    .describe("Region of the cluster.")
    .meta({
      allowed: "a region such as eu-central-1",
      examples: ["eu-central-1"],
      why: "Without it: what the broker's name says, else AWS_REGION.",
    }),
  ...awsCredentials({ secrets: "aws", profile: "kafka-reader" }),
};

const aws = z.strictObject(awsShape).superRefine((o, ctx) => {
  for (const { path, message, allowed } of awsProblems(o))
    ctx.addIssue({ code: "custom", path: [path], message, params: { code: "config.conflict", allowed } });
});

const saslShape = {
  mechanism: z
    .enum(SASL_MECHANISMS)
    .describe("How to log in; the listener must offer it.")
    .meta({ examples: ["SCRAM-SHA-512"] }),
  username: secretString()
    .optional()
    .describe("PLAIN and SCRAM: user name.")
    .meta({ examples: ["twg"] }),
  password: secretString()
    .optional()
    .describe("PLAIN and SCRAM: password.")
    .meta({ examples: [{ secret: "kafka-password" }] }),
  token: secretString()
    .optional()
    .describe("OAUTHBEARER: the token itself, read again on SIGHUP.")
    .meta({ examples: [{ secret: "kafka-token" }], instead: true }),
  token_file: z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe("OAUTHBEARER: a file with the token, read at every login.")
    .meta({ examples: ["/var/run/secrets/tokens/kafka"], instead: true }),
  oidc: oidc
    .optional()
    .describe(
      "OAUTHBEARER: tokens from an OpenID Connect provider by the client credentials grant, renewed before they end.",
    )
    .meta({ instead: true }),
  extensions: z
    .record(
      z.string().regex(EXTENSION_KEY).meta({ allowed: "letters, and not `auth`" }),
      z.string().max(1024).regex(EXTENSION_VALUE),
    )
    .optional()
    .describe("OAUTHBEARER: SASL extensions that go with the token.")
    .meta({
      allowed: "names of letters with values of printable ASCII",
      examples: [{ logicalCluster: "lkc-1", identityPoolId: "pool-1" }],
      instead: true,
    }),
  aws: aws
    .optional()
    .describe("AWS_MSK_IAM: identity and region. Absent: all of it from the environment.")
    .meta({ instead: true }),
};

type SaslShape = z.output<z.ZodObject<typeof saslShape>>;
type Field = Exclude<keyof SaslShape, "mechanism">;

const TOKEN_SOURCES = ["token", "token_file", "oidc"] as const;

/** What belongs to a mechanism. */
function fieldsOf(mechanism: SaslMechanism): readonly Field[] {
  if (takesPassword(mechanism)) return ["username", "password"];
  return mechanism === "OAUTHBEARER" ? [...TOKEN_SOURCES, "extensions"] : ["aws"];
}

function saslProblems(o: SaslShape): { path: Field; message: string; allowed: string; code: string }[] {
  const { mechanism } = o;
  const mine = fieldsOf(mechanism);
  const there = (Object.keys(saslShape) as (keyof SaslShape)[]).filter(
    (f): f is Field => f !== "mechanism" && o[f] !== undefined,
  );
  const problems = there
    .filter((f) => !mine.includes(f))
    .map((path) => ({
      path,
      message: `${mechanism} takes none`,
      allowed: mine.map((f) => `\`${f}\``).join(", "),
      code: "config.conflict",
    }));
  if (takesPassword(mechanism)) {
    for (const path of ["username", "password"] as const)
      if (o[path] === undefined)
        problems.push({ path, message: "it is missing", allowed: `a ${path}`, code: "config.missing" });
  }
  if (mechanism === "OAUTHBEARER" && there.filter((f) => TOKEN_SOURCES.some((s) => s === f)).length !== 1) {
    problems.push({
      path: there.find((f) => TOKEN_SOURCES.some((s) => s === f)) ?? "token",
      message: "where do tokens come from?",
      allowed: "one of `token`, `token_file` and `oidc`",
      code: "config.conflict",
    });
  }
  return problems;
}

export const kafkaSasl = z.strictObject(saslShape).superRefine((o, ctx) => {
  for (const { path, message, allowed, code } of saslProblems(o))
    ctx.addIssue({ code: "custom", path: [path], message, params: { code, allowed } });
});

export type KafkaTlsOptions = z.output<typeof kafkaTls>;
export type KafkaSaslOptions = z.output<typeof kafkaSasl>;
