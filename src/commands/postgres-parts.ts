/** The parts of a Postgres sink: transactions in the lanes, coverage in the same database. */
import { linuxIdentity } from "../adapters/coverage/host-identity.ts";
import { createNet } from "../adapters/net/net.ts";
import type { TargetColumn } from "../adapters/postgres/copy/table-rows.ts";
import type { CopySetOptions } from "../adapters/postgres/copy-set-options.ts";
import { PostgresCoverage } from "../adapters/postgres/coverage.ts";
import { type Prepared, prepareFields, prepareSink } from "../adapters/postgres/prepare.ts";
import { type PostgresSettings, postgresSettings } from "../adapters/postgres/settings.ts";
import type { TableGrowth } from "../adapters/postgres/table/grow.ts";
import { parseTableName, type TableName } from "../adapters/postgres/table/names.ts";
import { type RowKeyOptions, rowKeyOf } from "../adapters/postgres/table/row-key.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { systemSaslCrypto } from "../adapters/system/sasl-crypto.ts";
import { CoveredCommitter } from "../core/delivery/covered-committer.ts";
import { Failure } from "../core/failure/failure.ts";
import { tableFields } from "../core/pipeline/row-table.ts";
import type { TableSpec } from "../core/ports/batch-lane.ts";
import type { ResolvedConfig, SinkOf } from "./config-file.ts";
import { crashPlan } from "./crash-hook.ts";
import type { PostgresLaneSink } from "./lane-config.ts";
import { commitBytesOf } from "./sink-memory.ts";
import {
  type BatchSinkParts,
  coverageTrouble,
  HOLD_SHARE,
  LEASE_MS,
  type SinkContext,
  type SinkParts,
} from "./sink-parts.ts";

export const postgresClientParts = {
  net: createNet(systemClock),
  clock: systemClock,
  crypto: systemSaslCrypto,
  chance: systemChance,
};

type Configured = Pick<ResolvedConfig, "pipeline" | "written" | "sinks">;

export function settingsOf(config: Configured, sink: SinkOf<"postgres">): PostgresSettings {
  const at = config.sinks.findIndex((s) => s.name === sink.name);
  const application = `twg ${config.pipeline.name}/${sink.name}`;
  return postgresSettings(sink, application, config.written.has(`sink[${at}].sslmode`));
}

function tableNamed(text: string): TableName {
  const table = parseTableName(text);
  if (typeof table === "string") throw new Failure("internal.bug", `a table name that was checked: ${table}`);
  return table;
}

/** What a start proves or makes. */
export function preparedOf(config: Configured, sink: SinkOf<"postgres">): Prepared {
  return {
    settings: settingsOf(config, sink),
    table: tableNamed(sink.table),
    create: sink.create,
    rejects: sink.rejects === undefined ? null : tableNamed(sink.rejects),
    stateSchema: sink.state_schema,
    key: { pipeline: config.pipeline.name, sink: sink.name },
    rowKey: rowKeyOptions(sink),
  };
}

function rowKeyOptions(sink: SinkOf<"postgres">): RowKeyOptions | null {
  if (!sink.row_key) return null;
  const { create, rewrite_max_bytes: maxBytes, lock_timeout_ms: lockTimeoutMs } = sink;
  return { key: rowKeyOf(sink.metadata_prefix), create, maxBytes, lockTimeoutMs };
}

export function postgresParts(config: Configured, sink: SinkOf<"postgres">, context: SinkContext): SinkParts {
  const upsert = sink.mode === "upsert";
  const { coverage, ...shared } = sharedParts(config, sink, context);
  let lane = laneSink(config, sink, context);
  return {
    ...shared,
    coverage,
    windows: coverage,
    get lane() {
      return lane;
    },
    prepare: () =>
      prepareSink({ ...preparedOf(config, sink), prefix: sink.metadata_prefix, upsert }, postgresClientParts),
    renew(renewed) {
      const again = renewed.sinks.find((s) => s.name === sink.name);
      if (again?.type !== "postgres") return false;
      const before = lane.writer.settings;
      lane = laneSink(renewed, again, context);
      coverage.renew(lane.writer.settings);
      return JSON.stringify(before) !== JSON.stringify(lane.writer.settings);
    },
  };
}

function laneSink(
  config: Configured,
  sink: SinkOf<"postgres">,
  { lanes, secondary }: SinkContext,
): PostgresLaneSink {
  const commitBytes =
    secondary === null
      ? commitBytesOf(config.pipeline, sink, lanes)
      : Math.min(sink.commit_bytes, secondary.holdBytes / HOLD_SHARE);
  return {
    kind: "postgres",
    rollBytes: commitBytes,
    rollIntervalMs: sink.commit_interval_ms,
    writer: {
      ...copySetOptions(config, sink, sink.commit_interval_ms, secondary !== null),
      prefix: sink.metadata_prefix,
      // A secondary one waits for the primary: what comes meanwhile counts into what it may hold.
      commitBytes: secondary === null ? commitBytes : Number.MAX_SAFE_INTEGER,
      upsert: sink.mode === "upsert",
      indexed: secondary === null && sink.mode === "append",
    },
    crashAt: crashPlan(process.env.TWG_CRASH_AT, secondary === null ? null : sink.name),
  };
}

/** The parts of a batch job's sink: rows of files in typed columns. */
export function postgresTableParts(
  config: Configured,
  sink: SinkOf<"postgres">,
  context: SinkContext,
  spec: TableSpec,
): BatchSinkParts {
  const fields = tableFields(spec);
  const key = sink.mode === "upsert" ? (sink.key ?? []) : [];
  const order = ["incarnation", "offset"].map((name) => `${spec.prefix}source_${name}`);
  let targets: readonly TargetColumn[] | null = null;
  return {
    ...sharedParts(config, sink, context),
    prepare: async () => {
      targets = await prepareFields(
        { ...preparedOf(config, sink), unique: key },
        fields,
        postgresClientParts,
      );
    },
    lane: () => {
      if (targets === null) throw new Failure("internal.bug", "a lane before its table was prepared");
      return {
        kind: "postgres",
        rollBytes: commitBytesOf(config.pipeline, sink, context.lanes),
        writer: {
          ...copySetOptions(config, sink, BATCH_INTERVAL_MS, false),
          fields,
          targets,
          upsert: key.length === 0 ? null : { key, order, across: null },
        },
        crashAt: crashPlan(process.env.TWG_CRASH_AT, null),
      };
    },
  };
}

/** A set of a batch job is open as long as its lane is kept waiting for the next piece. */
const BATCH_INTERVAL_MS = 3_600_000;

function copySetOptions(
  config: Configured,
  sink: SinkOf<"postgres">,
  intervalMs: number,
  leavesHoles: boolean,
): CopySetOptions {
  const { settings, table, rejects, rowKey: row } = preparedOf(config, sink);
  const { max_rejects: maxRejects } = sink;
  const rowKey = row?.key ?? null;
  return { ...placeOf(config, sink), settings, table, rejects, intervalMs, maxRejects, leavesHoles, rowKey };
}

/** How the table of decoded rows may change. */
export function growthOf({
  lock_timeout_ms: lockTimeoutMs,
  rewrite_max_bytes: rewriteMaxBytes,
  date_to_timestamp: dateToTimestamp,
}: SinkOf<"postgres">): TableGrowth {
  return { lockTimeoutMs, rewriteMaxBytes, dateToTimestamp };
}

function placeOf(config: Configured, sink: SinkOf<"postgres">) {
  return {
    stateSchema: sink.state_schema,
    pipeline: config.pipeline.name,
    sink: sink.name,
    lockTimeoutMs: sink.lock_timeout_ms,
  };
}

function sharedParts(
  config: Configured,
  sink: SinkOf<"postgres">,
  context: SinkContext,
): Pick<SinkParts, "committer" | "sweep"> & { readonly coverage: PostgresCoverage } {
  const { instance, shared, observer, leaseMs = LEASE_MS } = context;
  const settings = settingsOf(config, sink);
  const coverage = new PostgresCoverage(
    { ...placeOf(config, sink), settings, instance, leaseMs, shared },
    {
      ...postgresClientParts,
      host: linuxIdentity(),
      waiting: (owner, ms) => observer.emit({ e: "coverage.waiting", owner, ms }),
      trouble: coverageTrouble(context),
    },
  );
  return {
    coverage,
    committer: (listener) =>
      new CoveredCommitter({ sink: sink.name, clock: systemClock, observer, listener }),
    // A transaction that was not committed leaves nothing.
    sweep: () => Promise.resolve(),
  };
}
