/**
 * What the control thread hands to a lane: broker bytes as received, still compressed, with the span that they
 * stand for. The buffer is transferred, not copied, and the lane gives it back when it has read it.
 */
export interface AbortedTransaction {
  readonly producerId: bigint;
  readonly firstOffset: bigint;
}

export interface Frame {
  /** Index in the lane's stream table (see `LaneStream`). */
  readonly stream: number;
  /** Raised at every rewind of the stream; a lane drops frames of an older attempt. */
  readonly attempt: number;
  /** The requested position, and the one after the last whole batch: the span of this frame. */
  readonly from: bigint;
  readonly next: bigint;
  /** Byte range of whole batches within the buffer. */
  readonly start: number;
  readonly end: number;
  /** Aborted transactions that overlap the frame; empty unless reading committed records only. */
  readonly aborted: readonly AbortedTransaction[];
  /** False: uncommitted data passes too and `aborted` is ignored. */
  readonly committedOnly: boolean;
}

export interface FrameBundle {
  readonly buffer: ArrayBuffer;
  readonly frames: readonly Frame[];
  /** Wall time at which the last byte arrived, ms. Becomes `_twg_ingest_ts`. */
  readonly receivedAt: number;
}
