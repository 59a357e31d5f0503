/** The parts of a Postgres sink: transactions in the lanes, coverage in the same database. */
import { linuxIdentity } from "../adapters/coverage/host-identity.ts";
import { createNet } from "../adapters/net/net.ts";
import { PostgresCoverage } from "../adapters/postgres/coverage.ts";
import { prepareSink } from "../adapters/postgres/prepare.ts";
import { type PostgresSettings, postgresSettings } from "../adapters/postgres/settings.ts";
import { parseTableName, type TableName } from "../adapters/postgres/table/names.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { systemSaslCrypto } from "../adapters/system/sasl-crypto.ts";
import { CoveredCommitter } from "../core/delivery/covered-committer.ts";
import { Failure, toWire } from "../core/failure/failure.ts";
import type { ResolvedConfig, SinkOf } from "./config-file.ts";
import { LEASE_MS, type SinkContext, type SinkParts } from "./sink-parts.ts";

export const postgresClientParts = {
  net: createNet(systemClock),
  clock: systemClock,
  crypto: systemSaslCrypto,
  chance: systemChance,
};

export function settingsOf(config: ResolvedConfig, sink: SinkOf<"postgres">): PostgresSettings {
  const application = `twg ${config.pipeline.name}/${sink.name}`;
  return postgresSettings(sink, application, config.written.has("sink[0].sslmode"));
}

export function tableOf(sink: SinkOf<"postgres">): TableName {
  const table = parseTableName(sink.table);
  if (typeof table === "string") throw new Failure("internal.bug", `a table name that was checked: ${table}`);
  return table;
}

export function postgresParts(
  config: ResolvedConfig,
  sink: SinkOf<"postgres">,
  { instance, shared, observer }: SinkContext,
): SinkParts {
  const { pipeline } = config;
  const settings = settingsOf(config, sink);
  const table = tableOf(sink);
  const place = {
    settings,
    stateSchema: sink.state_schema,
    pipeline: pipeline.name,
    sink: sink.name,
    lockTimeoutMs: sink.lock_timeout_ms,
  };
  const coverage = new PostgresCoverage(
    { ...place, instance, leaseMs: LEASE_MS, shared },
    {
      ...postgresClientParts,
      host: linuxIdentity(),
      waiting: (owner, ms) => observer.emit({ e: "coverage.waiting", owner, ms }),
      trouble: (f) =>
        observer.emit(
          f === null ? { e: "coverage.healthy" } : { e: "coverage.troubled", failure: toWire(f) },
        ),
    },
  );
  return {
    coverage,
    committer: (listener) =>
      new CoveredCommitter({ sink: sink.name, clock: systemClock, observer, listener }),
    lane: {
      kind: "postgres",
      rollBytes: sink.commit_bytes,
      rollIntervalMs: sink.commit_interval_ms,
      writer: {
        ...place,
        table,
        prefix: sink.metadata_prefix,
        commitBytes: sink.commit_bytes,
        intervalMs: sink.commit_interval_ms,
      },
      crashAt: process.env.TWG_CRASH_AT ?? null,
    },
    prepare: () =>
      prepareSink(
        { settings, table, prefix: sink.metadata_prefix, create: sink.create },
        postgresClientParts,
      ),
    // A transaction that was not committed leaves nothing.
    sweep: () => Promise.resolve(),
  };
}
