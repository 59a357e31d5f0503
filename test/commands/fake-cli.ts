/** A command line whose output is kept, and configuration files in a folder of their own. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cli } from "../../src/commands/cli.ts";

export interface FakeCli extends Cli {
  readonly stdout: () => string;
  readonly stderr: () => string;
}

export function fakeCli(environment: Cli["environment"] = {}, colour = false): FakeCli {
  let out = "";
  let err = "";
  return {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    environment,
    outColour: colour,
    errColour: colour,
    errIsTerminal: false,
    stdout: () => out,
    stderr: () => err,
  };
}

export function fileWith(text: string | Uint8Array, name = "orders.toml"): string {
  const path = join(mkdtempSync(join(tmpdir(), "twg-cli-")), name);
  writeFileSync(path, text);
  return path;
}

export const ORDERS = `
[pipeline]
name = "orders"

[source]
type = "kafka"
bootstrap = ["127.0.0.1:1"]
topics = ["orders"]
group = "twg-orders"

[source.sasl]
mechanism = "SCRAM-SHA-512"
username = "twg"
password = { secret = "kafka-password" }

[[sink]]
name = "raw"
type = "parquet"
path = "./data"
`;
