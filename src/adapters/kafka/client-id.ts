/** Options that the source and the sink have in common: who we are to brokers. */
import * as z from "zod";

export const clientId = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[\x20-\x7e]+$/)
  .default("twg")
  .describe("Name under which brokers log us and keep quotas.")
  .meta({ allowed: "printable ASCII", examples: ["twg"] });
