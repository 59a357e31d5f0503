/** `twg config init`: a commented starter file on standard output. */
import { catalogue } from "../adapters/catalogue.ts";
import type { AdapterKind, AdapterSpec } from "../core/config/adapter-spec.ts";
import { nearest } from "../core/config/nearest.ts";
import { starterFile } from "../core/config/starter.ts";
import { Failure } from "../core/failure/failure.ts";
import type { Cli } from "./cli.ts";

export async function runConfigInit(options: { source: string; sink: string }, cli: Cli): Promise<number> {
  cli.out(starterFile(adapterNamed("source", options.source), adapterNamed("sink", options.sink)));
  return 0;
}

function adapterNamed(kind: AdapterKind, name: string): AdapterSpec {
  const known = catalogue().filter((a) => a.kind === kind);
  const found = known.find((a) => a.name === name);
  if (found !== undefined) return found;
  const names = known.map((a) => a.name);
  const near = nearest(name, names);
  throw new Failure(
    "cli.usage",
    `no ${kind} is named ${JSON.stringify(name)}, there is ${names.join(", ")}`,
    {
      at: `--${kind}`,
      ...(near === null ? {} : { hint: `Did you mean ${near}?` }),
    },
  );
}
