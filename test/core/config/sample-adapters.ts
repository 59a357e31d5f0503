/** A source and a sink with one option of every kind, so that the checks are tested apart from real adapters. */
import * as z from "zod";
import type { AdapterSpec } from "../../../src/core/config/adapter-spec.ts";
import {
  byteSize,
  durationMs,
  hostPort,
  MIB,
  pemText,
  secretString,
} from "../../../src/core/config/option-types.ts";

const source: AdapterSpec = {
  kind: "source",
  name: "kafka",
  about: "a sample source",
  spec: z
    .strictObject({
      bootstrap: z
        .array(hostPort())
        .min(1)
        .describe("Brokers.")
        .meta({ examples: [["kafka:9092"]] }),
      topics: z
        .array(z.string().min(1))
        .min(1)
        .optional()
        .describe("Topics.")
        .meta({ examples: [["orders"]] }),
      start: z.enum(["earliest", "latest"]).default("earliest").describe("Where to begin."),
      eager: z.boolean().default(false).describe("A switch."),
      sasl: z
        .strictObject({
          mechanism: z.enum(["PLAIN", "SCRAM-SHA-256"]).describe("How."),
          username: z.string().describe("Who."),
          password: secretString().describe("What."),
        })
        .optional()
        .describe("Log in."),
      tls: z
        .strictObject({ ca: pemText().optional().describe("Authority.") })
        .optional()
        .describe("Over TLS."),
    })
    .superRefine((o, ctx) => {
      if (o.topics === undefined) ctx.addIssue({ code: "custom", path: ["topics"], message: "name a topic" });
    })
    .describe("Sample source."),
};

const sink: AdapterSpec = {
  kind: "sink",
  name: "parquet",
  about: "a sample sink",
  spec: z
    .strictObject({
      path: z
        .string()
        .min(1)
        .describe("Where.")
        .meta({ examples: ["./data"] }),
      roll_bytes: byteSize({ min: MIB, max: 1024 * MIB })
        .default(128 * MIB)
        .describe("How large.")
        .meta({ unit: "bytes", why: "Because." }),
      mode: z
        .union([z.enum(["fast", "small"]), z.strictObject({ level: z.int() })])
        .optional()
        .describe("A choice or a table."),
      roll_interval_ms: durationMs({ min: 1 }).default(10_000).describe("How long.").meta({ unit: "ms" }),
    })
    .describe("Sample sink."),
};

export const SAMPLE_ADAPTERS: readonly AdapterSpec[] = [source, sink];

export const GOOD = `
[pipeline]
name = "orders"
[source]
type = "kafka"
bootstrap = ["kafka:9092"]
topics = ["orders"]
[[sink]]
name = "raw"
type = "parquet"
path = "./data"
`;
