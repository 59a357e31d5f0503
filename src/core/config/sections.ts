/**
 * The sections that belong to no adapter: the pipeline itself, the batch, observability and secrets.
 * Sources and sinks declare theirs in `adapters/<name>/spec.ts`.
 */
import * as z from "zod";
import {
  byteSize,
  durationMs,
  MIB,
  parseHostPort,
  pemText,
  secretString,
  wholeNumber,
} from "./option-types.ts";

/** Part of file names, metric labels and the default consumer group. */
export const PIPELINE_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

export const pipelineSpec = z
  .strictObject({
    name: z
      .string()
      .regex(PIPELINE_NAME)
      .describe(
        "Names the pipeline in file metadata, metrics and the `_twg_pipeline` column. Fixed once data was written.",
      )
      .meta({
        allowed: "1 to 63 of a-z, 0-9, '-' and '_', beginning with a letter or digit",
        examples: ["orders"],
      }),
    role: z
      .enum(["ingest", "recovery", "both"])
      .default("ingest")
      .describe(
        "What `twg stream` does: live ingest, recovery of gaps in secondary sinks from raw, or both in one process.",
      )
      .meta({
        why: "What a sink lacks is filled when somebody asks for it (`twg recover`), or by processes that only recover: they may run anywhere, any number of them, beside the one that reads the source. With one sink there is nothing to recover.",
      }),
    state_dir: z
      .string()
      .min(1)
      .default("/var/lib/twg")
      .describe(
        "Folder for what this machine may lose: in this version the engine libraries that are unpacked at the first start. Where it cannot be written another cache folder or memory is used.",
      )
      .meta({
        allowed: "a folder that can be made and written; a relative path begins at the working directory",
      }),
    lanes: wholeNumber({ min: 1, max: 64 })
      .optional()
      .describe("Worker threads that decode and write. Partitions are spread over them.")
      .meta({ unit: "threads", examples: [2], why: "Without it: one per processor, at most 4." }),
    max_bytes: byteSize({ min: 4 * MIB, max: 64 * 1024 * MIB })
      .default(32 * MIB)
      .describe(
        "Most bytes in flight between the source and the sink. Memory is about base + 2 x this, whatever the lag.",
      )
      .meta({
        unit: "bytes",
        examples: ["64MiB"],
        why: "More is no faster beside a near broker. It keeps a default process near 200 MB.",
      }),
    record_size_est_bytes: byteSize({ min: 1, max: 16 * MIB })
      .default(256)
      .describe(
        "Seed and floor of the record-size estimate, which follows the 95th percentile of what arrives.",
      )
      .meta({ unit: "bytes", examples: [256], why: "The size of a small JSON event." }),
    max_records_per_s: wholeNumber({ min: 1 })
      .optional()
      .describe("Rate limit of the source in records.")
      .meta({ unit: "records/s", examples: [100000], why: "Without it: no limit." }),
    max_bytes_per_s: byteSize({ min: 1 })
      .optional()
      .describe("Rate limit of the source in bytes as fetched.")
      .meta({ unit: "bytes/s", examples: ["50MiB"], why: "Without it: no limit." }),
    stall_ms: durationMs({ min: 1000, max: 86_400_000 })
      .default(120_000)
      .describe(
        "Work is waiting and nothing moved for this long: the process reports internal.stalled and ends, so that its supervisor starts it anew.",
      )
      .meta({ unit: "ms", examples: ["2m"], why: "Above every retry and time-out of a healthy client." }),
    drain_ms: durationMs({ min: 0, max: 3_600_000 })
      .default(30_000)
      .describe("Most time that a stop (SIGTERM) waits for open files to be published and acknowledged.")
      .meta({ unit: "ms", examples: ["30s"], why: "The grace period of Kubernetes." }),
  })
  .describe("The pipeline as a whole.");

/** Of recovery where nothing else is configured, while a pipeline writes: some fifth of what two processors land live. */
export const RECOVERY_BESIDE_BYTES_PER_S: number = 16 * MIB;

export const recoverySpec = z
  .strictObject({
    window_bytes: byteSize({ min: 64 * 1024, max: 16 * 1024 * MIB })
      .default(256 * MIB)
      .describe(
        "Most bytes of raw files that are leased and filled at a time; a larger set of files is taken whole. What a process that dies was at waits for the end of its lease.",
      )
      .meta({ unit: "bytes", examples: ["256MiB"], why: "As much as one raw file of the default size." }),
    max_bytes: byteSize({ min: 4 * MIB, max: 64 * 1024 * MIB })
      .default(32 * MIB)
      .describe(
        "Most bytes of raw files in flight between their reading and the sinks; one row group is always taken.",
      )
      .meta({ unit: "bytes", examples: ["32MiB"], why: "As `pipeline.max_bytes`." }),
    max_bytes_per_s: byteSize({ min: 1 })
      .optional()
      .describe("Rate limit of recovery in bytes of raw files.")
      .meta({
        unit: "bytes/s",
        examples: ["20MiB"],
        why: "Without it: 16MiB/s while a pipeline writes raw, so that live records keep their rate; no limit while none does.",
      }),
    max_records_per_s: wholeNumber({ min: 1 })
      .optional()
      .describe("Rate limit of recovery in records.")
      .meta({ unit: "records/s", examples: [50000], why: "Without it: no limit." }),
    lease_ms: durationMs({ min: 6_000, max: 3_600_000 })
      .default(15_000)
      .describe(
        "How long a process that leases a window, or that owns a sink on another machine, may write nothing before recovery takes its place, by the clock of the one that takes it. Each writes every 3 s.",
      )
      .meta({
        unit: "ms",
        examples: ["15s"],
        why: "Five beats. One that is known to be dead is followed at once.",
      }),
    poll_ms: durationMs({ min: 100, max: 3_600_000 })
      .default(5_000)
      .describe(
        "Time between two looks at what sinks lack, where `role` recovers and nothing was to be done; twice as long with each such look, up to `poll_max_ms`, a fifth more or less by chance.",
      )
      .meta({ unit: "ms", examples: ["5s"], why: "A gap is young then." }),
    poll_max_ms: durationMs({ min: 100, max: 86_400_000 })
      .default(60_000)
      .describe("Longest time between two looks, also while a look or a sink fails.")
      .meta({
        unit: "ms",
        examples: ["1m"],
        why: "A look reads the coverage of raw and of each sink over connections that it closes again.",
      }),
  })
  .describe("Filling gaps of secondary sinks from raw: `twg recover`, and `role` in [pipeline].");

/** A lane's columns are made for so much at most; `[batch]` can only make them smaller. */
export const RAW_BATCH_RECORDS = 65_536;
export const RAW_BATCH_BYTES: number = 8 * MIB;

export const batchSpec = z
  .strictObject({
    max_wait_ms: durationMs({ min: 1, max: 600_000 })
      .default(1000)
      .describe(
        "Longest that a batch waits for more records before it is decoded. Without effect in this version: raw records wait for nothing, each fetch is written as it comes.",
      )
      .meta({ unit: "ms", examples: [1000] }),
    max_records: wholeNumber({ min: 1, max: 10_000_000 })
      .default(500_000)
      .describe(
        `Most records of a batch. Raw batches have at most ${RAW_BATCH_RECORDS} whatever is set: a larger value has no effect in this version.`,
      )
      .meta({ unit: "records", examples: [500_000] }),
    max_bytes: byteSize({ min: 64 * 1024, max: 1024 * MIB })
      .default(16 * MIB)
      .describe(
        "Most bytes of a batch. At most `pipeline.max_bytes`, to which the default yields. Raw batches are emitted at 8 MiB whatever is set: a larger value has no effect in this version.",
      )
      .meta({
        unit: "bytes",
        examples: ["16MiB"],
        why: "Half the default budget, so that one batch fills while one is written.",
      }),
  })
  .describe("What is decoded and written at a time.");

export const LISTEN_OFF = "off";

export const observabilitySpec = z
  .strictObject({
    listen: z
      .string()
      .refine((v) => v === LISTEN_OFF || parseHostPort(v) !== null, "not host:port")
      .default("127.0.0.1:9464")
      .describe(
        'Address of /live, /ready, /health, /metrics, /stats and the status page (/). Port 0 takes any free port; "off" opens none.',
      )
      .meta({
        allowed: `"host:port" or "off"`,
        examples: ["127.0.0.1:9464"],
        why: "Loopback: nobody else can read it.",
      }),
    tls: z
      .strictObject({
        cert: pemText()
          .describe("Certificate chain, PEM.")
          .meta({ examples: [{ file: "/etc/twg/tls.crt" }] }),
        key: pemText()
          .describe("Private key, PEM.")
          .meta({ examples: [{ secret: "http-key" }] }),
      })
      .optional()
      .describe("Serve over TLS. Beyond loopback either this or a token is required."),
    token: secretString()
      .optional()
      .describe("Bearer token that every request must carry, /live excepted.")
      .meta({ examples: [{ secret: "http-token" }], why: "Without it: none, loopback only." }),
  })
  .superRefine((o, ctx) => {
    const open = parseHostPort(o.listen) !== null && !isLoopback(o.listen);
    if (!open || o.tls !== undefined || o.token !== undefined) return;
    ctx.addIssue({
      code: "custom",
      path: ["listen"],
      message: "an address beyond loopback needs `tls` or `token` in [observability]",
      params: {
        code: "config.conflict",
        allowed: `a loopback address such as "127.0.0.1:9464", or tls or token set`,
      },
    });
  })
  .describe("Health, metrics and status over HTTP.");

export const secretsSpec = z
  .strictObject({
    dir: z
      .string()
      .min(1)
      .default("/run/secrets/twg")
      .describe(
        "Folder with one file per secret. The environment (TWG_SECRET_NAME) is asked where a file is missing.",
      )
      .meta({
        allowed: "a folder path; a relative one begins at the working directory",
        why: "Where container platforms mount secrets.",
      }),
  })
  .describe('Where `{ secret = "name" }` values come from.');

export type PipelineSection = z.output<typeof pipelineSpec>;
export type RecoverySection = z.output<typeof recoverySpec>;
export type BatchSection = z.output<typeof batchSpec>;
export type ObservabilitySection = z.output<typeof observabilitySpec>;
export type SecretsSection = z.output<typeof secretsSpec>;

/** 127.0.0.0/8, ::1 and localhost; names that merely resolve there do not count. */
export function isLoopback(listen: string): boolean {
  const host = parseHostPort(listen)?.host.toLowerCase();
  return (
    host !== undefined &&
    (host === "localhost" || host === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host))
  );
}

/** Lanes where `pipeline.lanes` is not set. More than four gain nothing while one control thread feeds them. */
export function defaultLanes(processors: number): number {
  return Math.max(1, Math.min(4, Math.floor(processors)));
}
