/** Refused records in a PostgreSQL table: counted and sampled by the server, in one snapshot. Reads only. */
import { PgConnection } from "../adapters/postgres/client.ts";
import { parseTableName, quoted, quotedTable } from "../adapters/postgres/table/names.ts";
import { Failure } from "../core/failure/failure.ts";
import type { ResolvedConfig, SinkOf } from "./config-file.ts";
import { postgresClientParts, settingsOf } from "./postgres-parts.ts";
import { type RejectGroup, RejectGroups } from "./reject-groups.ts";
import { MOST_SHOWN, msOf, type RejectBytes, type RejectSample, type RejectTable } from "./reject-table.ts";

/** Of kind and partition. */
const MOST_COUNTS = 20_000;

/** `use` has the connection's snapshot; it ends with it. */
export async function withRejectRows<T>(
  config: ResolvedConfig,
  sink: SinkOf<"postgres">,
  samples: number,
  use: (table: RejectTable) => Promise<T>,
): Promise<T> {
  const name = parseTableName(sink.table);
  if (typeof name === "string") throw new Failure("config.invalid", name, { at: sink.name });
  const connection = await PgConnection.open(settingsOf(config, sink), postgresClientParts);
  try {
    await connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const table = new Table(connection, quotedTable(name), sink.metadata_prefix);
    await table.count();
    const answer = await use({
      ...{ groups: table.groups, files: null, failures: [] },
      samples: (of) => table.samples(of, samples),
    });
    await connection.script("COMMIT");
    return answer;
  } finally {
    connection.close();
  }
}

class Table {
  readonly groups = new RejectGroups();
  readonly #connection: PgConnection;
  readonly #name: string;
  readonly #kind: string;
  readonly #c: Readonly<Record<"topic" | "partition" | "offset" | "time" | "key" | "value", string>>;

  constructor(connection: PgConnection, name: string, prefix: string) {
    this.#connection = connection;
    this.#name = name;
    const c = (column: string) => quoted(prefix + column);
    this.#c = {
      topic: c("source_topic"),
      partition: c("source_partition"),
      offset: c("source_offset"),
      time: `coalesce(${c("source_timestamp")}, ${c("ingest_ts")})`,
      key: c("source_key"),
      value: c("source_value"),
    };
    const path = String.raw`regexp_replace(coalesce(path, ''), '\[\d+\]', '[]', 'g')`;
    this.#kind = `coalesce(code, ''), coalesce(${this.#c.topic}, ''), ${c("schema_id")}, ${path}`;
  }

  async count(): Promise<void> {
    const { partition, offset, time } = this.#c;
    const there = await this.#connection.query("SELECT to_regclass($1) IS NOT NULL", this.#name);
    if (there.rows[0]?.[0] !== "t") return;
    const { rows } = await this.#connection.query(
      `SELECT ${this.#kind}, ${partition}, count(*), min(${offset}), max(${offset}),
         ${epochMs(`min(${time})`)}, ${epochMs(`max(${time})`)}, (sum(count(*)) OVER ())::text
       FROM ${this.#name} GROUP BY 1, 2, 3, 4, 5 ORDER BY count(*) DESC, 1, 2, 3, 4, 5 LIMIT ${MOST_COUNTS}`,
    );
    for (const [code, topic, schemaId = null, path, number, records, first, last, from, to] of rows)
      this.groups.add({
        ...{ code: code ?? "", topic: topic ?? "", schemaId, path: path ?? "" },
        partition: Number(number ?? 0),
        records: Number(records),
        ...{ firstOffset: BigInt(first ?? -1), lastOffset: BigInt(last ?? -1) },
        ...{ firstMs: msOf(from), lastMs: msOf(to) },
      });
    const beyond = Number(rows[0]?.[10] ?? 0) - this.groups.records;
    this.groups.records += beyond;
    this.groups.others += beyond;
  }

  /** One pass over the table, which sorts places and not values. */
  async samples(
    of: readonly RejectGroup[],
    most: number,
  ): Promise<ReadonlyMap<RejectGroup, readonly RejectSample[]>> {
    const samples = new Map<RejectGroup, RejectSample[]>(of.map((g) => [g, []]));
    if (of.length === 0) return samples;
    const { partition, offset, time, key, value } = this.#c;
    const heads = [key, value].flatMap((c) => [
      `octet_length(${c})`,
      `encode(substring(${c} FROM 1 FOR ${MOST_SHOWN}), 'hex')`,
    ]);
    const kinds = of.flatMap(({ kind }) => [kind.code, kind.topic, kind.schemaId ?? "", kind.path]);
    const wanted = of.map((_, i) => `(${[1, 2, 3, 4].map((n) => `$${4 * i + n}::text`).join()}, ${i})`);
    const { rows } = await this.#connection.query(
      `WITH wanted (code, topic, schema, path, number) AS (VALUES ${wanted.join()}),
       kinds (code, topic, schema, path, place, rank) AS (
         SELECT ${this.#kind}, ctid, row_number() OVER (
           PARTITION BY ${this.#kind} ORDER BY ${time}, ${partition}, ${offset}) FROM ${this.#name})
       SELECT w.number, ${partition}, ${offset}, ${epochMs(time)}, t.path, t.message, ${heads.join(", ")}
       FROM wanted w JOIN kinds k ON (k.code, k.topic, coalesce(k.schema, ''), k.path) = (w.code, w.topic, w.schema, w.path)
       JOIN ${this.#name} t ON t.ctid = k.place WHERE k.rank <= ${most} ORDER BY w.number, k.rank`,
      ...kinds,
    );
    for (const [number, ...row] of rows) samples.get(of[Number(number)]!)?.push(sampleOf(row));
    return samples;
  }
}

/** Instants that have no number of milliseconds become text that is none. */
function epochMs(time: string): string {
  return `floor(extract(epoch FROM ${time}) * 1000)::text`;
}

function sampleOf(row: readonly (string | null)[]): RejectSample {
  const [partition, offset, ms, path, message, keyLength, key, valueLength, value] = row;
  return {
    ...{ partition: Number(partition ?? 0), offset: BigInt(offset ?? -1), ms: msOf(ms) },
    ...{ path: path ?? "", message: message ?? "" },
    key: bytesOf(keyLength, key),
    value: bytesOf(valueLength, value),
  };
}

function bytesOf(length: string | null | undefined, hex: string | null | undefined): RejectBytes | null {
  return length == null || hex == null ? null : { length: Number(length), head: Uint8Array.fromHex(hex) };
}
