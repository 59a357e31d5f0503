/** Test certificates, made by openssl: a CA, a server and a client signed by it, a CA that signed nobody, a token key. */
import { createPublicKey } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface TlsFiles {
  readonly ca: string;
  /** A CA that the servers' certificates do not come from. */
  readonly wrongCa: string;
  /** Key and chain in one file, as the broker's PEM key store wants it. */
  readonly serverPem: string;
  readonly clientCert: string;
  readonly clientKey: string;
  /** Private key of tokens, PEM, and its public half as a JWKS. */
  readonly tokenKey: string;
  readonly jwks: string;
}

export function makeTls(folder: string): TlsFiles {
  const at = (name: string) => join(folder, name);
  const files: TlsFiles = {
    ca: at("ca.crt"),
    wrongCa: at("wrong-ca.crt"),
    serverPem: at("server.pem"),
    clientCert: at("client.crt"),
    clientKey: at("client.key"),
    tokenKey: at("token.key"),
    jwks: at("jwks.json"),
  };
  if (existsSync(files.serverPem)) return files;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  authority(folder, "ca");
  authority(folder, "wrong-ca");
  signed(folder, "client", "extendedKeyUsage=clientAuth");
  signed(folder, "server", "subjectAltName=DNS:localhost,IP:127.0.0.1");
  openssl(folder, ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], { out: "token.key" });
  writeFileSync(files.jwks, jwksOf(readFileSync(files.tokenKey, "utf8")));
  writeFileSync(
    files.serverPem,
    readFileSync(at("server.key"), "utf8") + readFileSync(at("server.crt"), "utf8"),
  );
  return files;
}

/** The key id that tokens name. */
export const TOKEN_KEY_ID = "k1";

/** The public half of a PEM key as a JWKS document. */
function jwksOf(key: string): string {
  const jwk = createPublicKey(key).export({ format: "jwk" });
  return JSON.stringify({ keys: [{ ...jwk, kid: TOKEN_KEY_ID, use: "sig", alg: "RS256" }] });
}

function authority(folder: string, name: string): void {
  openssl(
    folder,
    ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", `/CN=twg test ${name}`],
    {
      keyout: `${name}.key`,
      out: `${name}.crt`,
    },
  );
}

function signed(folder: string, name: string, extension: string): void {
  openssl(folder, ["req", "-newkey", "rsa:2048", "-nodes", "-subj", `/CN=${name}`], {
    keyout: `${name}.key`,
    out: `${name}.csr`,
  });
  writeFileSync(join(folder, `${name}.ext`), `${extension}\n`);
  openssl(folder, ["x509", "-req", "-days", "3650", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"], {
    in: `${name}.csr`,
    extfile: `${name}.ext`,
    out: `${name}.crt`,
  });
}

function openssl(folder: string, args: string[], named: Record<string, string>): void {
  const options = Object.entries(named).flatMap(([k, v]) => [`-${k}`, v]);
  const done = Bun.spawnSync(["openssl", ...args, ...options], {
    cwd: folder,
    stdout: "pipe",
    stderr: "pipe",
  });
  if (!done.success) throw new Error(`openssl ${args[0]} failed: ${done.stderr}`);
}
