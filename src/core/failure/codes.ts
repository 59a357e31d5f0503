/**
 * The closed list of error codes. A code is stable: operators alert on it and scripts match it, so it is never
 * renamed or reused. `kind` decides the exit code of the process (2 config, 3 environment, 1 runtime) and
 * `retry` says whether the same call may succeed later without anybody changing anything. Unknown means "no".
 */
import { type CodeSpec, spec } from "./code-spec.ts";
import { DEDUP_CODES } from "./dedup-codes.ts";
import { FILE_CODES } from "./file-codes.ts";
import { KAFKA_PRODUCER_CODES } from "./kafka-producer-codes.ts";
import { LOGIN_CODES } from "./login-codes.ts";
import { POSTGRES_CODES } from "./postgres-codes.ts";
import { RECOVERY_CODES } from "./recovery-codes.ts";
import { REGISTRY_CODES } from "./registry-codes.ts";

export const CODES = {
  // internal
  "internal.bug": spec("runtime", false, "A state that the code holds to be impossible. Please report it."),
  "internal.cancelled": spec("runtime", false, "The operation was given up because its caller stopped."),
  "internal.stalled": spec(
    "runtime",
    false,
    "No progress for longer than the stall limit although there was work.",
  ),
  // configuration and secrets
  "config.unreadable": spec(
    "config",
    false,
    "The configuration file cannot be read. Is the path right, may we read it?",
  ),
  "config.too_large": spec(
    "config",
    false,
    "The configuration file is above 1 MiB: surely another file was meant.",
  ),
  "config.invalid": spec(
    "config",
    false,
    "The configuration has problems; each is listed with its own code.",
  ),
  "config.syntax": spec("config", false, "The file is not TOML at the line given."),
  "config.unknown_key": spec("config", false, "No such option here; the nearest known name is given."),
  "config.type": spec("config", false, "A value of another kind is wanted, such as a number without quotes."),
  "config.missing": spec("config", false, "A required option or section is not there."),
  "config.range": spec("config", false, "The value is of the right kind but not among the allowed ones."),
  "config.conflict": spec("config", false, "Two settings, each fine alone, cannot stand together."),
  "config.literal_secret": spec(
    "config",
    false,
    "A warning of `config validate`: a secret stands in the file itself, for everybody who may read it.",
  ),
  "config.no_effect": spec(
    "config",
    false,
    "A warning of `config validate`: the setting is understood and changes nothing in this version.",
  ),
  "config.not_in_this_version": spec(
    "config",
    false,
    "The option is part of the design but this version cannot do it, and refuses rather than ignore it.",
  ),
  "secrets.missing": spec(
    "config",
    false,
    "No backend has the secret. `twg config secrets` lists where it was looked for.",
  ),
  "secrets.empty": spec("config", false, "The secret is there but holds nothing."),
  "secrets.unreadable": spec(
    "config",
    false,
    "The secret's file is there but cannot be read, or is no text of at most 1 MiB.",
  ),
  // command line
  "cli.usage": spec(
    "config",
    false,
    "The command line has an unknown command, an unknown flag or a missing argument.",
  ),
  "cli.output": spec(
    "environment",
    false,
    "What the command printed could not be written to its standard output: no room, or a device that takes nothing.",
  ),
  "inspect.unreadable": spec("environment", false, "The file or folder to inspect cannot be read."),
  "inspect.not_parquet": spec("runtime", false, "The file is no Parquet file, or is cut short or damaged."),
  // bytes
  "bytes.short": spec("runtime", false, "A message ends before the field that it declares."),
  "bytes.limit": spec("runtime", false, "A declared length or count is above the limit for its place."),
  "bytes.invalid": spec("runtime", false, "A field holds a value that its format does not allow."),
  // object stores
  "store.full": spec(
    "environment",
    true,
    "No space or quota left where files are written. Free some: the job goes on by itself.",
  ),
  "store.denied": spec("environment", false, "No right to write in the sink's folder."),
  "store.read_only": spec("environment", false, "The file system of the sink's folder is read-only."),
  "store.misplaced": spec(
    "environment",
    false,
    "The sink's path runs through a file, or over the border of a file system.",
  ),
  "store.io": spec("environment", true, "The file system reported an error on reading or writing."),
  "store.not_durable": spec(
    "runtime",
    false,
    "The disk refused to make a file durable. Look at its health; nothing was acknowledged.",
  ),
  "store.unavailable": spec(
    "environment",
    true,
    "The store did not answer or answered with an error that passes.",
  ),
  "store.untrusted": spec(
    "environment",
    false,
    "The store's TLS certificate does not prove that it is the named host.",
  ),
  "store.refused": spec(
    "runtime",
    false,
    "The store does not accept a request; its own words are in the message.",
  ),
  "store.unsuitable": spec(
    "environment",
    false,
    "The store fails something that twg's promise rests on, found by a probe at the start. Use another store.",
  ),
  "store.absent": spec("runtime", false, "Neither the staged nor the published object is there."),
  "store.foreign": spec(
    "runtime",
    false,
    "A file that twg did not write stands where one of its files belongs. It is left alone.",
  ),
  // lanes and pipeline
  "lane.died": spec("runtime", true, "A lane's thread ended; what it had not sealed is fetched again."),
  "delivery.drain_timeout": spec(
    "runtime",
    false,
    "A stop did not get all open files published in time. Nothing is lost; they are read again.",
  ),
  "sink.behind": spec(
    "runtime",
    true,
    "A sink beside the primary one does not keep up. It misses what comes meanwhile: a gap, which `twg inspect coverage` shows.",
  ),
  "encode.unsupported": spec(
    "runtime",
    false,
    "A column has a name or a type for which the format that a sink writes has nothing.",
  ),
  "decode.failed": spec(
    "runtime",
    false,
    'A record cannot be decoded and `on_error` is "fail": topic, partition and offset are named.',
  ),
  "lane.no_thread": spec(
    "environment",
    false,
    "No thread could be made for a lane: a limit of processes and threads, or of memory.",
  ),
  "lane.unstable": spec("runtime", false, "A lane died again and again at the same work."),
  // network
  "net.refused": spec(
    "environment",
    true,
    "Nothing accepts connections at the address. Is the server up, is the port right?",
  ),
  "net.unresolved": spec("environment", true, "The host name does not resolve. Check its spelling and DNS."),
  "net.unreachable": spec("environment", true, "There is no route to the address."),
  "net.timeout": spec(
    "environment",
    true,
    "The peer did not answer in time; often a firewall or a wrong address.",
  ),
  "net.closed": spec("environment", true, "The peer closed or reset the connection."),
  "net.failed": spec("environment", false, "The connection failed for a reason that the code does not know."),
  "net.tls_untrusted": spec(
    "environment",
    false,
    "The server's certificate is not signed by a trusted authority. Set ca.",
  ),
  "net.tls_name": spec(
    "environment",
    false,
    "The server's certificate is for another name. Dial that name or set server_name.",
  ),
  "net.tls_expired": spec(
    "environment",
    false,
    "The server's certificate is not valid now. Renew it, or check the clock.",
  ),
  "net.tls_client_cert": spec(
    "environment",
    false,
    "The server wants a client certificate that it trusts. Set cert and key.",
  ),
  "net.tls_handshake": spec(
    "environment",
    false,
    "TLS could not be spoken with the peer; often a plain-text port.",
  ),
  "net.tls_material": spec(
    "config",
    false,
    "The configured ca, cert or key can't be used: PEM, and key belongs to cert?",
  ),
  ...LOGIN_CODES,
  // kafka client
  "kafka.auth_failed": spec(
    "environment",
    false,
    "The broker refused the credentials. Check mechanism, username, password.",
  ),
  "kafka.mechanism_unsupported": spec(
    "environment",
    false,
    "The listener does not offer this SASL mechanism.",
  ),
  "kafka.unsupported_version": spec(
    "environment",
    false,
    "Broker and client have no version of a request in common.",
  ),
  "kafka.not_kafka": spec(
    "environment",
    false,
    "The peer's answer is not Kafka's protocol; often another service's port.",
  ),
  "kafka.tls_expected": spec(
    "environment",
    false,
    "The port wants TLS. Set tls.enabled, or use the plain-text port.",
  ),
  "kafka.response_too_large": spec(
    "environment",
    false,
    "A response is larger than the limit that guards memory.",
  ),
  "kafka.response_invalid": spec(
    "runtime",
    true,
    "A broker's response can't be read; the connection is given up.",
  ),
  "kafka.disconnected": spec(
    "environment",
    true,
    "The connection to the broker ended with requests in flight.",
  ),
  "kafka.timeout": spec("environment", true, "The broker did not answer a request in time."),
  "kafka.unreachable": spec("environment", false, "No broker could be reached within connect_timeout_ms."),
  "kafka.broker_error": spec("runtime", false, "The broker answered with an error code."),
  "kafka.topic_denied": spec("environment", false, "No permission on the topic: grant READ and DESCRIBE."),
  "kafka.group_denied": spec("environment", false, "No permission on the consumer group: grant READ."),
  "kafka.group_refused": spec(
    "environment",
    false,
    "The consumer group does not take this member. The message says why.",
  ),
  "kafka.partition_lost": spec(
    "runtime",
    false,
    "The partition of a batch in hand went to another member of the group, so its position may not be committed.",
  ),
  "kafka.batch_over": spec(
    "runtime",
    false,
    "A consumer's batch was used after the next one was asked for: its memory holds other records by then.",
  ),
  "kafka.instance_fenced": spec(
    "environment",
    false,
    "Another member of the group has the same group_instance_id.",
  ),
  "kafka.cluster_denied": spec("environment", false, "No permission on the cluster."),
  "kafka.unknown_topic": spec(
    "environment",
    false,
    "The topic does not exist. Check its name, or create it.",
  ),
  "kafka.unknown_partition": spec("environment", false, "The topic has no such partition."),
  "kafka.offset_out_of_range": spec(
    "runtime",
    false,
    "The position is outside of the log: retention removed it, or the log was cut.",
  ),
  "kafka.truncated": spec(
    "runtime",
    false,
    "The log was cut below what was read (unclean election): records read are gone there.",
  ),
  "kafka.topic_recreated": spec(
    "runtime",
    false,
    "The topic was deleted and made anew under its name while it was read.",
  ),
  "kafka.cluster_changed": spec(
    "runtime",
    false,
    "The brokers at this address belong to another cluster than before.",
  ),
  ...KAFKA_PRODUCER_CODES,
  ...FILE_CODES,
  // native libraries
  "duckdb.library": spec(
    "environment",
    false,
    "libduckdb or the C++ runtime could not be unpacked or loaded.",
  ),
  // compression
  "compression.corrupt": spec(
    "runtime",
    false,
    "Compressed bytes cannot be read by the codec that they name.",
  ),
  "compression.limit": spec("runtime", false, "Bytes expand to more than the limit on decompressed size."),
  // kafka records
  "kafka.corrupt_batch": spec(
    "runtime",
    true,
    "A record batch breaks its format. Fetched again it may be whole; if not, the log is damaged there.",
  ),
  "kafka.crc": spec("runtime", true, "A record batch does not have the checksum that it declares."),
  "kafka.decompress": spec("runtime", true, "A compressed record batch cannot be decompressed."),
  "kafka.batch_too_large": spec(
    "runtime",
    false,
    "A record batch expands to more than the limit on decompressed size.",
  ),
  "kafka.unknown_magic": spec(
    "runtime",
    false,
    "A record batch of a format that is not known (0, 1 and 2 are). A newer broker, or damage.",
  ),
  "kafka.unknown_codec": spec(
    "runtime",
    false,
    "A record batch is compressed with a codec that is not known.",
  ),
  ...POSTGRES_CODES,
  // schema sources
  ...RECOVERY_CODES,
  ...DEDUP_CODES,
  ...REGISTRY_CODES,
  // coverage
  "coverage.owned": spec(
    "environment",
    false,
    "Another living process works on the same pipeline and sink. Stop it, or wait until it ended.",
  ),
  "coverage.fenced": spec(
    "environment",
    false,
    "Another process took this pipeline over; this one may write nothing more.",
  ),
  "coverage.epoch_behind": spec(
    "runtime",
    false,
    "The group epoch of a claim is older than the one stored: the membership is not current.",
  ),
  "coverage.corrupt": spec(
    "runtime",
    false,
    "The coverage state can't be read: damaged, edited by hand or not ours. Restore it; never delete it.",
  ),
  "coverage.newer_version": spec(
    "environment",
    false,
    "The coverage state was written by a newer twg. Use that version.",
  ),
  "coverage.too_large": spec(
    "runtime",
    false,
    "The coverage state is above its size limit: too many streams or gaps for one sink.",
  ),
  "coverage.intent_torn": spec(
    "runtime",
    false,
    "Of the files of one intent some are published and others are gone. Somebody removed files; see the message.",
  ),
  "coverage.full": spec("environment", true, "No space or quota left for the coverage state."),
  "coverage.denied": spec("environment", false, "The coverage folder can't be made, read or written."),
  "coverage.no_links": spec(
    "environment",
    false,
    "The file system has no usable hard links, which safe replacement of the coverage state needs.",
  ),
  "coverage.no_conditions": spec(
    "environment",
    false,
    "The object store does not keep conditional writes apart, which safe replacement of the coverage state needs.",
  ),
  "coverage.unavailable": spec(
    "environment",
    true,
    "The store of the coverage state fails; it is tried again.",
  ),
  // the schema of a live table
  "table.corrupt": spec(
    "runtime",
    false,
    "The stored schema of a table can't be read: damaged, edited by hand or not ours. Restore it, or remove it: it is read from the newest files then.",
  ),
  "table.mismatch": spec(
    "runtime",
    false,
    "A sink's table and the rows for it cannot be brought together; every difference is named. The sink takes nothing meanwhile.",
  ),
  // start rule
  "delivery.commit_beyond_coverage": spec(
    "runtime",
    false,
    "The broker's commit is ahead of what the sink holds: going on would skip records.",
  ),
  "delivery.retention_gap": spec(
    "runtime",
    false,
    "The broker removed records that the sink does not hold yet.",
  ),
  "delivery.position_beyond_log": spec(
    "runtime",
    false,
    "The position to go on from is behind the end of the log: it was truncated or made anew.",
  ),
  // observability
  "observability.port_in_use": spec(
    "environment",
    false,
    "The address of [observability] listen is taken by another process.",
  ),
  "observability.listen_failed": spec(
    "environment",
    false,
    "The address of [observability] listen cannot be used on this machine.",
  ),
  "observability.unprotected": spec("config", false, "HTTP beyond loopback needs TLS or a token."),
  "observability.tls_invalid": spec(
    "config",
    false,
    "The certificate or key of [observability.tls] was refused.",
  ),
} as const satisfies Record<string, CodeSpec>;

export type Code = keyof typeof CODES;
