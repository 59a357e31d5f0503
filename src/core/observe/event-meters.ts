/** Which event moves which metric. An event that is absent moves none. */
import type { FailureWire } from "../failure/failure.ts";
import type { EventName, EventOf, TwgEvent } from "./events.ts";
import type { Meters } from "./metric-catalogue.ts";

type Rows = { readonly [K in EventName]?: (m: Meters, e: EventOf<K>) => void };

const seconds = (ms: number): number => Math.max(0, ms) / 1000;

function failed(m: Meters, e: { readonly failure: FailureWire }): void {
  m.errors.add(1, e.failure.code);
}

function bundleConsumed(m: Meters, e: EventOf<"bundle.consumed">): void {
  m.laneRecords.add(e.rows, e.lane);
  m.laneFiltered.add(e.filtered, e.lane);
  m.laneBytes.add(e.rawBytes, e.lane);
  m.laneDecode.add(seconds(e.decodeMs), e.lane);
  m.laneWrite.add(seconds(e.writeMs), e.lane);
  m.laneHeld.set(e.held, e.lane);
}

/** A counter that first appears above zero has no increase that an alert could see, so these begin at zero. */
function streamBegun(m: Meters, e: EventOf<"stream.begun">): void {
  for (const counter of [m.lost, m.skipped, m.rewinds, m.reread, m.sourceRecords, m.sourceBytes])
    counter.add(0, e.topic, e.partition);
}

function landed(m: Meters, e: EventOf<"set.covered" | "recovery.covered">): void {
  m.sinkUp.set(1, e.sink);
  m.sinkRecords.add(e.rows, e.sink);
  m.sinkBytes.add(e.bytes, e.sink);
  m.sinkFiles.add(e.files, e.sink);
}

function setCovered(m: Meters, e: EventOf<"set.covered">): void {
  landed(m, e);
  m.sinkLatency.observe(seconds(e.ms), e.sink, "cover");
  m.sinkLatency.observe(seconds(e.endToEndMs), e.sink, "end_to_end");
}

const ROWS: Rows = {
  failure: failed,
  "source.healthy": (m) => m.sourceUp.set(1),
  "source.troubled": (m, e) => {
    failed(m, e);
    m.sourceUp.set(0);
  },
  "source.acknowledge_failed": (m, e) => {
    failed(m, e);
    m.acknowledgeFailures.add(1);
  },
  "stream.begun": streamBegun,
  "stream.rewound": (m, e) => {
    m.rewinds.add(1, e.topic, e.partition);
    m.reread.add(e.again, e.topic, e.partition);
  },
  "records.skipped": (m, e) => m.skipped.add(e.records, e.topic, e.partition),
  "records.lost": (m, e) => m.lost.add(Number(e.next - e.from), e.topic, e.partition),

  "bundle.delivered": (m, e) => {
    for (const p of e.parts) {
      m.sourceRecords.add(p.positions, p.topic, p.partition);
      m.sourceBytes.add(p.bytes, p.topic, p.partition);
    }
  },
  "bundle.consumed": bundleConsumed,
  "lane.died": failed,
  "lane.restarted": (m, e) => m.laneRestarts.add(1, e.lane),
  "budget.exhausted": (m, e) => m.budgetExhausted.add(1, e.owner),
  "budget.released": (m, e) => m.budgetWait.add(seconds(e.ms), e.owner),

  "set.sealed": (m, e) => m.sinkLatency.observe(seconds(e.ms), e.sink, "seal"),
  "set.intended": (m, e) => m.sinkLatency.observe(seconds(e.ms), e.sink, "intend"),
  "set.published": (m, e) => m.sinkLatency.observe(seconds(e.ms), e.sink, "publish"),
  "set.covered": setCovered,
  "set.refused": (m, e) => m.sinkRefused.add(1, e.sink, e.reason),
  "sink.troubled": (m, e) => {
    failed(m, e);
    m.sinkUp.set(0, e.sink);
  },
  "sink.detached": (m, e) => m.sinkDetached.add(1, e.sink),
  "records.undecodable": (m, e) => m.undecodable.add(e.records, e.code),
  "records.duplicate": (m, e) => m.duplicates.add(e.records, e.sink, e.topic),
  "records.refused": (m, e) => {
    if (e.kept) m.sinkRejects.add(e.records, e.sink, e.code);
  },
  "records.there": (m, e) => m.sinkThere.add(e.records, e.sink),
  "sink.rejects_failed": failed,
  "sink.lacks": (m, e) => {
    m.sinkGaps.set(e.gaps, e.sink);
    m.sinkUncovered.set(Number(e.positions), e.sink);
    m.sinkOldestGap.set(seconds(e.oldestMs ?? 0), e.sink);
    m.sinkExpiring.set(e.expiring ? 1 : 0, e.sink);
  },
  "sink.gap": (m, e) => m.sinkGap.add(Number(e.next - e.from), e.sink),
  "sink.recovered": (m, e) => m.sinkUp.set(1, e.sink),
  "coverage.troubled": failed,
  "coverage.fenced": failed,

  "recovery.looked": (m, e) => m.recoveryBehind.set(Number(e.behind)),
  "recovery.blind": failed,
  "recovery.troubled": failed,
  "recovery.began": (m) => m.recoveryActive.set(1),
  "recovery.rests": (m) => m.recoveryActive.set(0),
  "recovery.leased": (m, e) => m.recoveryLeases.set(e.windows, e.sink),
  "recovery.filled": (m, e) => {
    m.recoveryLeases.set(0, e.sink);
    m.recoveryWindows.add(e.windows, e.sink, e.positions === e.wanted ? "filled" : "returned");
    m.recoveryPositions.add(Number(e.positions), e.sink);
  },
  "recovery.covered": landed,
  "recovery.replayed": (m, e) => {
    m.recoveryRecords.add(e.rows);
    m.recoveryBytes.add(e.bytes);
  },
  "recovery.yields": (m) => m.recoveryYields.add(1),

  "stall.detected": (m) => {
    m.stalls.add(1);
    m.stalled.set(1);
  },
  "stall.cleared": (m) => m.stalled.set(0),
  "connection.opened": (m, e) => {
    m.connections.add(1, e.purpose);
    m.connectionsOpened.add(1, e.purpose);
  },
  "connection.closed": (m, e) => m.connections.add(-1, e.purpose),
  "request.done": (m, e) => {
    m.requests.add(1, e.api);
    m.requestBytes.add(e.sent, e.api, "sent");
    m.requestBytes.add(e.received, e.api, "received");
    m.requestSeconds.observe(seconds(e.ms), e.api);
    if (e.error !== null) m.requestErrors.add(1, e.api, e.error);
  },
};

export function meterEvent(meters: Meters, event: TwgEvent): void {
  // Sound: the row is looked up by the name that selects the event's shape.
  const row = ROWS[event.e] as ((m: Meters, e: TwgEvent) => void) | undefined;
  row?.(meters, event);
}
