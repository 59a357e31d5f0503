/**
 * Asks a pipeline's own HTTP side one question, from the same machine: for health checks where there is neither shell
 * nor curl. A server with TLS must show the very certificate that is configured, before the token is sent.
 */
import { X509Certificate } from "node:crypto";
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { parseHostPort } from "../../core/config/option-types.ts";
import { Failure } from "../../core/failure/failure.ts";

export interface AskOptions {
  /** `host:port` as it is listened on. */
  readonly listen: string;
  /** PEM of the certificate that the server shows; null: plain HTTP. */
  readonly cert: string | null;
  readonly token: string | null;
  readonly path: string;
  readonly timeoutMs: number;
}

export interface Answered {
  readonly status: number;
  /** First line. */
  readonly body: string;
}

/** Answers of these pages are a line; more is not ours. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** Listening on every address is answered on each. */
const ANY = new Map([
  ["0.0.0.0", "127.0.0.1"],
  ["::", "::1"],
]);

/** Throws net.refused, net.timeout, net.closed or net.tls_untrusted. */
export function ask(o: AskOptions): Promise<Answered> {
  const at = parseHostPort(o.listen);
  if (at === null) throw new Failure("observability.listen_failed", `"${o.listen}" is not host:port`);
  const host = ANY.get(at.host) ?? at.host;
  return new Promise((resolve, reject) => {
    let received = "";
    let settled = false;
    const settle = (act: () => void) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      socket.destroy();
      act();
    };
    const fail = (f: Failure) => settle(() => reject(f));
    const send = () => {
      // As a password: a bearer token could hold no space.
      const basic = Buffer.from(`twg:${o.token}`).toString("base64");
      const token = o.token === null ? "" : `Authorization: Basic ${basic}\r\n`;
      socket.write(`GET ${o.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${token}\r\n`);
    };
    const socket: Socket =
      o.cert === null
        ? connectPlain({ host, port: at.port }, send)
        : connectPinned({ host, port: at.port, cert: o.cert }, send, fail);
    const timer = setTimeout(
      () => fail(new Failure("net.timeout", `no answer within ${o.timeoutMs} ms`, { at: o.listen })),
      o.timeoutMs,
    );
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => {
      received += text;
      if (received.length > MAX_ANSWER_BYTES) fail(notOurs(o.listen));
    });
    socket.on("error", (e) => fail(socketFailure(e, o.listen)));
    socket.on("close", () => settle(() => finish(received, o.listen, resolve, reject)));
  });
}

function finish(
  received: string,
  at: string,
  resolve: (a: Answered) => void,
  reject: (f: Failure) => void,
): void {
  const match = /^HTTP\/1\.[01] (\d{3})[^\n]*\n[\s\S]*?\r\n\r\n([^\r\n]*)/.exec(received);
  if (match === null) reject(notOurs(at));
  else resolve({ status: Number(match[1]), body: match[2] ?? "" });
}

function notOurs(at: string): Failure {
  return new Failure("net.closed", "what listens there does not answer as twg does", {
    at,
    hint: "Another program on this port, or one with TLS where the file says none",
  });
}

/** The certificate is ours to know: no authority has to vouch for it, and no name has to fit. */
function connectPinned(
  { host, port, cert }: { host: string; port: number; cert: string },
  send: () => void,
  fail: (f: Failure) => void,
): Socket {
  const wanted = new X509Certificate(cert).fingerprint256;
  const socket = connectTls({ host, port, rejectUnauthorized: false }, () => {
    if (socket.getPeerCertificate().fingerprint256 === wanted) send();
    else
      fail(
        new Failure("net.tls_untrusted", "the server shows another certificate than observability.tls.cert", {
          at: `${host}:${port}`,
          hint: "Renewed since the pipeline started? Start it again",
        }),
      );
  });
  return socket;
}

function socketFailure(e: NodeJS.ErrnoException, at: string): Failure {
  if (e.code === "ECONNREFUSED")
    return new Failure("net.refused", "nothing listens there: the pipeline is not running", { at });
  return new Failure("net.failed", e.message, { at, cause: e });
}
