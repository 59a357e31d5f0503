/**
 * What the pipeline is doing now, folded from events: positions per partition, rows per sink, bytes per lane. The
 * progress line, the lag metrics, the status page and the stall watchdog all read this one view.
 */
import type { EventName, EventOf, TwgEvent } from "./events.ts";

export interface PartitionView {
  readonly topic: string;
  readonly partition: number;
  lane: number;
  start: bigint | null;
  end: bigint | null;
  /** Next position to fetch. */
  position: bigint;
  /** Furthest position ever handed to a lane: a rewind does not lower it. */
  furthest: bigint;
  acknowledged: bigint;
  positions: number;
  bytes: number;
}

export interface SinkView {
  rows: number;
  bytes: number;
  files: number;
  /** What it lacks of the primary one, as it was told last; null: it is that, or was not told yet. */
  lacks: EventOf<"sink.lacks"> | null;
}

/** End minus acknowledged; null while the end is unknown. It may overstate what is missing, never understate. */
export function lagOf(p: PartitionView): number | null {
  if (p.end === null) return null;
  return p.end > p.acknowledged ? Number(p.end - p.acknowledged) : 0;
}

type Rows = { readonly [K in EventName]?: (v: PipelineView, e: EventOf<K>) => void };

const key = (topic: string, partition: number): string => `${topic}/${partition}`;

export class PipelineView {
  readonly partitions = new Map<string, PartitionView>();
  readonly sinks = new Map<string, SinkView>();
  /** Records unpacked by lanes, and bytes fetched, since the start. */
  records = 0;
  bytes = 0;
  filtered = 0;
  stopping = false;
  stopped = false;
  started = false;
  /** Bytes handed to lanes and not read yet: a stand-in for the budget where none is watched. */
  readonly laneBytes = new Map<number, number>();
  readonly #moves = { total: 0, repeating: false };

  apply(event: TwgEvent): void {
    // Sound: the row is looked up by the name that selects the event's shape.
    const row = ROWS[event.e] as ((v: PipelineView, e: TwgEvent) => void) | undefined;
    row?.(this, event);
  }

  partition(topic: string, partition: number): PartitionView | undefined {
    return this.partitions.get(key(topic, partition));
  }

  sink(name: string): SinkView {
    let sink = this.sinks.get(name);
    if (sink === undefined) {
      sink = { rows: 0, bytes: 0, files: 0, lacks: null };
      this.sinks.set(name, sink);
    }
    return sink;
  }

  /** Over all partitions whose end is known; null if none is. */
  lag(): number | null {
    let sum: number | null = null;
    for (const p of this.partitions.values()) {
      const lag = lagOf(p);
      if (lag !== null) sum = (sum ?? 0) + lag;
    }
    return sum;
  }

  /** Positions at the source that were not fetched yet. */
  backlog(): number {
    let sum = 0;
    for (const p of this.partitions.values())
      if (p.end !== null && p.end > p.position) sum += Number(p.end - p.position);
    return sum;
  }

  inFlight(): number {
    let sum = 0;
    for (const bytes of this.laneBytes.values()) sum += bytes;
    return sum;
  }

  /**
   * Grows with every real step: something new fetched, read, covered or acknowledged. After a rewind the work that
   * is only repeated does not count, or a pipeline that fails and starts over for ever would look alive.
   */
  get progress(): number {
    return this.#moves.total;
  }

  moved(fresh: boolean): void {
    if (fresh) this.#moves.repeating = false;
    if (!this.#moves.repeating) this.#moves.total++;
  }

  repeats(): void {
    this.#moves.repeating = true;
  }
}

function begun(v: PipelineView, e: EventOf<"stream.begun">): void {
  v.partitions.set(key(e.topic, e.partition), {
    topic: e.topic,
    partition: e.partition,
    lane: e.lane,
    start: null,
    end: null,
    position: e.position,
    furthest: e.position,
    acknowledged: e.position,
    positions: 0,
    bytes: 0,
  });
  v.moved(true);
}

function delivered(v: PipelineView, e: EventOf<"bundle.delivered">): void {
  // The bundle's own size is that of its buffer, which is pooled and mostly larger than what came in it.
  v.laneBytes.set(e.lane, (v.laneBytes.get(e.lane) ?? 0) + e.bytes);
  let fresh = false;
  for (const part of e.parts) {
    v.bytes += part.bytes;
    const p = v.partition(part.topic, part.partition);
    if (p === undefined) continue;
    p.position = part.next;
    p.positions += part.positions;
    p.bytes += part.bytes;
    if (part.next <= p.furthest) continue;
    p.furthest = part.next;
    fresh = true;
  }
  if (fresh) v.moved(true);
}

function consumed(v: PipelineView, e: EventOf<"bundle.consumed">): void {
  v.records += e.rows;
  v.filtered += e.filtered;
  v.laneBytes.set(e.lane, Math.max(0, (v.laneBytes.get(e.lane) ?? 0) - e.bytes));
  v.moved(false);
}

function acknowledged(v: PipelineView, e: EventOf<"source.acknowledged">): void {
  for (const mark of e.marks) {
    const p = v.partition(mark.topic, mark.partition);
    if (p === undefined || mark.next <= p.acknowledged) continue;
    p.acknowledged = mark.next;
    v.moved(true);
  }
}

function landed(v: PipelineView, e: EventOf<"set.covered" | "recovery.covered">): void {
  const sink = v.sink(e.sink);
  sink.rows += e.rows;
  sink.bytes += e.bytes;
  sink.files += e.files;
}

function covered(v: PipelineView, e: EventOf<"set.covered">): void {
  landed(v, e);
  v.moved(true);
}

const ROWS: Rows = {
  "pipeline.started": (v) => {
    v.started = true;
  },
  "pipeline.stopping": (v) => {
    v.stopping = true;
  },
  "pipeline.stopped": (v) => {
    v.stopped = true;
  },
  "stream.begun": begun,
  "stream.watermark": (v, e) => {
    const p = v.partition(e.topic, e.partition);
    if (p === undefined) return;
    p.start = e.start;
    p.end = e.end;
  },
  "stream.rewound": (v, e) => {
    const p = v.partition(e.topic, e.partition);
    if (p !== undefined) p.position = e.position;
    v.repeats();
  },
  "stream.ended": (v, e) => {
    v.partitions.delete(key(e.topic, e.partition));
  },
  "records.lost": (v, e) => {
    // Of a topic that is gone; another one may have its name by now.
    if (e.reason === "deleted") return;
    const p = v.partition(e.topic, e.partition);
    if (p !== undefined && p.position < e.next) p.position = e.next;
  },
  "bundle.delivered": delivered,
  "bundle.consumed": consumed,
  // What the lane had not read went with it.
  "lane.died": (v, e) => {
    v.laneBytes.delete(e.lane);
  },
  "source.acknowledged": acknowledged,
  "set.covered": covered,
  // No step of live ingest: one that stands still must not hide behind it.
  "recovery.covered": landed,
  "sink.lacks": (v, e) => {
    v.sink(e.sink).lacks = e;
  },
};
