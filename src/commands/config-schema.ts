/** `twg config schema`: the JSON Schema of the configuration, for editors. */
import { catalogue } from "../adapters/catalogue.ts";
import { configJsonSchema } from "../core/config/json-schema.ts";
import { type Cli, outJson } from "./cli.ts";

export async function runConfigSchema(cli: Cli): Promise<number> {
  outJson(cli, configJsonSchema(catalogue()));
  return 0;
}
