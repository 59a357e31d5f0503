/**
 * Frames of a Kafka fetch to RawBatch columns: checks, decompresses and reads record sets of magic 0, 1 and 2.
 *
 * A batch that cannot be read leaves no row: what was begun of it is taken back, what came before is handed out,
 * and the failure names topic, partition and the batch's first offset, where to fetch again.
 */
import type { Codecs } from "../../../../core/compression/codec.ts";
import { type CodecName, decompress } from "../../../../core/compression/decompress.ts";
import { Output } from "../../../../core/compression/output.ts";
import { asFailure, Failure } from "../../../../core/failure/failure.ts";
import type { FrameDecoder } from "../../../../core/ports/lane-parts.ts";
import type { Frame } from "../../../../core/records/frame.ts";
import type { RawBatch } from "../../../../core/records/raw-batch.ts";
import type { StreamId } from "../../../../core/records/stream.ts";
import { AbortedProducers } from "./aborted-producers.ts";
import { BatchColumns, type BatchFacts, MAX_BYTES, MAX_ROWS } from "./batch-columns.ts";
import { readLegacy } from "./legacy.ts";
import { readRecords } from "./records-v2.ts";

export interface FrameDecoderOptions {
  readonly codecs: Codecs;
  /** Guards against compression bombs; above any batch that a broker takes. */
  readonly maxDecompressedBytes: number;
}

/** Size of the v2 header, and where its fields are (KIP-98). */
const V2_HEADER = 61;
const CODECS: readonly (CodecName | null)[] = [null, "gzip", "snappy", "lz4", "zstd"];
/** Buffers that one huge batch left behind go back to the collector above this. */
const KEEP_BYTES = 32 * 1024 * 1024;

interface Header {
  readonly base: bigint;
  readonly last: bigint;
  readonly attributes: number;
  readonly facts: BatchFacts;
  readonly baseTimestamp: bigint;
  readonly maxTimestamp: bigint;
  readonly count: number;
}

type Place = readonly [count: number, end: number];

/** Where the columns stood before a batch. */
interface Mark {
  readonly rows: number;
  readonly valueEnd: number;
  readonly key: Place;
  readonly headerKeys: Place;
  readonly headerValues: Place;
  readonly runs: number;
  readonly runEnd: number;
}

interface Job {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly frame: Frame;
  readonly stream: StreamId;
  readonly ingestTs: number;
  readonly emit: (batch: RawBatch) => void;
  readonly aborted: AbortedProducers | null;
  /** Everything below was handed out. */
  from: bigint;
}

export function createFrameDecoder(options: FrameDecoderOptions): FrameDecoder {
  return new KafkaFrameDecoder(options);
}

class KafkaFrameDecoder implements FrameDecoder {
  readonly #o: FrameDecoderOptions;
  readonly #cols = new BatchColumns();
  readonly #scratch = new Output();

  constructor(options: FrameDecoderOptions) {
    this.#o = options;
  }

  decode(
    bytes: Uint8Array,
    frame: Frame,
    stream: StreamId,
    receivedAt: number,
    emit: (batch: RawBatch) => void,
  ): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const aborted =
      frame.committedOnly && frame.aborted.length > 0 ? new AbortedProducers(frame.aborted) : null;
    const job: Job = { bytes, view, frame, stream, ingestTs: receivedAt, emit, aborted, from: frame.from };
    this.#cols.clear();
    let at = frame.start;
    while (at < frame.end) at = this.#batch(job, at);
    if (job.from < frame.next) this.#out(job, frame.next);
    this.#cols.values.shrink(KEEP_BYTES);
    this.#scratch.shrink(KEEP_BYTES);
  }

  #out(job: Job, next: bigint): void {
    const { frame } = job;
    const to = next > frame.next ? frame.next : next;
    if (to > job.from) job.emit(this.#cols.view(job.stream, job.from, to, job.ingestTs));
    job.from = to > job.from ? to : job.from;
    this.#cols.clear();
  }

  /** Reads the batch at `at`; returns where the next one begins. */
  #batch(job: Job, at: number): number {
    const { view, frame } = job;
    const mark = this.#mark();
    let base = job.from;
    try {
      const end = this.#end(job, at);
      base = view.getBigInt64(at);
      const magic = job.bytes[at + 16]!;
      if (magic === 2) this.#v2(job, at, end);
      else if (magic < 2) this.#legacy(job, at, end);
      else throw new Failure("kafka.unknown_magic", `record format ${magic} is not known`);
      if (this.#cols.rows >= MAX_ROWS || this.#cols.bytes >= MAX_BYTES) this.#out(job, this.#lastRow() + 1n);
      return end;
    } catch (e) {
      this.#takeBack(mark);
      const first = base > job.from ? base : job.from;
      if (first > job.from) this.#out(job, first);
      throw placed(e, job.stream, first < frame.next ? first : frame.from);
    }
  }

  #end(job: Job, at: number): number {
    const { frame, view } = job;
    if (frame.end - at < 17) throw corrupt(`${frame.end - at} bytes are no batch`);
    const size = view.getInt32(at + 8);
    if (size < 0 || size > frame.end - at - 12)
      throw corrupt(`it declares ${size} bytes, ${frame.end - at - 12} are there`);
    return at + 12 + size;
  }

  #lastRow(): bigint {
    const { offsets, rows } = this.#cols;
    if (rows === 0) return -1n;
    return (BigInt(offsets[2 * rows - 1]!) << 32n) | BigInt(offsets[2 * rows - 2]! >>> 0);
  }

  #legacy(job: Job, at: number, end: number): void {
    const { codecs, maxDecompressedBytes } = this.#o;
    const parts = { codecs, maxDecompressedBytes, scratch: this.#scratch };
    readLegacy(this.#cols, parts, job.bytes, at, end, job.frame, (next) => this.#out(job, next));
  }

  #v2(job: Job, at: number, end: number): void {
    if (end - at < V2_HEADER) throw corrupt(`${end - at} bytes are too short for a batch`);
    const { codecs } = this.#o;
    if (codecs.crc32c(job.bytes, at + 21, end) !== job.view.getUint32(at + 17)) {
      throw new Failure("kafka.crc", "the batch does not have the checksum that it declares");
    }
    const h = header(job.view, at);
    if (job.frame.committedOnly && h.facts.producerId >= 0n) job.aborted?.upTo(h.last);
    if ((h.attributes & 32) !== 0) return this.#control(job, h, at + V2_HEADER, end);
    if (h.facts.transactional && job.aborted?.has(h.facts.producerId)) return;
    if (h.count === 0 && end - at === V2_HEADER) return;
    if (h.last < job.from || h.base >= job.frame.next) return;
    const start = this.#cols.valueEnd;
    this.#load(job, h, at + V2_HEADER, end);
    const whole = h.base >= job.from && h.last < job.frame.next;
    const place = {
      start,
      end: this.#cols.values.end,
      count: h.count,
      baseOffset: h.base,
      baseTimestamp: h.baseTimestamp,
      appendTime: (h.attributes & 8) !== 0 ? h.maxTimestamp : null,
      window: whole ? null : { from: job.from, next: job.frame.next },
    };
    readRecords(this.#cols, place, h.facts, (next) => this.#out(job, next));
  }

  /** Puts the records of the batch, unpacked, behind the values kept so far. */
  #load(job: Job, h: Header, start: number, end: number): void {
    const { values, valueEnd } = this.#cols;
    const codec = h.attributes & 7;
    const name = CODECS[codec];
    if (name === undefined) throw new Failure("kafka.unknown_codec", `codec ${codec} is not known`);
    if (name === null) {
      values.begin(valueEnd, end - start);
      values.append(job.bytes.subarray(start, end));
      return;
    }
    values.begin(valueEnd, this.#o.maxDecompressedBytes);
    try {
      decompress(this.#o.codecs, name, job.bytes, start, end, values);
    } catch (e) {
      throw new Failure("kafka.decompress", `${name}: ${asFailure(e).message}`, { cause: e });
    }
  }

  /** Transaction markers end what was aborted; other control records mean nothing to a reader. */
  #control(job: Job, h: Header, start: number, end: number): void {
    if (job.aborted === null || h.count === 0) return;
    const saved = this.#cols.valueEnd;
    this.#load(job, h, start, end);
    const { bytes } = this.#cols.values;
    const type = controlType(bytes, saved, this.#cols.values.end);
    if (type === ABORT) job.aborted.marker(h.facts.producerId);
  }

  #mark(): Mark {
    const { rows, valueEnd, key, headerKeys, headerValues, runs } = this.#cols;
    const last = runs.count - 1;
    return {
      rows,
      valueEnd,
      key: [key.count, key.end],
      headerKeys: [headerKeys.count, headerKeys.end],
      headerValues: [headerValues.count, headerValues.end],
      runs: runs.count,
      runEnd: last < 0 ? 0 : runs.end[last]!,
    };
  }

  /** Takes back the rows of a batch that failed. If some of it was handed out already, only the rest is left. */
  #takeBack(m: Mark): void {
    const cols = this.#cols;
    if (cols.rows < m.rows || cols.runs.count < m.runs) return;
    for (let r = m.rows; r < MAX_ROWS && cols.valueNulls > 0; r++) {
      if ((cols.valueValidity[r >> 3]! & (1 << (r & 7))) !== 0) continue;
      cols.valueValidity[r >> 3]! |= 1 << (r & 7);
      cols.valueNulls--;
    }
    cols.rows = m.rows;
    cols.valueEnd = m.valueEnd;
    cols.key.cut(...m.key);
    cols.headerKeys.cut(...m.headerKeys);
    cols.headerValues.cut(...m.headerValues);
    cols.runs.cut(m.runs, m.runEnd);
  }
}

const ABORT = 0;

/** Type of the first control record: its key is version (int16), type (int16). -1: not one that we know. */
function controlType(b: Uint8Array, start: number, end: number): number {
  // length varint, attributes, timestamp delta, offset delta, key length, key
  let p = start;
  for (const field of [0, 1, 2, 3, 4]) {
    if (field === 1) {
      p++;
      continue;
    }
    while (p < end && b[p]! & 128) p++;
    p++;
  }
  if (p + 4 > end) return -1;
  const keyLength = b[p - 1]! >> 1;
  if (keyLength < 4) return -1;
  return (b[p + 2]! << 8) | b[p + 3]!;
}

function header(view: DataView, at: number): Header {
  const attributes = view.getInt16(at + 21);
  const base = view.getBigInt64(at);
  return {
    base,
    last: base + BigInt(view.getInt32(at + 23)),
    attributes,
    baseTimestamp: view.getBigInt64(at + 27),
    maxTimestamp: view.getBigInt64(at + 35),
    count: view.getInt32(at + 57),
    facts: {
      leaderEpoch: view.getInt32(at + 12),
      producerId: view.getBigInt64(at + 43),
      producerEpoch: view.getInt16(at + 51),
      baseSequence: view.getInt32(at + 53),
      transactional: (attributes & 16) !== 0,
      timestampType: (attributes & 8) !== 0 ? 2 : 1,
    },
  };
}

function corrupt(what: string): Failure {
  return new Failure("kafka.corrupt_batch", what);
}

function placed(e: unknown, stream: StreamId, offset: bigint): Failure {
  const f = asFailure(e);
  const code = f.code.startsWith("kafka.") || f.code === "internal.bug" ? f.code : "kafka.corrupt_batch";
  return new Failure(code, f.message, {
    at: `${stream.topic}/${stream.partition}@${offset}`,
    cause: e,
    hint: "Fetched again a few times; if it stays, the log on the broker's disk is damaged",
  });
}
