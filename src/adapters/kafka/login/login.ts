/** How the client logs in: the settings of every mechanism, and what each makes of them for one connection. */
import { Failure } from "../../../core/failure/failure.ts";
import { awsMskIam } from "../../../core/sasl/aws-msk-iam.ts";
import type { PasswordMechanism, SaslCrypto, SaslMachine } from "../../../core/sasl/mechanism.ts";
import { oauthbearer } from "../../../core/sasl/oauthbearer.ts";
import { startSasl } from "../../../core/sasl/start.ts";
import type { Chance } from "../../../core/time/chance.ts";
import type { Clock } from "../../../core/time/clock.ts";
import { type OidcSettings, OidcTokens } from "../../net/oidc-tokens.ts";
import { type AwsIdentity, MskIamSigner } from "./aws-msk-iam.ts";
import { readTokenFile } from "./token-file.ts";

export type TokenSource =
  | { readonly from: "literal"; readonly token: string }
  /** Read at every login, so that whoever renews it need tell nobody. */
  | { readonly from: "file"; readonly path: string }
  | ({ readonly from: "oidc" } & OidcSettings);

export type SaslSettings =
  | { readonly mechanism: PasswordMechanism; readonly username: string; readonly password: string }
  | {
      readonly mechanism: "OAUTHBEARER";
      readonly source: TokenSource;
      readonly extensions: Readonly<Record<string, string>>;
    }
  | ({ readonly mechanism: "AWS_MSK_IAM" } & AwsIdentity);

/** Lives as long as its settings: what it has fetched serves every connection. */
export interface Login {
  readonly settings: SaslSettings;
  /** A machine for one login at `host`, as it is dialled. Settles within seconds; rejects with a Failure. */
  machine(host: string): SaslMachine | Promise<SaslMachine>;
  /** No more fetching; what is under way is given up. */
  close(): void;
}

export interface LoginParts {
  readonly clock: Clock;
  readonly chance: Chance;
  readonly crypto: SaslCrypto;
}

export function startLogin(settings: SaslSettings, parts: LoginParts): Login {
  switch (settings.mechanism) {
    case "OAUTHBEARER":
      return bearerLogin(settings, settings.source, parts);
    case "AWS_MSK_IAM": {
      const signer = new MskIamSigner(settings, parts.clock);
      return { settings, machine: async (host) => awsMskIam(await signer.payload(host)), close() {} };
    }
    default:
      return {
        settings,
        machine: () => startSasl(settings.mechanism, settings, parts.crypto, parts.chance),
        close() {},
      };
  }
}

function bearerLogin(
  settings: Extract<SaslSettings, { mechanism: "OAUTHBEARER" }>,
  source: TokenSource,
  parts: LoginParts,
): Login {
  const { extensions } = settings;
  switch (source.from) {
    case "literal":
      return { settings, machine: () => oauthbearer({ token: source.token, extensions }), close() {} };
    case "file":
      return {
        settings,
        machine: async () => oauthbearer({ token: await readTokenFile(source.path), extensions }),
        close() {},
      };
    case "oidc": {
      const tokens = new OidcTokens(source, parts);
      return {
        settings,
        machine: async () => oauthbearer({ token: await tokens.token(), extensions }),
        close: () => tokens.close(new Failure("internal.cancelled", "the Kafka client was closed")),
      };
    }
  }
}

/** As in "SCRAM-SHA-512 as twg"; never a secret. */
export function loginText(settings: SaslSettings): string {
  switch (settings.mechanism) {
    case "OAUTHBEARER":
      return settings.source.from === "oidc"
        ? `OAUTHBEARER as ${settings.source.clientId}`
        : `OAUTHBEARER with a token`;
    case "AWS_MSK_IAM":
      return "AWS_MSK_IAM";
    default:
      return `${settings.mechanism} as ${settings.username}`;
  }
}
