/** The options of a registry, secrets read, as its client wants them. */
import type { RegistryOptions } from "../../core/config/registry-options.ts";
import type { Resolved } from "../../core/config/secret.ts";
import type { TlsOptions } from "../../core/ports/net.ts";
import { oidcSettings, tlsOptions } from "../net/client-settings.ts";
import type { OidcSettings } from "../net/oidc-tokens.ts";

export type RegistryLogin =
  | { readonly by: "nothing" }
  | { readonly by: "password"; readonly username: string; readonly password: string }
  | { readonly by: "token"; readonly token: string }
  | ({ readonly by: "oidc" } & OidcSettings);

export interface RegistrySettings {
  /** Without a slash at the end. */
  readonly urls: readonly string[];
  readonly login: RegistryLogin;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsOptions | null;
  readonly timeoutMs: number;
  readonly attempts: number;
  readonly maxSchemaBytes: number;
  readonly cacheBytes: number;
  readonly refreshMs: number;
  readonly missingGraceMs: number;
  readonly missingTtlMs: number;
  /** Of the configuration, for messages: `decode.registry`. */
  readonly section: string;
}

export function registrySettings(o: Resolved<RegistryOptions>, section: string): RegistrySettings {
  return {
    urls: o.url.map((u) => u.replace(/\/+$/, "")),
    login: loginOf(o, section),
    headers: Object.fromEntries(Object.entries(o.headers ?? {}).map(([name, v]) => [name, v.reveal()])),
    tls: o.tls === undefined ? null : tlsOptions(o.tls, `${section}.tls`),
    timeoutMs: o.timeout_ms,
    attempts: o.attempts,
    maxSchemaBytes: o.max_schema_bytes,
    cacheBytes: o.cache_bytes,
    refreshMs: o.refresh_ms,
    missingGraceMs: o.missing_grace_ms,
    missingTtlMs: o.missing_ttl_ms,
    section,
  };
}

function loginOf(o: Resolved<RegistryOptions>, section: string): RegistryLogin {
  if (o.username !== undefined && o.password !== undefined)
    return { by: "password", username: o.username.reveal(), password: o.password.reveal() };
  if (o.token !== undefined) return { by: "token", token: o.token.reveal().trim() };
  if (o.oidc === undefined) return { by: "nothing" };
  return { by: "oidc", ...oidcSettings(o.oidc, `${section}.oidc`) };
}
