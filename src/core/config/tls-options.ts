/** The options of a TLS client that every network component has; each puts them in its own `tls` section. */
import * as z from "zod";
import { pemText } from "./option-types.ts";

/** How a component names its peers, and the names of its examples. */
export interface TlsWords {
  /** "the server's certificate", "the brokers' certificates". */
  readonly certificate: string;
  /** "servers", "brokers". */
  readonly peers: string;
  /** "Name that ...": meaning of `server_name`. */
  readonly serverName: string;
  readonly examples: {
    readonly ca: string;
    readonly cert: string;
    readonly key: string;
    readonly name: string;
  };
}

export function clientTls({ certificate, peers, serverName, examples }: TlsWords) {
  return {
    ca: pemText()
      .optional()
      .describe(`Certificates of the authorities that may have signed ${certificate}, PEM.`)
      .meta({
        examples: [{ file: examples.ca }],
        why: "Without it: the authorities that the system trusts.",
      }),
    cert: pemText()
      .optional()
      .describe(`Our certificate with its chain, PEM, for ${peers} that ask for one.`)
      .meta({ examples: [{ file: examples.cert }] }),
    key: pemText()
      .optional()
      .describe("Private key of `cert`, PEM.")
      .meta({ examples: [{ secret: examples.key }] }),
    server_name: z
      .string()
      .min(1)
      .max(253)
      .optional()
      .describe(serverName)
      .meta({ examples: [examples.name] }),
  };
}

/** Refines a section with `cert` and `key`: one is of no use without the other. */
export function certWithKey(
  o: { readonly cert?: unknown; readonly key?: unknown },
  ctx: z.core.$RefinementCtx,
): void {
  if ((o.cert === undefined) === (o.key === undefined)) return;
  ctx.addIssue({
    code: "custom",
    path: [o.cert === undefined ? "cert" : "key"],
    message: "`cert` and `key` go together",
    params: { code: "config.conflict", allowed: "both `cert` and `key`, or neither" },
  });
}
