/** `[[sink]] type = "postgres"`: every option of the Postgres sink, declared once. */
import * as z from "zod";
import { byteSize, durationMs, KIB, MIB, secretString } from "../../core/config/option-types.ts";
import { Secret } from "../../core/config/secret.ts";
import { certWithKey, clientTls } from "../../core/config/tls-options.ts";
import { asFailure } from "../../core/failure/failure.ts";
import { DEFAULT_METADATA_PREFIX, METADATA_PREFIX_PATTERN } from "../../core/records/metadata-columns.ts";
import { parseUrl, SSL_MODES, URL_FORM } from "./settings.ts";
import { nameProblem, parseTableName } from "./table/names.ts";

const tls = z
  .strictObject({
    ...clientTls({
      certificate: "the server's certificate",
      peers: "servers",
      serverName: "Name that the server's certificate must hold, where it is not the host of the url.",
      examples: {
        ca: "/etc/twg/pg-ca.crt",
        cert: "/etc/twg/pg-client.crt",
        key: "pg-client-key",
        name: "db.internal",
      },
    }),
  })
  .superRefine(certWithKey);

const tableName = () =>
  z.string().superRefine((text, ctx) => {
    const parsed = parseTableName(text);
    if (typeof parsed !== "string") return;
    ctx.addIssue({ code: "custom", message: parsed, params: { code: "config.range" } });
  });

/** One that stands in the file is looked at there; what a reference stands for is known at the start. */
function literalUrl() {
  return secretString()
    .superRefine((url, ctx) => {
      if (!(url instanceof Secret)) return;
      try {
        parseUrl(url.reveal());
      } catch (e) {
        const { code, message } = asFailure(e);
        ctx.addIssue({ code: "custom", message, params: { code, allowed: URL_FORM } });
      }
    })
    .meta({ allowed: 'a string, or a reference { secret = "name" }', secret: true });
}

const TABLE_NAMES = "`schema.table` or `table` (in public), each name 1 to 63 bytes";

export const postgresSinkSpec = z.strictObject({
  url: literalUrl()
    .describe(
      "Where and as whom: `postgres://user:password@host:5432/database`, special characters as %XX. Several hosts, with commas, are tried in turn for the one that takes writes.",
    )
    .meta({ examples: [{ secret: "warehouse-url" }] }),
  sslmode: z
    .enum(SSL_MODES)
    .default("verify-full")
    .describe(
      "What TLS must prove. verify-full: who the server is. verify-ca: only that its authority is ours. require: encrypted, but to anybody who stands in between. prefer: the same, and in plain text where the server or somebody in between says so. disable: plain text. A `?sslmode=` in the url must agree.",
    )
    .meta({ examples: ["verify-full"], why: "The only one that keeps records and password from others." }),
  channel_binding: z
    .enum(["prefer", "require", "disable"])
    .default("prefer")
    .describe(
      "Whether the login is tied to the TLS connection (SCRAM-SHA-256-PLUS), so that nobody can pass it on. `require` refuses servers and poolers that cannot.",
    )
    .meta({ why: "Taken wherever it is offered." }),
  tls: tls.optional().describe("Certificates for TLS."),
  table: tableName()
    .describe(
      "Table of the records, `schema.table`. Names are taken as they are written, never folded; a part that holds a dot stands in double quotes.",
    )
    .meta({
      allowed: TABLE_NAMES,
      examples: ["raw.orders"],
    }),
  create: z
    .boolean()
    .default(false)
    .describe(
      "Create the table where it is missing. One of raw records that is there is compared, never changed; one of decoded rows grows with its schemas.",
    )
    .meta({ why: "Who owns the schema says so." }),
  mode: z
    .enum(["append", "upsert"])
    .default("append")
    .describe(
      "append: every record is a row. upsert: of each key the latest record only. A record never replaces one of a later position; one without a key goes to the rejects; one without a value (a tombstone) stays as a row without a value, so that nothing older can come back.",
    )
    .meta({ why: "The raw lane keeps everything." }),
  key: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .describe(
      "With `upsert` and rows of files: the columns that name a row. A unique index of just these columns is needed; `create` makes it. Records of topics are named by topic and record key.",
    )
    .meta({ examples: [["order_id"]], allowed: "names of columns, of the source's schema" }),
  row_key: z
    .boolean()
    .default(false)
    .describe(
      "Rows are in the table once whoever wrote them: a unique index on the record's id, `_twg_record_id`, which decoded rows get as a column. A row that is there already with the same values is counted and not written again; one with other values is `postgres.row_differs`, and nothing of its set lands. `create` makes the index, in a table that is there up to `rewrite_max_bytes`.",
    )
    .meta({
      why: "Coverage has each row once already; the index is for what others write, and for coverage that was restored from a backup.",
    }),
  rejects: tableName()
    .optional()
    .describe(
      "Table of refused rows, written in the transaction of the rows beside which they stood. `create` makes it too.",
    )
    .meta({
      allowed: TABLE_NAMES,
      examples: ["raw.orders_rejects"],
      why: "Without it: the table `reject` in `state_schema`.",
    }),
  max_rejects: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(1000)
    .describe(
      "Most rows of a transaction that go to the rejects because the server refuses them (a constraint, a value, a trigger). With more, or where not one of ten or more is taken, the table is at fault and not the rows: none of them is rejected, the primary sink stops, another one is detached and has a gap. For rows of files the source's `max_rejects` counts instead. 0: the first one that is refused counts as the table's fault.",
    )
    .meta({
      unit: "rows",
      allowed: "0 to 1000000",
      examples: [1000],
      why: "Single bad rows pass, a table that was changed does not empty the stream into the rejects.",
    }),
  state_schema: z
    .string()
    .superRefine((text, ctx) => {
      const problem = nameProblem(text);
      if (problem !== null)
        ctx.addIssue({ code: "custom", message: problem, params: { code: "config.range" } });
    })
    .default("twg")
    .describe(
      "Schema of the tables that say what of each stream has landed. Created where it is missing. Fixed once data was written.",
    )
    .meta({ allowed: "a name of 1 to 63 bytes", examples: ["twg"] }),
  commit_bytes: byteSize({ min: 64 * KIB, max: 1024 * MIB })
    .default(16 * MIB)
    .describe(
      "A transaction is committed when it holds so much. Each lane keeps its rows in memory until then, to send them again should the server go away; so that all lanes together hold no more than `pipeline.max_bytes`, a lane commits at that divided by the lanes where it is less.",
    )
    .meta({
      unit: "bytes",
      examples: ["16MiB"],
      why: "Some 30,000 records of 250 B: a commit's cost no longer shows.",
    }),
  commit_interval_ms: durationMs({ min: 50, max: 3_600_000 })
    .default(1000)
    .describe("Rows are committed and acknowledged at the latest after this time.")
    .meta({ unit: "ms", examples: ["1s"], why: "Fresh, and short transactions let the server vacuum." }),
  metadata_prefix: z
    .string()
    .regex(METADATA_PREFIX_PATTERN)
    .default(DEFAULT_METADATA_PREFIX)
    .describe("Prefix of the column names. Fixed once the table exists.")
    .meta({ allowed: "1 to 32 of a-z, 0-9 and '_', not beginning with a digit" }),
  connect_timeout_ms: durationMs({ min: 100, max: 600_000 })
    .default(10_000)
    .describe("Longest for a connection with its login; at the start, for a server that is not up yet.")
    .meta({ unit: "ms", examples: ["10s"] }),
  answer_timeout_ms: durationMs({ min: 1000, max: 3_600_000 })
    .default(60_000)
    .describe(
      "Longest that the server may take for an answer, or to take rows, before the connection is given up.",
    )
    .meta({ unit: "ms", examples: ["60s"], why: "A checkpoint on slow disks takes tens of seconds." }),
  rewrite_max_bytes: byteSize({ min: 0, max: 2 ** 50 })
    .default(256 * MIB)
    .describe(
      "With `create` and decoded rows: largest table, with its indexes and partitions, that is written anew so that a column takes a wider type (integer to bigint, real to double precision, more digits behind the point). Nobody reads or writes it meanwhile. 0: none. Changes that write no row (longer text, more digits before the point) are always made.",
    )
    .meta({
      unit: "bytes",
      examples: ["10GiB"],
      why: "A few seconds; a larger table is changed when somebody says so.",
    }),
  date_to_timestamp: z
    .boolean()
    .default(false)
    .describe(
      "With `create` and decoded rows: let a column of dates become one of timestamps without a zone, each at midnight, where the schema has timestamps now. The table is written anew, as of `rewrite_max_bytes`.",
    )
    .meta({ why: "A date is not an instant: whoever knows that midnight is meant says so." }),
  lock_timeout_ms: durationMs({ min: 100, max: 600_000 })
    .default(10_000)
    .describe(
      "Longest wait for a lock that another session holds, before the transaction is begun anew; so long, too, for the table's own to change it, while whoever comes after waits as well.",
    )
    .meta({ unit: "ms", examples: ["10s"] }),
});

export type PostgresSinkOptions = z.output<typeof postgresSinkSpec>;
