/** The configuration of one broker (also a controller) of a test cluster, as Java properties. */
import type { TlsFiles } from "./tls.ts";

/** In the order of their ports. CONTROLLER is for the cluster itself. */
export const LISTENERS = [
  "PLAIN",
  "CONTROLLER",
  "TLS",
  "SASL",
  "SASLTLS",
  "MTLS",
  "JWT",
  "REAUTH",
  "BEHIND",
] as const;
export type Listener = (typeof LISTENERS)[number];

export interface Node {
  readonly id: number;
  readonly ports: Readonly<Record<Listener, number>>;
  /** Where clients are told that BEHIND is: nobody listens there but a proxy that a test starts. */
  readonly proxyPort: number;
}

const PROTOCOL: Readonly<Record<Listener, string>> = {
  PLAIN: "PLAINTEXT",
  CONTROLLER: "PLAINTEXT",
  TLS: "SSL",
  SASL: "SASL_PLAINTEXT",
  SASLTLS: "SASL_SSL",
  MTLS: "SSL",
  JWT: "SASL_PLAINTEXT",
  REAUTH: "SASL_PLAINTEXT",
  BEHIND: "SASL_PLAINTEXT",
};

/** On the REAUTH listener a login lasts this long (KIP-368), or the connection with it. */
const REAUTH_MS = 2_000;

// A comma and an equals sign on purpose: SCRAM escapes both, and careless clients trip over them.
const PLAIN_USERS = 'user_bob="bob,pw=1" user_alice="alice-pw"';
const JAAS = "org.apache.kafka.common.security";

/** What tokens for the JWT listener must hold; they are signed with the key of tls.ts. */
export const TOKEN_ISSUER = "http://127.0.0.1/issuer";
export const TOKEN_AUDIENCE = "twg-test";

/** The broker's own JVM must allow the place of the keys besides. */
export const jwksUrl = (tls: TlsFiles): string => `file://${tls.jwks}`;

export function nodeProperties(node: Node, all: readonly Node[], dataFolder: string, tls: TlsFiles): string {
  const address = (l: Listener) => `${l}://127.0.0.1:${node.ports[l]}`;
  const advertised = (l: Listener) => (l === "BEHIND" ? `${l}://127.0.0.1:${node.proxyPort}` : address(l));
  const replicas = all.length;
  const lines: Record<string, string | number | boolean> = {
    "process.roles": "broker,controller",
    "node.id": node.id,
    "broker.rack": `r${node.id}`,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "controller.quorum.voters": all.map((n) => `${n.id}@127.0.0.1:${n.ports.CONTROLLER}`).join(","),
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAIN",
    listeners: LISTENERS.map(address).join(","),
    "advertised.listeners": LISTENERS.filter((l) => l !== "CONTROLLER")
      .map(advertised)
      .join(","),
    "listener.security.protocol.map": LISTENERS.map((l) => `${l}:${PROTOCOL[l]}`).join(","),
    "log.dirs": dataFolder,

    // Tests say which topics exist; "unknown topic" must stay unknown.
    "auto.create.topics.enable": false,
    "default.replication.factor": replicas,
    "min.insync.replicas": 1,
    "offsets.topic.num.partitions": 4,
    "offsets.topic.replication.factor": replicas,
    "transaction.state.log.num.partitions": 4,
    "transaction.state.log.replication.factor": replicas,
    "transaction.state.log.min.isr": 1,

    // Anything goes until a test puts an ACL on a topic or group; then only who is named may use it.
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": true,
    "super.users": "User:ANONYMOUS",

    // Small machine, quick elections, quick cleaning.
    "num.network.threads": 2,
    "num.io.threads": 2,
    "background.threads": 2,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 500,
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3000,
    "controller.quorum.election.timeout.ms": 500,
    "controller.quorum.fetch.timeout.ms": 1000,
    "log.cleaner.dedupe.buffer.size": 2 << 20,
    "log.cleaner.backoff.ms": 200,
    "log.retention.check.interval.ms": 1000,
    "log.segment.delete.delay.ms": 500,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,

    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": tls.serverPem,
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": tls.ca,
    "listener.name.mtls.ssl.client.auth": "required",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    ...jwtListener(tls),
  };
  for (const mechanism of ["plain", "scram-sha-256", "scram-sha-512"])
    lines[`listener.name.reauth.${mechanism}.connections.max.reauth.ms`] = REAUTH_MS;
  for (const listener of ["sasl", "sasltls", "reauth", "behind"]) {
    const of = (mechanism: string) => `listener.name.${listener}.${mechanism}.sasl.jaas.config`;
    lines[of("plain")] = `${JAAS}.plain.PlainLoginModule required ${PLAIN_USERS};`;
    for (const scram of ["scram-sha-256", "scram-sha-512"])
      lines[of(scram)] = `${JAAS}.scram.ScramLoginModule required;`;
  }
  return Object.entries(lines)
    .map(([key, value]) => `${key}=${value}\n`)
    .join("");
}

/** Signed tokens, looked at as in production: signature, issuer, audience and end. */
function jwtListener(tls: TlsFiles): Record<string, string> {
  const of = "listener.name.jwt";
  return {
    [`${of}.sasl.enabled.mechanisms`]: "OAUTHBEARER",
    [`${of}.oauthbearer.sasl.jaas.config`]: `${JAAS}.oauthbearer.OAuthBearerLoginModule required;`,
    [`${of}.oauthbearer.sasl.server.callback.handler.class`]: `${JAAS}.oauthbearer.OAuthBearerValidatorCallbackHandler`,
    [`${of}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url`]: jwksUrl(tls),
    [`${of}.oauthbearer.sasl.oauthbearer.expected.audience`]: TOKEN_AUDIENCE,
    [`${of}.oauthbearer.sasl.oauthbearer.expected.issuer`]: TOKEN_ISSUER,
  };
}
