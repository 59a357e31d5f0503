/** `twg doctor`: tries what a pipeline will rest on, before it runs, and says what to do about what it finds. */
import { randomBytes } from "node:crypto";
import { nativeCheckup } from "../adapters/duckdb/doctor.ts";
import { kafkaCheckup } from "../adapters/kafka/doctor.ts";
import { kafkaSettings } from "../adapters/kafka/settings.ts";
import { createNet } from "../adapters/net/net.ts";
import { rootOf } from "../adapters/parquet/template.ts";
import { registryCheckup } from "../adapters/registry/doctor.ts";
import { subjectOfPlan } from "../adapters/registry/schema-sources.ts";
import { registrySettings } from "../adapters/registry/settings.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { hostCheckup } from "../adapters/system/doctor.ts";
import { systemSaslCrypto } from "../adapters/system/sasl-crypto.ts";
import { isBucketUrl } from "../core/config/bucket-url.ts";
import { type DecodeSection, payloadPlan } from "../core/config/decode-options.ts";
import type { RefStatus } from "../core/config/resolve.ts";
import { defaultLanes } from "../core/config/sections.ts";
import { type Checkup, type Finding, failed, ok, skipped, type Verdict } from "../core/ports/doctor.ts";
import type { BatchConfig } from "./batch-config.ts";
import { isBatch } from "./batch-source.ts";
import { type Cli, outJson } from "./cli.ts";
import {
  askSecrets,
  loadConfig,
  type PipelineConfig,
  type ResolvedConfig,
  resolveSecrets,
} from "./config-file.ts";
import { filesCheckup } from "./doctor-files.ts";
import { runCheckups } from "./doctor-run.ts";
import { sinkCheckup } from "./doctor-sinks.ts";
import { encodeOf } from "./kafka-encode.ts";
import { sinkMemory } from "./sink-memory.ts";
import { useStateFolder } from "./state-folder.ts";
import type { Style } from "./style.ts";
import { renderTable } from "./table.ts";
import { VERSION } from "./version.ts";

export interface DoctorOptions {
  readonly config: string;
  readonly json: boolean;
  /** Warnings are a failure too: exit 1. */
  readonly strict: boolean;
  /** For everything together, ms. */
  readonly timeout: number;
}

/**
 * Exit 0: nothing failed (warnings allowed). 1: warnings, under --strict. 2: the file or a secret. 3: something failed.
 * Throws the configuration's Failure.
 */
export async function runDoctor(options: DoctorOptions, cli: Cli): Promise<number> {
  const config = await loadConfig(options.config);
  useStateFolder(config);
  const secrets = (await askSecrets(config, cli.environment)).map((a) => secretFinding(a.status));
  const absent = secrets.some((s) => s.verdict === "failed");
  const checkups = [hostOf(config), nativeCheckup(), ...(await schemasOf(config))];
  if (!absent) checkups.push(...remote(await resolveSecrets(config, cli.environment), cli.environment));
  const findings = [...secrets, ...(await runCheckups(checkups, systemClock, options.timeout))];
  if (absent)
    findings.push(skipped("connections", "source and sinks", "they need the secrets that are missing"));
  const verdict = verdictOf(findings);
  if (options.json) outJson(cli, { file: options.config, verdict, findings });
  else cli.out(reportText(findings, cli.outColour));
  if (absent) return 2;
  if (verdict === "failed") return 3;
  return verdict === "warning" && options.strict ? 1 : 0;
}

function secretFinding({ name, state, place, reason }: RefStatus): Finding {
  if (state === "present") return ok("secrets", name, place);
  const seen = [state, place, reason].filter((t) => t !== "").join(", ");
  return failed("secrets", name, seen, "`twg config secrets` lists where each is looked for");
}

function hostOf(config: PipelineConfig): Checkup {
  const { pipeline, sinks } = config;
  const lanes = pipeline.lanes ?? defaultLanes(navigator.hardwareConcurrency);
  const local = sinks.flatMap((s) => (s.type === "parquet" && !isBucketUrl(rootOf(s.path)) ? [s] : []));
  return hostCheckup({
    version: VERSION,
    lanes,
    budgetBytes: pipeline.max_bytes,
    sinkBytes: sinkMemory(config, lanes)?.bytes ?? 0,
    filesPerLane: sinks.reduce((n, s) => n + (s.type === "parquet" ? s.max_open_files : 1), 0),
    // What is open is not yet visible, and a roll must find room.
    folders: local.map((s) => ({ path: rootOf(s.path), leastBytes: lanes * s.roll_bytes })),
  });
}

function remote(config: ResolvedConfig, environment: Cli["environment"]): Checkup[] {
  const source = isBatch(config)
    ? filesCheckup(config as unknown as BatchConfig, environment)
    : kafkaCheckup(kafkaSettings(config.source, VERSION), {
        net: createNet(systemClock),
        clock: systemClock,
        chance: systemChance,
        crypto: systemSaslCrypto,
      });
  const sinks = config.sinks.map((sink) =>
    sinkCheckup(config, sink, `doctor-${randomBytes(8).toString("hex")}`),
  );
  return [source, ...registryOf(config), ...registriesOfSinks(config), ...sinks.filter((s) => s !== null)];
}

/** Codecs are loaded where there is something to decode. */
async function schemasOf({ decode, source, sink }: PipelineConfig): Promise<Checkup[]> {
  if (decode === null) return [];
  const { schemaFilesCheckup } = await import("./schema-file-check.ts");
  const checkup = schemaFilesCheckup(decode, source.topics ?? [], sink.metadata_prefix);
  return checkup === null ? [] : [checkup];
}

/** With the subjects of the topics that are known by name; those that files have the schemas of need none. */
function registryOf({ decode, source }: ResolvedConfig): Checkup[] {
  if (decode?.registry === undefined) return [];
  const subjects = (source.topics ?? []).flatMap((topic) => {
    return (["value", "key"] as const).flatMap((part) => {
      const plan = payloadPlan(decode as DecodeSection, topic, part);
      if (plan === null || plan.format === "text" || plan.schemaFile !== null) return [];
      if (plan.readerSchema !== null && plan.framing !== "none") return [];
      return [subjectOfPlan(decode.subject_strategy, plan, topic, part)];
    });
  });
  const settings = registrySettings(decode.registry, "decode.registry");
  return [registryCheckup(settings, [...new Set(subjects)], { clock: systemClock, chance: systemChance })];
}

/** Those that no section but the sink's names. A subject that will be registered need not be there. */
function registriesOfSinks({ sinks }: ResolvedConfig): Checkup[] {
  return sinks.flatMap((sink, at) => {
    const encode = sink.type === "kafka" ? sink.encode : undefined;
    const encoding = sink.type === "kafka" ? encodeOf(sink) : null;
    if (encode?.registry === undefined || encoding === null || encoding.format === "json") return [];
    const settings = registrySettings(encode.registry, `sink[${at}].encode.registry`);
    const subjects = encode.register ? [] : [encoding.subject];
    return [registryCheckup(settings, subjects, { clock: systemClock, chance: systemChance })];
  });
}

/** The worst. */
function verdictOf(findings: readonly Finding[]): Verdict {
  for (const v of ["failed", "warning"] as const) if (findings.some((f) => f.verdict === v)) return v;
  return "ok";
}

const STYLE_OF: Readonly<Record<Verdict, Style>> = {
  ok: "green",
  warning: "yellow",
  failed: "red",
  skipped: "dim",
};

function reportText(findings: readonly Finding[], colour: boolean): string {
  const columns = [
    { head: "VERDICT" },
    { head: "CHECK" },
    { head: "AT", max: 60 },
    { head: "SEEN", max: 160 },
  ];
  const rows = findings.map((f) => [
    { text: f.verdict, style: STYLE_OF[f.verdict] },
    f.check,
    f.at,
    f.code === null ? f.seen : `${f.code}: ${f.seen}`,
  ]);
  const advice = findings.flatMap((f) =>
    f.advice === null || f.verdict === "ok" ? [] : [`  ${f.check} ${f.at}: ${f.advice}\n`],
  );
  const count = (v: Verdict) => findings.filter((f) => f.verdict === v).length;
  const todo = advice.length === 0 ? "" : `\nWhat to do:\n${advice.join("")}`;
  return `${renderTable(columns, rows, colour)}${todo}\n${count("ok")} ok, ${count("warning")} warnings, ${count("failed")} failed, ${count("skipped")} skipped\n`;
}
