/**
 * Every metric of `twg`, once. Names say nothing of the transport, so dashboards outlive a change of source. What
 * operators act on may lag and never leads: a sink's records count once they are covered, lag is measured to the
 * acknowledged position.
 */
import type { Registry } from "./metrics.ts";

/** Requests to a broker: a millisecond to a long poll and its time-out. */
const REQUEST_BOUNDS_S = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const;
/** Steps of a set: an fsync to a roll interval of an hour. */
const SINK_BOUNDS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600] as const;

const STREAM = ["topic", "partition"] as const;

export type Meters = ReturnType<typeof declareMeters>;

export function declareMeters(r: Registry) {
  return {
    pipelineInfo: r.gauge("twg_pipeline_info", "Always 1; the labels say what runs.", [
      "pipeline",
      "version",
    ]),
    startTime: r.gauge("twg_start_time_seconds", "When the pipeline started, seconds since the epoch."),
    live: r.gauge("twg_live", "1 if /live answers 200."),
    ready: r.gauge("twg_ready", "1 if /ready answers 200."),
    health: r.gauge("twg_health", "State of a part: 0 ok, 1 degraded, 2 failed.", ["part"]),
    stalled: r.gauge("twg_stalled", "1 while there is work and no progress."),
    stalls: r.counter("twg_stalls_total", "Times that a stall was detected."),
    errors: r.counter("twg_errors_total", "Failures by their stable code, retried ones included.", ["code"]),

    sourceRecords: r.counter(
      "twg_source_records_total",
      "Positions fetched and handed to a lane. Holes of compaction and control records count, repeats after a rewind too.",
      STREAM,
    ),
    sourceBytes: r.counter("twg_source_bytes_total", "Bytes fetched, as the broker sent them.", STREAM),
    sourcePosition: r.gauge("twg_source_position", "Next position to fetch.", STREAM),
    acknowledgedPosition: r.gauge(
      "twg_acknowledged_position",
      "Everything below is durable in the primary raw sink and acknowledged to the source.",
      STREAM,
    ),
    endPosition: r.gauge(
      "twg_source_end_position",
      "End of the log, as far as this reader may see it.",
      STREAM,
    ),
    lag: r.gauge(
      "twg_source_lag",
      "Offsets from the acknowledged position to the end of the log as we may read it (last stable offset under read_committed).",
      STREAM,
    ),
    skipped: r.counter("twg_source_skipped_records_total", "Records that were covered already.", STREAM),
    lost: r.counter(
      "twg_source_lost_records_total",
      "Positions that the source removed before they were read. Not zero is data loss at the source.",
      STREAM,
    ),
    rewinds: r.counter("twg_source_rewinds_total", "Times that reading went back.", STREAM),
    reread: r.counter(
      "twg_source_reread_records_total",
      "Positions that a lane had already when reading went back, so that they are read once more.",
      STREAM,
    ),
    sourceUp: r.gauge("twg_source_up", "1 if the source is reachable."),
    acknowledgeFailures: r.counter(
      "twg_acknowledge_failures_total",
      "Acknowledgements that the source refused or lost.",
    ),
    requests: r.counter("twg_requests_total", "Requests to brokers, by API.", ["api"]),
    requestErrors: r.counter("twg_request_errors_total", "Requests that failed, by API and error.", [
      "api",
      "error",
    ]),
    requestSeconds: r.histogram(
      "twg_request_seconds",
      "Time to the answer of a broker, by API.",
      ["api"],
      REQUEST_BOUNDS_S,
    ),
    requestBytes: r.counter("twg_request_bytes_total", "Bytes of requests and of their answers, by API.", [
      "api",
      "direction",
    ]),
    connections: r.gauge("twg_connections", "Open connections, by purpose.", ["purpose"]),
    connectionsOpened: r.counter("twg_connections_opened_total", "Connections opened, by purpose.", [
      "purpose",
    ]),

    bytesInFlight: r.gauge("twg_bytes_in_flight", "Bytes fetched and not yet given back, by owner (lane).", [
      "owner",
    ]),
    budgetBytes: r.gauge(
      "twg_budget_bytes",
      "Configured bound of the bytes in flight of all owners together.",
    ),
    budgetExhausted: r.counter("twg_budget_exhausted_total", "Times that an owner had no room left.", [
      "owner",
    ]),
    budgetWait: r.counter("twg_budget_wait_seconds_total", "Time that an owner had no room.", ["owner"]),

    laneRecords: r.counter("twg_lane_records_total", "Records unpacked.", ["lane"]),
    laneFiltered: r.counter(
      "twg_lane_filtered_records_total",
      "Records left out: aborted transactions, or covered already.",
      ["lane"],
    ),
    laneBytes: r.counter("twg_lane_unpacked_bytes_total", "Bytes of records after decompression.", ["lane"]),
    laneDecode: r.counter("twg_lane_decode_seconds_total", "Time spent unpacking.", ["lane"]),
    laneWrite: r.counter("twg_lane_write_seconds_total", "Time spent encoding and writing.", ["lane"]),
    laneHeld: r.gauge("twg_lane_held_bytes", "Memory of the lane's open files when it last read a bundle.", [
      "lane",
    ]),
    laneRestarts: r.counter("twg_lane_restarts_total", "Times that the lane died and was started again.", [
      "lane",
    ]),

    sinkRecords: r.counter("twg_sink_records_total", "Records durable and covered in the sink.", ["sink"]),
    sinkBytes: r.counter("twg_sink_bytes_total", "Bytes of covered files.", ["sink"]),
    sinkFiles: r.counter("twg_sink_files_total", "Covered files.", ["sink"]),
    sinkLatency: r.histogram(
      "twg_sink_latency_seconds",
      "Time of a step of a set: seal, intend, publish, cover; end_to_end is from arrival to covered.",
      ["sink", "step"],
      SINK_BOUNDS_S,
    ),
    sinkRefused: r.counter("twg_sink_refused_sets_total", "Sets whose intent was refused.", [
      "sink",
      "reason",
    ]),
    sinkDetached: r.counter(
      "twg_sink_detached_total",
      "Times that a lane went on without a sink beside the primary one.",
      ["sink"],
    ),
    undecodable: r.counter("twg_decode_rejects_total", "Records that could not be decoded.", ["code"]),
    duplicates: r.counter(
      "twg_sink_duplicates_total",
      "Records that were left out of the sink since an earlier one has their natural key. Those that are read again count again.",
      ["sink", "topic"],
    ),
    sinkRejects: r.counter(
      "twg_sink_rejects_total",
      "Rows that the sink refused and that are durable among its rejects.",
      ["sink", "code"],
    ),
    sinkThere: r.counter(
      "twg_sink_rows_there_total",
      "Rows that the table had already under their row key, each the same: counted among the records of the sink, and not written again.",
      ["sink"],
    ),
    sinkGap: r.counter(
      "twg_sink_gap_positions_total",
      "Positions that the primary sink got and this one did not, since the start.",
      ["sink"],
    ),
    sinkGaps: r.gauge(
      "twg_sink_gaps",
      "Ranges that the primary sink has and this one has not, those on their way included.",
      ["sink"],
    ),
    sinkUncovered: r.gauge("twg_sink_uncovered_positions", "Positions of these ranges.", ["sink"]),
    sinkOldestGap: r.gauge(
      "twg_sink_oldest_gap_seconds",
      "How long the primary sink has had the oldest of them; what was there before the start counts from the start. 0: there is none.",
      ["sink"],
    ),
    sinkExpiring: r.gauge(
      "twg_sink_gap_expiring",
      "1 if raw that this sink lacks is removed within a quarter of `retention_ms` of the primary sink.",
      ["sink"],
    ),
    sinkUp: r.gauge("twg_sink_up", "1 if the sink takes data.", ["sink"]),

    recoveryActive: r.gauge(
      "twg_recovery_active",
      "1 while recovery of this process fills windows; 0 while it rests, without a connection or a lane.",
    ),
    recoveryBehind: r.gauge(
      "twg_recovery_behind_positions",
      "Positions that recovery has to bring, as of its last look; what live ingest has on its way is not among them.",
    ),
    recoveryLeases: r.gauge("twg_recovery_leases", "Windows that this process holds now.", ["sink"]),
    recoveryWindows: r.counter(
      "twg_recovery_windows_total",
      "Windows that this process came to the end of: filled, or given back with something missing.",
      ["sink", "outcome"],
    ),
    recoveryPositions: r.counter("twg_recovery_positions_total", "Positions that it filled.", ["sink"]),
    recoveryRecords: r.counter("twg_recovery_replayed_records_total", "Records read again from raw."),
    recoveryBytes: r.counter("twg_recovery_replayed_bytes_total", "Bytes of raw files that were read again."),
    recoveryYields: r.counter(
      "twg_recovery_yields_total",
      "Times that recovery waited since live records of this process fell behind.",
    ),

    residentBytes: r.gauge("twg_process_resident_bytes", "Resident memory of the process."),
    cpuSeconds: r.counter("twg_process_cpu_seconds_total", "User and system CPU time of the process."),
    logSuppressed: r.counter(
      "twg_log_suppressed_total",
      "Warnings left out because the same one was just logged.",
    ),
    telemetryErrors: r.counter(
      "twg_telemetry_errors_total",
      "Faults within telemetry itself. Please report them.",
    ),
  };
}
