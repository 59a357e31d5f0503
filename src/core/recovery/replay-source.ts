/**
 * Raw files as a source: what has landed is read again for the sinks that lack it. The broker is not asked.
 *
 * A bundle holds one piece of a set of files, in most cases a row group, and a frame for each stretch of a stream in it, in
 * the order of rows. Frames reach over what is not wanted: lanes leave it out by their coverage.
 */
import type { Range } from "../ports/coverage.ts";
import type { AckMark, FoundStream, Source, SourceHost } from "../ports/source.ts";
import type { Frame } from "../records/frame.ts";
import { type StreamId, type StreamKey, streamKey } from "../records/stream.ts";
import { packedBody, packedBytes, packHead, unpackPiece } from "./packed-groups.ts";
import type { ReplayOrder, ReplayStep } from "./replay-order.ts";
import { type Leg, legsOf, type OpenedSet, type SetPiece } from "./replay-pieces.ts";

/** Looks at the files of a set. Throws recovery.raw_missing where one is not there any more. */
export type ReadSet = (set: ReplayStep["set"]) => Promise<OpenedSet>;

export interface ReplayStream {
  readonly id: StreamId;
  /** From the first position that is wanted to the end of the last. */
  readonly span: Range;
}

export interface ReplayParts {
  readonly order: ReplayOrder;
  readonly read: ReadSet;
}

interface Place {
  readonly stream: number;
  readonly lane: number;
  position: bigint;
  attempt: number;
  /** How often it was sent elsewhere. */
  seeks: number;
}

export class ReplaySource implements Source {
  readonly #streams: readonly ReplayStream[];
  readonly #p: ReplayParts;
  readonly #places = new Map<StreamKey, Place>();
  readonly #keys = new Map<number, StreamKey>();
  /** Of bundles that no lane is known to have read, by serial: what gives back what they hold besides memory. */
  readonly #away = new Map<number, Away>();
  /** Not that of an empty buffer. */
  #serial = 1;
  #closed = false;
  #paused = false;
  #wake: () => void = () => {};

  constructor(streams: readonly ReplayStream[], parts: ReplayParts) {
    this.#streams = streams;
    this.#p = parts;
  }

  async run(host: SourceHost): Promise<void> {
    const starts = await host.begin(this.#streams.map(found), null);
    for (const { id, stream, lane, position, attempt } of starts) {
      const key = streamKey(id);
      // A lane may have died while it was begun.
      if (!this.#places.has(key)) this.#place(key, { stream, lane, position, attempt, seeks: 0 });
    }
    host.healthy();
    while (!this.#closed) {
      const step = this.#paused ? null : this.#p.order.take();
      if (step === null) await this.#woken();
      else await this.#give(host, step);
    }
  }

  async #give(host: SourceHost, step: ReplayStep): Promise<void> {
    const seeks = new Map(step.parts.map((p) => [p.stream, this.#places.get(p.stream)?.seeks]));
    // A stream that was sent elsewhere meanwhile may lack sets before this one: the order gives it anew.
    const isHere = (stream: StreamKey) => this.#places.get(stream)!.seeks === seeks.get(stream);
    const set = await this.#p.read(step.set);
    try {
      for (const leg of legsOf(set.pieces, step.parts)) {
        for (const lane of new Set(leg.stops.map((s) => this.#places.get(s.stream)!.lane)))
          if (!(await this.#leg(host, leg, lane, isHere))) return;
      }
    } finally {
      set.close();
    }
  }

  /** False: nothing more is to be read. */
  async #leg(
    host: SourceHost,
    { piece, stops }: Leg,
    lane: number,
    isHere: (stream: StreamKey) => boolean,
  ): Promise<boolean> {
    while (!this.#over && (host.room(lane) <= 0 || this.#waits(piece))) await this.#roomFor(host, lane);
    if (this.#over) return false;
    const isNeeded = () => stops.some((s) => isHere(s.stream) && this.#places.get(s.stream)!.lane === lane);
    if (!isNeeded()) return true;
    const buffer = host.takeBuffer(packedBytes(piece?.bytes ?? 0));
    const { bytes, release } = (await piece?.fill(packedBody(buffer))) ?? NOTHING;
    const end = packedBytes(bytes);
    const frames = stops.flatMap(({ stream, next }) =>
      isHere(stream) ? this.#frame(stream, next, lane) : [],
    );
    if (this.#over || frames.length === 0) {
      release?.();
      host.giveBuffer(buffer);
      return !this.#over;
    }
    const serial = this.#serial++;
    packHead(buffer, { serial, ...(piece ?? NO_FILES) }, bytes);
    if (release !== null) this.#away.set(serial, { release, waited: true });
    // Its bytes count once, whatever the number of its frames: lanes read the whole of it.
    const given = frames.map((f, i) => ({ ...f, start: i === 0 ? 0 : end, end }));
    host.deliver(lane, { buffer, frames: given, receivedAt: 0 });
    return true;
  }

  get #over(): boolean {
    return this.#closed || this.#paused;
  }

  /** What lies on a disk is bounded too: one such piece at a time, unless a lane died with it. */
  #waits(piece: SetPiece | null): boolean {
    return piece?.form === "files" && [...this.#away.values()].some((a) => a.waited);
  }

  async #roomFor(host: SourceHost, lane: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (host.room(lane) <= 0) host.whenRoom(lane, resolve);
    });
  }

  /** A lane has read the bundle in it. */
  consumed(buffer: ArrayBuffer): void {
    if (this.#away.size === 0 || buffer.byteLength < packedBytes(0)) return;
    const { serial } = unpackPiece(new Uint8Array(buffer));
    this.#away.get(serial)?.release();
    if (this.#away.delete(serial)) this.#wake();
  }

  #frame(stream: StreamKey, next: bigint, lane: number): Frame[] {
    const place = this.#places.get(stream)!;
    if (place.lane !== lane || next <= place.position) return [];
    const from = place.position;
    place.position = next;
    const { attempt } = place;
    return [
      { stream: place.stream, attempt, from, next, start: 0, end: 0, aborted: [], committedOnly: false },
    ];
  }

  seek(stream: number, position: bigint, attempt: number): void {
    const key = this.#keys.get(stream);
    const place = key === undefined ? undefined : this.#places.get(key);
    if (key === undefined || place === undefined) return;
    place.position = position;
    place.attempt = attempt;
    place.seeks++;
    this.#p.order.seek(key, position);
    // Its lane may have died, and what that had is never told as read. Others may read it still.
    for (const a of this.#away.values()) a.waited = false;
    this.#wake();
  }

  #place(key: StreamKey, place: Place): void {
    this.#places.set(key, place);
    this.#keys.set(place.stream, key);
    this.#p.order.seek(key, place.position);
  }

  confirmation(): Promise<null> {
    return Promise.resolve(null);
  }

  /** Nobody waits for it. */
  acknowledge(marks: readonly AckMark[]): Promise<readonly AckMark[]> {
    return Promise.resolve(marks);
  }

  pause(): void {
    this.#paused = true;
    this.#wake();
  }

  close(): Promise<void> {
    this.#closed = true;
    // Lanes are ended by now: what they read still is nobody's.
    for (const a of this.#away.values()) a.release();
    this.#away.clear();
    this.#wake();
    return Promise.resolve();
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

interface Away {
  readonly release: () => void;
  /** Nothing like it is made before it was read. */
  waited: boolean;
}

const NO_FILES = { form: "files", twoLives: false } as const;
const NOTHING = { bytes: 0, release: null };

function found({ id, span }: ReplayStream): FoundStream {
  const { transport, cluster, topic, partition } = id;
  const { from: earliest, next: latest } = span;
  return { transport, cluster, topic, partition, topicId: null, committed: null, earliest, latest };
}
