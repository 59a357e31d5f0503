/** The `tls` and `sasl` sections of everything that talks to Kafka brokers. */
import * as z from "zod";
import { awsCredentials, awsProblems } from "../../core/config/aws-options.ts";
import { clientCredentials } from "../../core/config/oidc-options.ts";
import { secretString } from "../../core/config/option-types.ts";
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

const oidc = clientCredentials({
  tokenUrl: "https://id.internal/realms/data/protocol/openid-connect/token",
  secret: "oidc-client-secret",
  scope: "kafka",
  audience: "kafka-cluster",
  ca: "/etc/twg/oidc-ca.crt",
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
