/** What a connection needs to know, from the url and the options beside it. */
import type { Resolved } from "../../core/config/secret.ts";
import { Failure } from "../../core/failure/failure.ts";
import type { TlsOptions } from "../../core/ports/net.ts";
import type { PostgresSinkOptions } from "./spec.ts";

export const SSL_MODES = ["disable", "prefer", "require", "verify-ca", "verify-full"] as const;
export type SslMode = (typeof SSL_MODES)[number];

export interface PostgresHost {
  readonly host: string;
  readonly port: number;
}

/** Plain data: it crosses to the lanes' threads. */
export interface PostgresSettings {
  /** Tried in turn; one that takes no writes is passed over. */
  readonly hosts: readonly PostgresHost[];
  readonly user: string;
  readonly password: string | null;
  readonly database: string;
  readonly applicationName: string;
  readonly sslMode: SslMode;
  readonly channelBinding: "prefer" | "require" | "disable";
  readonly tls: Pick<TlsOptions, "ca" | "cert" | "key" | "serverName">;
  /** Longest for one dial with its login, and for any answer, ms. */
  readonly connectTimeoutMs: number;
  readonly answerTimeoutMs: number;
}

type Options = Pick<
  Resolved<PostgresSinkOptions>,
  "url" | "sslmode" | "channel_binding" | "tls" | "connect_timeout_ms" | "answer_timeout_ms"
>;

/** Throws postgres.url_invalid. `sslmodeWritten`: the option stands in the file and is no default. */
export function postgresSettings(
  o: Options,
  applicationName: string,
  sslmodeWritten: boolean,
): PostgresSettings {
  const { hosts, user, password, database, sslMode } = parseUrl(o.url.reveal());
  if (sslMode !== null && sslmodeWritten && sslMode !== o.sslmode) {
    throw invalid(`says sslmode=${sslMode} and the option sslmode says "${o.sslmode}"`);
  }
  const { tls } = o;
  return {
    hosts,
    user,
    password,
    database,
    applicationName,
    sslMode: sslMode ?? o.sslmode,
    channelBinding: o.channel_binding,
    tls: {
      ...(tls?.ca === undefined ? {} : { ca: tls.ca.reveal() }),
      ...(tls?.cert === undefined ? {} : { cert: tls.cert.reveal() }),
      ...(tls?.key === undefined ? {} : { key: tls.key.reveal() }),
      ...(tls?.server_name === undefined ? {} : { serverName: tls.server_name }),
    },
    connectTimeoutMs: o.connect_timeout_ms,
    answerTimeoutMs: o.answer_timeout_ms,
  };
}

interface UrlParts {
  readonly hosts: readonly PostgresHost[];
  readonly user: string;
  readonly password: string | null;
  readonly database: string;
  readonly sslMode: SslMode | null;
}

export const URL_FORM =
  "postgres://user:password@host:5432/database; special characters as %XX, several hosts with commas";

function invalid(what: string): Failure {
  // Never the url itself: it holds the password.
  return new Failure("postgres.url_invalid", `the url ${what}`, { at: "sink.url", hint: URL_FORM });
}

const SHAPE = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^/?#]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/;

/** Throws postgres.url_invalid. Parsed by hand: the platform's URL takes no list of hosts. */
export function parseUrl(url: string): UrlParts {
  const match = SHAPE.exec(url.trim());
  if (match === null) throw invalid("is not of the form postgres://user@host/database");
  const [, credentials = "", hosts = "", database = "", query = ""] = match;
  const colon = credentials.indexOf(":");
  const user = decoded(colon < 0 ? credentials : credentials.slice(0, colon), "user");
  if (user === "") throw invalid("names no user");
  return {
    hosts: hosts.split(",").map(hostOf),
    user,
    password: colon < 0 ? null : decoded(credentials.slice(colon + 1), "password"),
    database: database === "" ? user : decoded(database, "database"),
    sslMode: sslModeOf(query),
  };
}

function hostOf(text: string): PostgresHost {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/.exec(text);
  const port = Number(match?.[3] ?? 5432);
  if (match === null || port < 1 || port > 65_535) throw invalid("has a host that is not host or host:port");
  const host = decoded(match[1] ?? match[2] ?? "", "host");
  if (host.startsWith("/")) throw invalid("names a Unix socket: only TCP is spoken");
  return { host, port };
}

function sslModeOf(query: string): SslMode | null {
  let found: SslMode | null = null;
  for (const pair of query.split("&").filter((p) => p !== "")) {
    const [name = "", value = ""] = pair.split("=", 2);
    if (name !== "sslmode")
      throw invalid(`has the parameter ${name.slice(0, 40)}; only sslmode is known in it`);
    const mode = SSL_MODES.find((m) => m === value);
    if (mode === undefined) throw invalid(`has an unknown sslmode; known are ${SSL_MODES.join(", ")}`);
    found = mode;
  }
  return found;
}

function decoded(text: string, what: string): string {
  try {
    const plain = decodeURIComponent(text);
    if (!plain.includes("\0")) return plain;
  } catch {
    // Below.
  }
  throw invalid(`has a ${what} with a bad % sequence`);
}
