/**
 * What went wrong on the network, as one Failure that names the address and the likely cause. The runtime gives
 * errno names, OpenSSL verification names and BoringSSL reason strings; all of them are sorted here and nowhere else.
 */
import type { Code } from "../../core/failure/codes.ts";
import { Failure } from "../../core/failure/failure.ts";

interface Sorted {
  readonly code: Code;
  readonly text: string;
  readonly hint: string;
}

const ERRNO: Record<string, Sorted> = {
  ECONNREFUSED: {
    code: "net.refused",
    text: "connection refused",
    hint: "Nothing listens there: is the server up, and is it the right port?",
  },
  ENOTFOUND: {
    code: "net.unresolved",
    text: "the host name does not resolve",
    hint: "Check the spelling and the DNS that this machine uses",
  },
  ETIMEDOUT: {
    code: "net.timeout",
    text: "no answer to the connection attempt",
    hint: "A firewall or a wrong address drops packets silently",
  },
  EHOSTUNREACH: {
    code: "net.unreachable",
    text: "no route to the host",
    hint: "Check the network and the address",
  },
  ECONNRESET: {
    code: "net.closed",
    text: "the peer reset the connection",
    hint: "The server stopped, or it does not speak this protocol on this port",
  },
};

const ERRNO_ALIAS: Record<string, string> = {
  EAI_AGAIN: "ENOTFOUND",
  ENODATA: "ENOTFOUND",
  ESERVFAIL: "ENOTFOUND",
  ENETUNREACH: "EHOSTUNREACH",
  ENETDOWN: "EHOSTUNREACH",
  EADDRNOTAVAIL: "EHOSTUNREACH",
  EPIPE: "ECONNRESET",
  ECONNABORTED: "ECONNRESET",
};

const CERT_DATES = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);
const CERT_CHAIN = new Set([
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
  "CERT_REJECTED",
  "CERT_REVOKED",
  "CERT_CHAIN_TOO_LONG",
  "INVALID_CA",
  "INVALID_PURPOSE",
]);
/** TLS alerts by which a server says that it wants another client certificate, or one at all. */
const CLIENT_CERT =
  /CERTIFICATE_REQUIRED|BAD_CERTIFICATE|UNKNOWN_CA|CERTIFICATE_UNKNOWN|CERTIFICATE_EXPIRED|ACCESS_DENIED|PEER_DID_NOT_RETURN/i;
const PLAIN_PEER = /WRONG_VERSION_NUMBER|HTTP_REQUEST|HTTPS_PROXY_REQUEST|PACKET_LENGTH_TOO_LONG/i;
const MATERIAL =
  /Invalid CA|KEY_VALUES_MISMATCH|NO_START_LINE|BAD_BASE64|PEM|Invalid (cert|key)|ASN1|BAD_DECRYPT/i;

/** `host:port`, with brackets around IPv6. */
export function place(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

function codeOf(e: unknown): string {
  return e instanceof Error && "code" in e && typeof e.code === "string" ? e.code : "";
}

/** `section`: of the configuration, so that a hint names the setting to change. */
function sortTls(code: string, message: string, section: string): Sorted | null {
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return {
      code: "net.tls_name",
      text: `the server's certificate is for another name: ${message}`,
      hint: `Dial a name that the certificate holds, or set ${section}.server_name`,
    };
  }
  if (CERT_DATES.has(code)) {
    return {
      code: "net.tls_expired",
      text: message,
      hint: "Check the server's certificate and this machine's clock",
    };
  }
  if (CERT_CHAIN.has(code)) {
    return {
      code: "net.tls_untrusted",
      text: `the server's certificate is not trusted: ${message}`,
      hint: `Set ${section}.ca to the certificate of the authority that signed it`,
    };
  }
  if (CLIENT_CERT.test(message)) {
    return {
      code: "net.tls_client_cert",
      text: "the server refused the client certificate, or misses one",
      hint: `Set ${section}.cert and ${section}.key to a pair that the server's authority signed`,
    };
  }
  if (PLAIN_PEER.test(message)) {
    return {
      code: "net.tls_handshake",
      text: "the server's answer is not TLS",
      hint: `The port speaks plain text: use the TLS port, or turn ${section} off`,
    };
  }
  if (MATERIAL.test(message) || MATERIAL.test(code)) {
    return {
      code: "net.tls_material",
      text: `the configured ca, cert or key can't be used: ${message}`,
      hint: `In ${section}: they must be PEM, and key must belong to cert`,
    };
  }
  if (code === "EPROTO" || code.startsWith("ERR_SSL") || code.startsWith("ERR_BORINGSSL")) {
    return {
      code: "net.tls_handshake",
      text: `TLS failed: ${message}`,
      hint: "Check which TLS versions and ciphers the server allows",
    };
  }
  return null;
}

/** `during` says what was being done: "connect", "TLS handshake", "read". `section`: see TlsOptions. */
export function netFailure(
  e: unknown,
  host: string,
  port: number,
  during: string,
  section: string = "tls",
): Failure {
  if (e instanceof Failure) return e;
  const code = codeOf(e);
  const message = e instanceof Error ? e.message : String(e);
  const at = place(host, port);
  const tls = sortTls(code, message, section);
  if (tls !== null) return new Failure(tls.code, `${at}: ${tls.text}`, { at, hint: tls.hint, cause: e });
  const errno = ERRNO[ERRNO_ALIAS[code] ?? code];
  if (errno === undefined) {
    return new Failure("net.failed", `${at}: ${during} failed: ${code} ${message}`, { at, cause: e });
  }
  if (errno.code === "net.closed" && during === "TLS handshake") {
    return new Failure("net.closed", `${at}: the server hung up during the TLS handshake`, {
      at,
      hint: `The port may speak plain text: use the TLS port, or turn ${section} off`,
      cause: e,
    });
  }
  return new Failure(errno.code, `${at}: ${errno.text}`, { at, hint: errno.hint, cause: e });
}

export function timeoutFailure(host: string, port: number, ms: number, during: string): Failure {
  const at = place(host, port);
  const hint =
    during === "TLS handshake"
      ? "The port may speak another protocol than TLS"
      : "A firewall or a wrong address drops packets silently";
  return new Failure("net.timeout", `${at}: ${during} took longer than ${Math.round(ms)} ms`, { at, hint });
}

export function cancelled(host: string, port: number): Failure {
  return new Failure("internal.cancelled", `dialling ${place(host, port)} was given up`);
}
