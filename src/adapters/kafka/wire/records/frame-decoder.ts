/**
 * Frames of a Kafka partition into RawBatches: framing, checksums, transactions, decompression, columns.
 *
 * The order per batch matters. The checksum comes first, since nothing else in the header can be trusted before
 * it; then the transaction filter, which needs headers only; then what is wanted of the offsets; and only then
 * is anything decompressed. A batch that breaks is taken back whole, the good ones before it are emitted, and
 * the failure names the offset: the position never passes what was not read.
 */
import type { Codecs } from "../../../../core/compression/codec.ts";
import { type CodecName, decompress } from "../../../../core/compression/decompress.ts";
import { Output } from "../../../../core/compression/output.ts";
import { asFailure, Failure } from "../../../../core/failure/failure.ts";
import type { FrameDecoder } from "../../../../core/ports/lane-parts.ts";
import type { Frame } from "../../../../core/records/frame.ts";
import type { RawBatch } from "../../../../core/records/raw-batch.ts";
import type { StreamId } from "../../../../core/records/stream.ts";
import { FrameRun } from "./frame-run.ts";
import { framingTrouble } from "./framing.ts";
import * as L from "./layout.ts";
import { addMessage, innerBase, innerMessages, type Message, readMessage } from "./parse-legacy.ts";
import { parseSection, type Section } from "./parse-v2.ts";
import { type ColumnName, RowBuilder } from "./row-builder.ts";
import type { RunFields } from "./runs-builder.ts";
import { varintSize, varintValue, varlongSize } from "./varint.ts";

export interface FrameDecoderOptions {
  readonly codecs: Codecs;
  /** Hard cap on what one batch may expand to; above any batch that a broker takes. Default 512 MiB. */
  readonly maxDecompressedBytes?: number;
  /** A RawBatch is emitted at this many rows or bytes of keys, values and headers. Defaults 65,536 and 8 MiB. */
  readonly maxRows?: number;
  readonly maxBytes?: number;
}

const MAX_DECOMPRESSED_BYTES = 512 * 1024 * 1024;
const MAX_ROWS = 65_536;
const MAX_BYTES = 8 * 1024 * 1024;
/** More than this behind the values and they are emitted first, so that the buffer does not grow for the sum. */
const GROW_BEFORE_EMIT_BYTES = 16 * 1024 * 1024;

/** A decoder whose arrays may be taken back from who got a batch: those have no elements then. */
export interface LendingDecoder extends FrameDecoder {
  /** Between two calls of decode. */
  detach(column: ColumnName): void;
}

/** One decoder per lane: its columns are reused by every call. */
export function createFrameDecoder(options: FrameDecoderOptions): LendingDecoder {
  return new RecordsDecoder(options);
}

class RecordsDecoder implements LendingDecoder {
  readonly #codecs: Codecs;
  readonly #maxDecompressed: number;
  readonly #rows: RowBuilder;
  /** Unpacked messages of magic 0 and 1, and control records. */
  readonly #scratch = new Output();
  readonly #section: Section = {
    at: 0,
    end: 0,
    read: 0,
    count: 0,
    baseOffsetLow: 0,
    baseOffsetHigh: 0,
    lastOffsetDelta: 0,
    firstWanted: 0,
    lastWanted: 0,
    previousDelta: -1,
    timestampLow: 0,
    timestampHigh: 0,
    logAppendTime: false,
  };

  constructor(options: FrameDecoderOptions) {
    this.#codecs = options.codecs;
    this.#maxDecompressed = options.maxDecompressedBytes ?? MAX_DECOMPRESSED_BYTES;
    this.#rows = new RowBuilder(options.maxRows ?? MAX_ROWS, options.maxBytes ?? MAX_BYTES);
  }

  detach(column: ColumnName): void {
    this.#rows.detach(column);
  }

  decode(
    bytes: Uint8Array,
    frame: Frame,
    stream: StreamId,
    receivedAt: number,
    emit: (batch: RawBatch) => void,
  ): void {
    this.#rows.reset();
    this.#rows.shrink();
    this.#scratch.shrink(GROW_BEFORE_EMIT_BYTES);
    const run = new FrameRun(bytes, frame, stream, receivedAt, emit, this.#rows);
    while (run.position < frame.next) {
      if (run.at >= frame.end) {
        throw run.fail(new Failure("kafka.corrupt_batch", `the bytes end there and not at ${frame.next}`));
      }
      this.#batch(run);
    }
    run.finish();
  }

  /** Reads the batch at run.at, or hands out what is before it and throws. */
  #batch(run: FrameRun): void {
    if (this.#rows.full) run.emit(run.position);
    this.#rows.mark();
    try {
      if (run.frame.end - run.at < L.MAGIC_END) throw cut(run);
      const trouble = framingTrouble(run.view, run.at, run.frame.end);
      if (trouble !== null) throw trouble;
      const size = L.PREFIX_BYTES + run.view.getInt32(run.at + L.AT_LENGTH);
      if (size > run.frame.end - run.at) throw cut(run);
      if (run.view.getInt8(run.at + L.AT_MAGIC) === 2) this.#batchV2(run, run.at + size);
      else this.#message(run, run.at + size);
      run.at += size;
    } catch (e) {
      if (run.sinkFailed) throw e;
      this.#rows.rollback();
      throw run.fail(asFailure(e));
    }
  }

  #batchV2(run: FrameRun, end: number): void {
    const { bytes, view, at } = run;
    const declared = view.getUint32(at + L.V2_CRC);
    const seen = this.#codecs.crc32c(bytes, at + L.V2_ATTRIBUTES, end);
    if (seen !== declared) {
      throw new Failure("kafka.crc", `batch has the CRC-32C ${seen}, ${declared} is declared`);
    }
    const base = view.getBigInt64(at);
    run.meet(base);
    const last = base + BigInt(view.getInt32(at + L.V2_LAST_OFFSET_DELTA));
    const attributes = view.getInt16(at + L.V2_ATTRIBUTES);
    const codec = codecOf(attributes);
    const skipped = this.#leftOut(run, attributes, codec, last, end);
    if (!skipped && last >= run.position && base < run.frame.next) {
      this.#records(run, base, last, attributes, codec, end);
    }
    run.reach(last + 1n);
  }

  /** True for control batches and those of aborted transactions. Follows the markers either way. */
  #leftOut(run: FrameRun, attributes: number, codec: CodecName | null, last: bigint, end: number): boolean {
    const control = (attributes & L.ATTR_CONTROL) !== 0;
    const filter = run.aborted;
    if (filter === null) return control;
    const producerId = run.view.getBigInt64(run.at + L.V2_PRODUCER_ID);
    if (producerId < 0n) return control;
    filter.reach(last);
    if (control) {
      if (this.#isAbortMarker(run, codec, end)) filter.end(producerId);
      return true;
    }
    return (attributes & L.ATTR_TRANSACTIONAL) !== 0 && filter.isAborted(producerId);
  }

  /** The key of a control record is int16 version, int16 type; type 0 is abort. Compaction may leave none. */
  #isAbortMarker(run: FrameRun, codec: CodecName | null, end: number): boolean {
    if (run.view.getInt32(run.at + L.V2_COUNT) <= 0) return false;
    const out = this.#scratch;
    out.begin(0, this.#maxDecompressed);
    this.#unpack(run.bytes, run.at + L.V2_RECORDS, end, codec, out);
    let p = 0;
    p += varintSize(out.bytes, p) + 1;
    p += varlongSize(out.bytes, p);
    p += varintSize(out.bytes, p);
    const n = varintValue(out.bytes, p, varintSize(out.bytes, p));
    p += varintSize(out.bytes, p);
    if (n < 4 || n > out.end - p) {
      throw new Failure("kafka.corrupt_batch", `a control record with a key of ${n} bytes`);
    }
    return out.bytes[p + 2] === 0 && out.bytes[p + 3] === 0;
  }

  #unpack(
    bytes: Uint8Array,
    start: number,
    end: number,
    codec: CodecName | null,
    out: Output,
    magic = 2,
  ): void {
    // Compaction may leave a batch without records, and then there is nothing compressed either.
    if (start === end) return;
    if (codec === null) out.append(bytes.subarray(start, end));
    else unpackWith(this.#codecs, codec, bytes, start, end, out, magic);
  }

  #records(
    run: FrameRun,
    base: bigint,
    last: bigint,
    attributes: number,
    codec: CodecName | null,
    end: number,
  ): void {
    const { bytes, view, at } = run;
    const b = this.#rows;
    const start = at + L.V2_RECORDS;
    if (b.rows > 0 && b.valueLength + (end - start) > GROW_BEFORE_EMIT_BYTES) {
      run.emit(run.position);
      b.mark();
    }
    const out = b.value;
    out.begin(b.valueLength, codec === null ? end - start : this.#maxDecompressed);
    this.#unpack(bytes, start, end, codec, out);
    const s = this.#section;
    s.at = out.start;
    s.end = out.end;
    s.read = 0;
    s.count = view.getInt32(at + L.V2_COUNT);
    s.baseOffsetLow = view.getInt32(at + 4);
    s.baseOffsetHigh = view.getInt32(at);
    s.lastOffsetDelta = view.getInt32(at + L.V2_LAST_OFFSET_DELTA);
    s.firstWanted = run.position > base ? Number(run.position - base) : 0;
    s.lastWanted = last < run.frame.next ? s.lastOffsetDelta : Number(run.frame.next - 1n - base);
    s.previousDelta = -1;
    s.logAppendTime = (attributes & L.ATTR_LOG_APPEND) !== 0;
    const timeAt = at + (s.logAppendTime ? L.V2_MAX_TIMESTAMP : L.V2_BASE_TIMESTAMP);
    s.timestampHigh = view.getInt32(timeAt);
    s.timestampLow = view.getInt32(timeAt + 4);
    const fields = runOf(view, at, attributes);
    while (!parseSection(b, s)) {
      b.runs.add(b.rows, fields);
      // Rows of a checked batch that is larger than one RawBatch: the span ends behind the last of them.
      run.emit(base + BigInt(s.previousDelta) + 1n);
      b.mark();
    }
    b.runs.add(b.rows, fields);
  }

  #message(run: FrameRun, end: number): void {
    const m = readMessage(this.#codecs, run.bytes, run.view, run.at, end);
    run.meet(m.offset);
    const codec = codecOf(m.attributes);
    const fields = legacyRun(m);
    if (codec !== null) {
      this.#wrapper(run, m, codec, fields);
      return;
    }
    if (m.offset >= run.position && m.offset < run.frame.next) {
      addMessage(this.#rows, run.bytes, m, m.offset, m.timestamp);
      this.#rows.runs.add(this.#rows.rows, fields);
    }
    run.reach(m.offset + 1n);
  }

  #wrapper(run: FrameRun, wrapper: Message, codec: CodecName, fields: RunFields): void {
    if (codec === "zstd") {
      throw new Failure("kafka.corrupt_batch", `zstd in a message of magic ${wrapper.magic}`);
    }
    if (wrapper.value.length < 0)
      throw new Failure("kafka.corrupt_batch", "a compressed message without a value");
    const out = this.#scratch;
    out.begin(0, this.#maxDecompressed);
    const { at, length } = wrapper.value;
    this.#unpack(run.bytes, at, at + length, codec, out, wrapper.magic);
    const inner = innerMessages(this.#codecs, out.bytes, out.end, wrapper);
    const lastInner = inner[inner.length - 1]!.offset;
    const base = innerBase(wrapper, lastInner);
    const b = this.#rows;
    for (const m of inner) {
      const offset = base + m.offset;
      if (offset < run.position || offset >= run.frame.next) continue;
      if (b.full) {
        b.runs.add(b.rows, fields);
        run.emit(offset);
        b.mark();
      }
      addMessage(
        b,
        out.bytes,
        m,
        offset,
        fields.timestampType === L.TIMESTAMP_LOG_APPEND ? wrapper.timestamp : m.timestamp,
      );
    }
    b.runs.add(b.rows, fields);
    const last = base + lastInner;
    run.reach((last < wrapper.offset ? wrapper.offset : last) + 1n);
  }
}

function unpackWith(
  codecs: Codecs,
  codec: CodecName,
  bytes: Uint8Array,
  start: number,
  end: number,
  out: Output,
  magic: number,
): void {
  try {
    decompress(codecs, codec, bytes, start, end, out, magic === 0);
  } catch (e) {
    const failure = asFailure(e);
    if (failure.code === "compression.limit" || failure.kind !== "runtime") throw failure;
    throw new Failure("kafka.decompress", failure.message, { cause: e });
  }
}

function cut(run: FrameRun): Failure {
  return new Failure("kafka.corrupt_batch", `a batch is cut, ${run.frame.end - run.at} bytes are there`);
}

function codecOf(attributes: number): CodecName | null {
  const number = attributes & L.ATTR_CODEC;
  const codec = L.CODECS[number];
  if (codec === undefined) {
    throw new Failure("kafka.unknown_codec", `batch is compressed with codec ${number}, 0 to 4 are known`);
  }
  return codec;
}

function runOf(view: DataView, at: number, attributes: number): RunFields {
  return {
    leaderEpoch: view.getInt32(at + L.AT_LEADER_EPOCH),
    producerId: view.getBigInt64(at + L.V2_PRODUCER_ID),
    producerEpoch: view.getInt16(at + L.V2_PRODUCER_EPOCH),
    baseSequence: view.getInt32(at + L.V2_BASE_SEQUENCE),
    transactional: (attributes & L.ATTR_TRANSACTIONAL) === 0 ? 0 : 1,
    timestampType: (attributes & L.ATTR_LOG_APPEND) === 0 ? L.TIMESTAMP_CREATE : L.TIMESTAMP_LOG_APPEND,
  };
}

function legacyRun(m: Message): RunFields {
  const logAppend = (m.attributes & L.ATTR_LOG_APPEND) !== 0;
  const typed = logAppend ? L.TIMESTAMP_LOG_APPEND : L.TIMESTAMP_CREATE;
  return {
    leaderEpoch: -1,
    producerId: -1n,
    producerEpoch: -1,
    baseSequence: -1,
    transactional: 0,
    timestampType: m.magic === 0 ? L.TIMESTAMP_NONE : typed,
  };
}
