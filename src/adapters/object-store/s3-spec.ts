/** `[sink.s3]`: every option of an S3-compatible store, declared once. */
import * as z from "zod";
import { awsCredentials, awsProblems } from "../../core/config/aws-options.ts";
import { byteSize, durationMs, MIB, pemText, wholeNumber } from "../../core/config/option-types.ts";
import type { Resolved } from "../../core/config/secret.ts";

/** S3 takes no smaller part but the last, and no more than 10,000 of them. */
export const MIN_PART_BYTES = 5 * MIB;
/** Their tags are in the coverage state while a file is being published, so they are kept far below that. */
export const MAX_PARTS = 1_000;

/** Stores that surely cannot keep what is promised, with the reason. Others are tried at the start. */
const REFUSED: readonly (readonly [RegExp, string])[] = [
  [
    /(^|\.)storage\.googleapis\.com$/,
    "Google Cloud Storage takes no If-None-Match on writes: two writers could overwrite each other's coverage",
  ],
  [/\.blob\.core\.windows\.net$/, "Azure Blob Storage does not speak the S3 protocol"],
];

function endpointProblem(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) return "not an http(s) URL";
  const refused = REFUSED.find(([host]) => host.test(url.hostname));
  if (refused !== undefined) return refused[1];
  if (url.username !== "" || url.password !== "") return "keys do not belong into a URL";
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "") return "a URL without a path is wanted";
  return null;
}

const shape = {
  endpoint: z
    .string()
    .superRefine((text, ctx) => {
      const message = endpointProblem(text);
      if (message !== null) ctx.addIssue({ code: "custom", message, params: { code: "config.range" } });
    })
    .optional()
    .describe("Address of a store that is not AWS.")
    .meta({
      allowed: "an http:// or https:// URL without a path",
      examples: ["https://s3.internal:9000"],
      why: "Without it: AWS, in `region`.",
    }),
  region: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/)
    .optional()
    .describe("Region of the bucket.")
    .meta({
      allowed: "a region such as eu-central-1",
      examples: ["eu-central-1"],
      why: "Without it: AWS_REGION or the profile's; with `endpoint` us-east-1, which such stores ignore.",
    }),
  style: z
    .enum(["virtual", "path"])
    .default("virtual")
    .describe("Where the bucket stands in an address: in the host's name, or first in the path.")
    .meta({ examples: ["path"], why: "AWS wants `virtual`; most stores of one's own want `path`." }),
  ...awsCredentials({ secrets: "s3", profile: "lake-writer" }),
  ca: pemText()
    .optional()
    .describe("Certificates of the authorities that may have signed the endpoint's certificate, PEM.")
    .meta({
      examples: [{ file: "/etc/twg/s3-ca.crt" }],
      why: "Without it: the authorities that the system trusts.",
    }),
  sse: z
    .enum(["AES256", "aws:kms"])
    .optional()
    .describe("Encryption at rest that is asked for with every object.")
    .meta({ examples: ["aws:kms"], why: "Without it: what the bucket has set." }),
  sse_kms_key_id: z
    .string()
    .min(1)
    .max(2048)
    .optional()
    .describe('Key of `sse = "aws:kms"`.')
    .meta({ examples: ["alias/lake"], why: "Without it: the bucket's or the account's own." }),
  checksum: z
    .enum(["crc32", "none"])
    .default("crc32")
    .describe("Checksum that goes with every part and object, and is checked by the store.")
    .meta({
      examples: ["none"],
      why: "A flipped bit on the way is found. `none` is for stores that refuse it.",
    }),
  part_bytes: byteSize({ min: MIN_PART_BYTES, max: 1024 * MIB })
    .default(8 * MIB)
    .describe(
      "Size of a part of an upload, all but the last. Each open file holds up to three of them in memory.",
    )
    .meta({
      unit: "bytes",
      examples: ["8MiB"],
      why: "Large enough for the wire, small enough for many files.",
    }),
  max_requests: wholeNumber({ min: 1, max: 64 })
    .default(4)
    .describe("Most requests that a lane has under way.")
    .meta({ unit: "requests", examples: [4], why: "Two files' parts at a time and their neighbours." }),
  request_timeout_ms: durationMs({ min: 1_000, max: 600_000 })
    .default(60_000)
    .describe("Longest that one request may take before it counts as cut.")
    .meta({ unit: "ms", examples: ["60s"], why: "A part of 8 MiB at 1 MB/s, with room." }),
  gone_after_ms: durationMs({ min: 100, max: 3_600_000 })
    .default(60_000)
    .describe(
      "After a crash: how long a file's upload and its object must both be away before its records are read again.",
    )
    .meta({
      unit: "ms",
      examples: ["60s"],
      why: "Some stores show neither of the two while a large upload is being completed.",
    }),
  coverage_interval_ms: durationMs({ min: 50, max: 60_000 })
    .default(1_000)
    .describe("Shortest time between two writes of the coverage object.")
    .meta({
      unit: "ms",
      examples: ["1s"],
      why: "Some stores allow one write a second to an object. A file is acknowledged after two of them.",
    }),
};

type Shape = z.output<z.ZodObject<typeof shape>>;

function togetherProblems(o: Shape): { path: keyof Shape; message: string; allowed: string }[] {
  const out: { path: keyof Shape; message: string; allowed: string }[] = awsProblems(o);
  if (o.sse_kms_key_id !== undefined && o.sse !== "aws:kms") {
    out.push({ path: "sse_kms_key_id", message: "it has no use", allowed: 'only with `sse = "aws:kms"`' });
  }
  if (o.ca !== undefined && o.endpoint?.startsWith("http://") === true) {
    out.push({
      path: "ca",
      message: "the endpoint speaks no TLS",
      allowed: "only with an https:// endpoint",
    });
  }
  return out;
}

export const s3Spec = z.strictObject(shape).superRefine((o, ctx) => {
  for (const { path, message, allowed } of togetherProblems(o)) {
    ctx.addIssue({ code: "custom", path: [path], message, params: { code: "config.conflict", allowed } });
  }
});

export type S3Options = z.output<typeof s3Spec>;

/** Where the table is left out: AWS by the machine's own credentials. */
export const s3Defaults = (): Resolved<S3Options> => s3Spec.parse({}) as Resolved<S3Options>;
