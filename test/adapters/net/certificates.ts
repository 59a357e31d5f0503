/** Throw-away certificates by the openssl command, made once per test run. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Pair {
  readonly cert: string;
  readonly key: string;
}

export interface Certificates {
  readonly ca: string;
  readonly otherCa: string;
  /** For `localhost` and 127.0.0.1. */
  readonly server: Pair;
  /** For `localhost` alone. */
  readonly named: Pair;
  /** Ended in the past. */
  readonly expired: Pair;
  readonly client: Pair;
}

function openssl(cwd: string, ...args: string[]): void {
  const run = spawnSync("openssl", args, { cwd, encoding: "utf8" });
  if (run.status !== 0) throw new Error(`openssl ${args[0]}: ${run.stderr}`);
}

const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"] as const;

function authority(dir: string, name: string): string {
  const out = ["-keyout", `${name}.key`, "-out", `${name}.crt`];
  openssl(dir, "req", "-x509", ...KEY, "-days", "30", "-subj", `/CN=${name}`, ...out);
  return readFileSync(join(dir, `${name}.crt`), "utf8");
}

function signed(dir: string, name: string, extensions: string, validity: readonly string[]): Pair {
  openssl(dir, "req", ...KEY, "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.csr`);
  writeFileSync(join(dir, `${name}.ext`), extensions);
  const authority = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"];
  const out = ["-extfile", `${name}.ext`, "-out", `${name}.crt`];
  openssl(dir, "x509", "-req", "-in", `${name}.csr`, ...authority, ...validity, ...out);
  const read = (suffix: string) => readFileSync(join(dir, `${name}.${suffix}`), "utf8");
  return { cert: read("crt"), key: read("key") };
}

export function makeCertificates(): Certificates {
  const dir = mkdtempSync(join(tmpdir(), "twg-certs-"));
  try {
    const ca = authority(dir, "ca");
    const both = "subjectAltName=DNS:localhost,IP:127.0.0.1";
    return {
      ca,
      otherCa: authority(dir, "other"),
      server: signed(dir, "server", both, ["-days", "30"]),
      named: signed(dir, "named", "subjectAltName=DNS:localhost", ["-days", "30"]),
      expired: signed(dir, "expired", both, ["-days", "-1"]),
      client: signed(dir, "client", "extendedKeyUsage=clientAuth", ["-days", "30"]),
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
