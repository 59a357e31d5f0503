/** SaslHandshake (key 17) and SaslAuthenticate (key 36). A refused login is told, then the connection ends. */
import { ERROR } from "../../../../src/adapters/kafka/wire/errors.ts";
import { startExchange } from "../sasl-server.ts";
import type { Call } from "./table.ts";

export function saslHandshake({ cluster, connection, request, reply }: Call<"SaslHandshake">) {
  const { mechanism } = request.body;
  const server = cluster.sasl;
  if (server === null) return reply({ errorCode: ERROR.ILLEGAL_SASL_STATE });
  // v0 means bare tokens without a frame: nobody speaks that here.
  if (request.version < 1) return connection.complain("SaslHandshake v0");
  const known = server.mechanisms.find((m) => m === mechanism);
  if (known === undefined) {
    connection.closeAfterAnswer();
    return reply({ errorCode: ERROR.UNSUPPORTED_SASL_MECHANISM, mechanisms: server.mechanisms });
  }
  const exchange = startExchange(server, known, connection.number, cluster.clock.now());
  connection.login = { state: "talking", mechanism, exchange };
  reply({ mechanisms: server.mechanisms });
}

export function saslAuthenticate({ cluster, broker, connection, request, reply }: Call<"SaslAuthenticate">) {
  const { login } = connection;
  if (login.state !== "talking") {
    connection.closeAfterAnswer();
    return reply({
      errorCode: ERROR.ILLEGAL_SASL_STATE,
      errorMessage: "SaslAuthenticate without a handshake",
    });
  }
  const answer = login.exchange(request.body.authBytes);
  if (answer.kind === "refused") {
    connection.closeAfterAnswer();
    return reply({ errorCode: ERROR.SASL_AUTHENTICATION_FAILED, errorMessage: answer.reason });
  }
  const ofListener = cluster.sasl?.lifetimeMs ?? broker.profile.loginMs;
  const lifetimeMs = answer.kind === "done" ? (answer.lifetimeMs ?? ofListener) : 0;
  if (answer.kind === "done") {
    const until = lifetimeMs === 0 ? null : cluster.clock.monotonic() + lifetimeMs;
    connection.login = { state: "done", until };
  }
  reply({ authBytes: answer.message, errorMessage: null, sessionLifetimeMs: BigInt(lifetimeMs) });
}
