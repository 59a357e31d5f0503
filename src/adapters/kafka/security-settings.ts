/** The `tls` and `sasl` sections, with their secrets, as the client's settings. */
import type { Resolved } from "../../core/config/secret.ts";
import { Failure } from "../../core/failure/failure.ts";
import type { TlsOptions } from "../../core/ports/net.ts";
import { takesPassword } from "../../core/sasl/mechanism.ts";
import { oidcSettings, tlsOptions } from "../net/client-settings.ts";
import type { SaslSettings, TokenSource } from "./login/login.ts";
import type { KafkaSaslOptions, KafkaTlsOptions } from "./security-spec.ts";

/** `section`: where it stands in the configuration, for messages. */
export function tlsSettings(tls: Resolved<KafkaTlsOptions> | undefined, section: string): TlsOptions | null {
  if (tls === undefined || !tls.enabled) return null;
  return tlsOptions(tls, section);
}

export function saslSettings(o: Resolved<KafkaSaslOptions> | undefined): SaslSettings | null {
  if (o === undefined) return null;
  const { mechanism } = o;
  if (takesPassword(mechanism)) {
    return { mechanism, username: o.username?.reveal() ?? "", password: o.password?.reveal() ?? "" };
  }
  if (mechanism === "OAUTHBEARER")
    return { mechanism, source: tokenSource(o), extensions: o.extensions ?? {} };
  const { access_key_id: id, secret_access_key: secret, session_token: session } = o.aws ?? {};
  const keys =
    id === undefined || secret === undefined
      ? null
      : {
          accessKeyId: id.reveal(),
          secretAccessKey: secret.reveal(),
          sessionToken: session?.reveal() ?? null,
        };
  return { mechanism, keys, region: o.aws?.region ?? null, profile: o.aws?.profile ?? null };
}

function tokenSource(o: Resolved<KafkaSaslOptions>): TokenSource {
  if (o.token !== undefined) return { from: "literal", token: o.token.reveal().trim() };
  if (o.token_file !== undefined) return { from: "file", path: o.token_file };
  if (o.oidc === undefined) throw new Failure("internal.bug", "OAUTHBEARER without a source of tokens");
  return { from: "oidc", ...oidcSettings(o.oidc, "source.sasl.oidc") };
}
