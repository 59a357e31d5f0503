/** The options that network components share, secrets read, as settings: certificates, and tokens of an OpenID Connect provider. */
import type { ClientCredentials } from "../../core/config/oidc-options.ts";
import type { Resolved, Secret } from "../../core/config/secret.ts";
import type { TlsOptions } from "../../core/ports/net.ts";
import type { OidcSettings } from "./oidc-tokens.ts";

interface Certificates {
  readonly ca?: Secret | undefined;
  readonly cert?: Secret | undefined;
  readonly key?: Secret | undefined;
  readonly server_name?: string | undefined;
}

/** `section`: where it stands in the configuration, for messages. */
export function tlsOptions(tls: Certificates, section: string): TlsOptions {
  return {
    section,
    ...(tls.ca === undefined ? {} : { ca: tls.ca.reveal() }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert.reveal() }),
    ...(tls.key === undefined ? {} : { key: tls.key.reveal() }),
    ...(tls.server_name === undefined ? {} : { serverName: tls.server_name }),
  };
}

export function oidcSettings(o: Resolved<ClientCredentials>, section: string): OidcSettings {
  return {
    tokenUrl: o.token_url,
    clientId: o.client_id,
    clientSecret: o.client_secret.reveal(),
    clientAuth: o.client_auth,
    scope: o.scope ?? null,
    audience: o.audience ?? null,
    ca: o.ca?.reveal() ?? null,
    timeoutMs: o.timeout_ms,
    section,
  };
}
