/** A writer and the coverage of one sink against the real server, with records as plain rows. */

import type { TransactionPoint } from "../../../src/adapters/postgres/copy-set.ts";
import { PostgresCoverage } from "../../../src/adapters/postgres/coverage.ts";
import { prepareSink } from "../../../src/adapters/postgres/prepare.ts";
import type { PostgresSettings } from "../../../src/adapters/postgres/settings.ts";
import { rowKeyOf } from "../../../src/adapters/postgres/table/row-key.ts";
import { PostgresWriter } from "../../../src/adapters/postgres/writer.ts";
import { asFailure } from "../../../src/core/failure/failure.ts";
import type { Authority } from "../../../src/core/ports/coverage.ts";
import type { HostIdentity, Life } from "../../../src/core/ports/host-identity.ts";
import type { SetFiles, SetRefusal } from "../../../src/core/ports/lane-parts.ts";
import { type StreamId, streamKey } from "../../../src/core/records/stream.ts";
import { batchOf, type Row, STREAM } from "../../core/formats/parquet/rows.ts";
import { parts } from "./server.ts";

export const TABLE = { schema: "public", table: "raw" } as const;
export const KEY: string = streamKey(STREAM);

export interface SinkOptions {
  readonly settings: PostgresSettings;
  readonly instance?: string;
  readonly lockTimeoutMs?: number;
  readonly table?: { readonly schema: string; readonly table: string };
  readonly upsert?: boolean;
  readonly maxRejects?: number;
  readonly leavesHoles?: boolean;
  /** Rows are there once by their record's id. */
  readonly rowKey?: boolean;
  /** Largest table that gets its index from us. */
  readonly maxBytes?: number;
  /** The raw index is kept. */
  readonly indexed?: boolean;
  readonly hook?: (point: TransactionPoint) => void;
  /** Members of a group beside each other. */
  readonly shared?: boolean;
  /** What is known of other processes. */
  readonly life?: Life;
}

let serial = 0;

export class Sink {
  readonly coverage: PostgresCoverage;
  readonly writer: PostgresWriter;
  readonly #o: SinkOptions;
  #sets = 0;
  readonly instance: string;

  constructor(options: SinkOptions) {
    this.#o = options;
    const { settings, lockTimeoutMs = 5000, hook, life = "dead", shared: members = false } = options;
    this.instance = options.instance ?? `i${serial++}`;
    const shared = { settings, stateSchema: "twg", pipeline: "p", sink: "raw", lockTimeoutMs };
    const host: HostIdentity = {
      self: { hostname: "h", pid: 1, bootId: "b", pidNamespace: "n", startTime: this.instance },
      isAlive: () => life,
    };
    this.coverage = new PostgresCoverage(
      { ...shared, instance: this.instance, leaseMs: 300, shared: members },
      { ...parts, host },
    );
    this.writer = new PostgresWriter(
      {
        ...shared,
        table: options.table ?? TABLE,
        rejects: null,
        maxRejects: options.maxRejects ?? 100,
        leavesHoles: options.leavesHoles ?? false,
        rowKey: options.rowKey === true ? rowKeyOf("_twg_") : null,
        upsert: options.upsert ?? false,
        indexed: options.indexed ?? false,
        prefix: "_twg_",
        commitBytes: 16 * 1024 * 1024,
        intervalMs: 1000,
      },
      // As lanes of recovery are named: without its mark.
      {
        ...parts,
        writer: `${this.instance.replace(/^recovery-/, "")}-l0`,
        ...(hook === undefined ? {} : { hook }),
      },
    );
  }

  prepare(create = true): Promise<void> {
    const { settings, table = TABLE, upsert = false, maxBytes = 2 ** 30, lockTimeoutMs = 5000 } = this.#o;
    const rowKey =
      this.#o.rowKey === true ? { key: rowKeyOf("_twg_"), create, maxBytes, lockTimeoutMs } : null;
    const state = { rejects: null, stateSchema: "twg", key: { pipeline: "p", sink: "raw" } };
    return prepareSink({ settings, table, prefix: "_twg_", create, upsert, rowKey, ...state }, parts);
  }

  /** Takes the sink and the stream; the authority to write it. */
  async claimed(stream: StreamId = STREAM): Promise<readonly Authority[]> {
    await this.coverage.open();
    return this.claim(stream);
  }

  async claim(stream: StreamId = STREAM): Promise<readonly Authority[]> {
    return (await this.coverage.claim([streamKey(stream)], null)).map((c) => c.authority);
  }

  /** One set of these rows, whose span is [first offset, last offset + 1). */
  async land(
    rows: readonly Row[],
    authorities: readonly Authority[],
    stream: StreamId = STREAM,
  ): Promise<SetFiles | SetRefusal> {
    this.begin(rows, stream);
    return this.seal(rows, authorities, stream);
  }

  begin(rows: readonly Row[], stream: StreamId = STREAM): void {
    this.writer.open(`${this.instance}-${this.#sets++}`);
    this.writer.write(batchOf(rows, stream));
  }

  seal(rows: readonly Row[], authorities: readonly Authority[], stream: StreamId = STREAM) {
    const { span } = batchOf(rows, stream);
    return this.writer.seal([span], authorities);
  }

  /** As a lane does it: again and again until it lands or the failure is none that passes. */
  async sealUntilLanded(
    rows: readonly Row[],
    authorities: readonly Authority[],
  ): Promise<SetFiles | SetRefusal> {
    for (;;) {
      try {
        return await this.seal(rows, authorities);
      } catch (e) {
        const f = asFailure(e);
        if (!f.retry && f.kind !== "environment") throw f;
        await Bun.sleep(50);
      }
    }
  }

  async close(): Promise<void> {
    await this.writer.abort();
    await this.coverage.close();
  }
}
