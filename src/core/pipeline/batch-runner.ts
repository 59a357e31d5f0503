/**
 * A batch job from its first file to its last: files are hashed, claimed under their digest, cut in pieces, decoded in
 * lanes, and committed like any other set. It ends when every file is covered to its end, or with the first failure;
 * whatever was covered by then stays, and the next run goes on behind it.
 *
 * Positions are safe since a set's spans are whole pieces that a lane has written, and the cutter's bytes were compared
 * with the hashed ones before a lane got them: what is covered is of that digest.
 */
import type { SetCommitter } from "../delivery/committer.ts";
import { asFailure, Failure, fromWire, toWire } from "../failure/failure.ts";
import type {
  BatchLanePort,
  CutterPort,
  FileWork,
  FromBatchLane,
  FromCutter,
  PieceCounts,
  PieceMessage,
  RejectSample,
  RowRange,
} from "../ports/batch-lane.ts";
import type { Authority } from "../ports/coverage.ts";
import type { SealedSet } from "../ports/lane.ts";
import { fileStreamKey, PART_BYTES } from "../records/file-stream.ts";
import { BatchFile, rangesOf } from "./batch-files.ts";
import type {
  BatchProgress,
  BatchResult,
  BatchRunnerOptions,
  BatchRunnerParts,
} from "./batch-runner-parts.ts";
import { Pulse } from "./pulse.ts";
import { tooManyRejects } from "./reject-line.ts";

/** The counter that files are ranked by. */
const RANKS = "files";

/** Hashing is ahead of cutting by so many files. */
const AHEAD = 4;

interface Lane {
  readonly port: BatchLanePort;
  /** Pieces and ranges it has; hash tasks do not count. */
  pieces: number;
  rolled: (() => void) | null;
}

export class BatchRunner {
  readonly #o: BatchRunnerOptions;
  readonly #p: BatchRunnerParts;
  readonly #files: readonly BatchFile[];
  readonly #committer: SetCommitter;
  readonly #streams = new Map<string, BatchFile>();
  readonly #ranges: { readonly file: BatchFile; readonly range: RowRange }[] = [];
  readonly #pieces: { readonly file: BatchFile; readonly piece: PieceMessage }[] = [];
  #lanes: Lane[] = [];
  #cutter: CutterPort | null = null;
  #stopping: string | null = null;
  #rows = 0;
  #rejected = 0;
  #skippedRows = 0;
  #landed = 0;
  #sets = 0;
  #bytesDone = 0;
  #laneTurn = 0;
  #claims: Promise<void> = Promise.resolve();
  /** Files that were claimed, or are about to be. */
  #claimed = 0;
  #end!: (failure: Failure | null) => void;
  readonly #ended: Promise<Failure | null>;

  constructor(works: readonly FileWork[], options: BatchRunnerOptions, parts: BatchRunnerParts) {
    this.#o = options;
    this.#p = parts;
    this.#files = works.map(
      (w) => new BatchFile(w, Math.ceil(w.bytes / options.blockBytes), Math.ceil(w.bytes / PART_BYTES)),
    );
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#committer = parts.committer({
      committed: (_, spans) => {
        this.#sets++;
        for (const s of spans)
          if (s.next - s.from > 0n && s.from < 2n ** 62n) this.#landed += Number(s.next - s.from);
      },
      refused: (id, _lane, reason, detail) =>
        this.#fail(new Failure("coverage.fenced", `set ${id} was refused (${reason}): ${detail}`)),
      failed: (failure) => this.#fail(failure),
      trouble: (failure) => this.#trouble(failure),
    });
  }

  get progress(): BatchProgress {
    const count = (state: BatchFile["state"]): number => this.#files.filter((f) => f.state === state).length;
    return {
      files: this.#files.length,
      filesDone: count("done") + count("skipped"),
      filesSkipped: count("skipped"),
      bytes: this.#files.reduce((n, f) => n + f.work.bytes, 0),
      bytesDone: this.#bytesDone + this.#bytesCut(),
      rows: this.#rows,
      rejected: this.#rejected,
      skippedRows: this.#skippedRows,
      landed: this.#landed,
      sets: this.#sets,
    };
  }

  #bytesCut(): number {
    const under = this.#files.filter((f) => f.state === "cutting" || f.state === "cut");
    return under.reduce((n, f) => n + f.cutBytes(this.#o.blockBytes), 0);
  }

  /** Ends as soon as what is in the lanes is covered. */
  stop(reason: string): void {
    if (this.#stopping !== null) return;
    this.#stopping = reason;
    this.#p.observer.emit({ e: "pipeline.stopping", reason });
    void this.#finish(null);
  }

  /** Throws the failure that ended the job. */
  async run(): Promise<BatchResult> {
    const { coverage, clock, observer } = this.#p;
    await coverage.open();
    const pulse = new Pulse(this.#o.heartbeatMs, { clock, coverage, observer }, (f) => this.#fail(f));
    pulse.start();
    try {
      this.#start();
      const failure = await this.#ended;
      if (failure !== null) throw failure;
      await this.#committer.idle();
      return { ...this.progress, twins: this.#twins(), stopped: this.#stopping !== null };
    } finally {
      pulse.stop();
      for (const lane of this.#lanes) lane.port.kill();
      this.#cutter?.kill();
      this.#committer.close();
      await coverage.close();
    }
  }

  #twins(): BatchResult["twins"] {
    return this.#files.flatMap((f) => (f.twin === null ? [] : [{ file: f.work.name, of: f.twin.work.name }]));
  }

  #start(): void {
    this.#lanes = Array.from({ length: this.#o.lanes }, (_, i) => {
      const lane: Lane = { port: this.#p.spawnLane(i), pieces: 0, rolled: null };
      lane.port.onMessage((m) => this.#guard(() => this.#fromLane(lane, m)));
      return lane;
    });
    this.#cutter = this.#p.spawnCutter();
    this.#cutter.onMessage((m) => this.#guard(() => this.#fromCutter(m)));
    for (let i = 0; i < this.#o.credits; i++) this.#cutter.post({ t: "credit", buffer: null });
    this.#advance();
  }

  #guard(fn: () => void): void {
    try {
      fn();
    } catch (e) {
      this.#fail(asFailure(e));
    }
  }

  #fail(failure: Failure): void {
    this.#end(failure);
  }

  #trouble(failure: Failure | null): void {
    const { observer } = this.#p;
    const { sink } = this.#o;
    observer.emit(
      failure === null
        ? { e: "sink.recovered", sink, ms: 0 }
        : { e: "sink.troubled", sink, failure: toWire(failure) },
    );
  }

  // ---- hashing and claiming

  /** Starts whatever can start: hashing a few files ahead, cutting one at a time, and the end. */
  #advance(): void {
    if (this.#stopping !== null) return;
    const next = this.#files.findIndex((f) => f.state === "waiting" || f.state === "hashing");
    const busy = this.#files.findIndex((f) => f.state !== "done" && f.state !== "skipped");
    if (busy < 0) {
      void this.#finish(null);
      return;
    }
    if (next >= 0)
      for (const f of this.#files.slice(next, busy + AHEAD)) if (f.state === "waiting") this.#hash(f);
    const current = this.#files.find((f) => f.state === "cutting");
    if (current !== undefined) return;
    const first = this.#files.find((f) => f.state !== "done" && f.state !== "skipped" && f.state !== "cut");
    if (first?.state === "hashed") this.#begin(first);
  }

  #hash(f: BatchFile): void {
    f.state = "hashing";
    const { bytes, path, revision, file } = f.work;
    const parts = Math.ceil(bytes / PART_BYTES);
    // All lanes on one file, in shares of whole parts; small ones are one task.
    const share = Math.max(1, Math.ceil(parts / this.#lanes.length)) * PART_BYTES;
    for (let from = 0; from < bytes; from += share) {
      f.hashing++;
      const lane = this.#lanes[this.#laneTurn++ % this.#lanes.length]!;
      lane.port.post({ t: "hash", task: { file, path, revision, from, to: Math.min(bytes, from + share) } });
    }
    if (bytes === 0) this.#identified(f, new Uint8Array(0));
  }

  #identified(f: BatchFile, parts: Uint8Array): void {
    f.sha256 = this.#p.digestOf(parts);
    const stream = fileStreamKey({ sha256: f.sha256, bytes: f.work.bytes });
    f.stream = stream;
    const twin = this.#streams.get(stream);
    if (twin !== undefined) {
      f.twin = twin;
      this.#skip(f);
      this.#claimIdentified();
      return;
    }
    this.#streams.set(stream, f);
    this.#claimIdentified();
  }

  /** In the order of the files, whichever was hashed first. */
  #claimIdentified(): void {
    for (; (this.#files[this.#claimed]?.stream ?? null) !== null; this.#claimed++) {
      const f = this.#files[this.#claimed]!;
      if (f.twin === null)
        this.#claims = this.#claims.then(() => this.#claim(f)).catch((e) => this.#fail(asFailure(e)));
    }
  }

  async #claim(f: BatchFile): Promise<void> {
    const [claim] = await this.#p.coverage.claim([f.stream!], null);
    f.claimed(claim!);
    if (this.#o.ranked && !f.isComplete) f.rank = await this.#rankOf(f);
    if (f.work.file === this.#files[0]?.work.file) await this.#p.sweep();
    if (f.isComplete) {
      this.#skippedRows += Number(f.coverage.total ?? 0n);
      this.#skip(f);
      return;
    }
    f.state = "hashed";
    this.#advance();
  }

  /** The one that it had in an earlier run, else the next. Durable before a row of the file is written. */
  async #rankOf(f: BatchFile): Promise<number> {
    const { coverage } = this.#p;
    const known = await coverage.topic(f.stream!);
    if (known !== null) return known.incarnation;
    const next = await coverage.lease(RANKS);
    const rank = next.kind === "lease" ? next.lease : 0;
    return (await coverage.rememberTopic(f.stream!, { topicId: f.sha256, incarnation: rank })).incarnation;
  }

  #skip(f: BatchFile): void {
    f.state = "skipped";
    this.#bytesDone += f.work.bytes;
    this.#advance();
  }

  // ---- cutting

  #begin(f: BatchFile): void {
    f.state = "cutting";
    const { work, stream, sha256, coverage } = f;
    const ranges = rangesOf(work);
    for (const lane of this.#lanes)
      lane.port.post({
        t: "file",
        work,
        stream: stream!,
        sha256,
        authority: f.authority,
        rank: f.rank,
        covered: coverage.rows,
        ended: coverage.total !== null,
        checks: ranges === null ? null : f.checks,
      });
    if (ranges === null) {
      this.#cutter?.post({ t: "cut", work, columns: this.#o.columnsOf(work) });
      return;
    }
    f.state = "cut";
    for (const range of ranges) {
      if (f.holds(range.firstRow, range.rows) && (!range.last || coverage.total !== null)) {
        this.#skippedRows += range.rows;
        continue;
      }
      f.pieces++;
      this.#ranges.push({ file: f, range });
    }
    this.#dispatch();
    this.#settle(f);
    this.#advance();
  }

  #fromCutter(m: FromCutter): void {
    if (m.t === "dead") throw fromWire(m.failure);
    if (m.t === "ready" || this.#stopping !== null) return;
    const f = this.#files[m.t === "piece" ? m.piece.file : m.file]!;
    if (m.t === "cut") {
      f.compare(m.blocks, true);
      f.state = "cut";
      this.#settle(f);
      this.#advance();
      return;
    }
    f.compare(m.blocks, false);
    const { piece } = m;
    const ended = !piece.last || f.coverage.total !== null;
    if (f.holds(piece.firstRow, piece.records) && ended) {
      this.#skippedRows += piece.records;
      this.#cutter?.post({ t: "credit", buffer: piece.buffer }, [piece.buffer]);
      return;
    }
    f.pieces++;
    this.#pieces.push({ file: f, piece });
    this.#dispatch();
  }

  /** Gives work to lanes that have less than two pieces: one under way, one waiting. */
  #dispatch(): void {
    for (;;) {
      const lane = this.#lanes.reduce((a, b) => (b.pieces < a.pieces ? b : a));
      if (lane.pieces >= 2) return;
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        lane.pieces++;
        lane.port.post({ t: "piece", piece: piece.piece }, [piece.piece.buffer]);
        continue;
      }
      const range = this.#ranges.shift();
      if (range === undefined) return;
      lane.pieces++;
      lane.port.post({ t: "range", range: range.range });
    }
  }

  // ---- lanes

  #fromLane(lane: Lane, m: FromBatchLane): void {
    switch (m.t) {
      case "dead":
        throw fromWire(m.failure);
      case "hashed": {
        const f = this.#files[m.hashed.file]!;
        const parts = f.takeHashed(m.hashed, PART_BYTES, this.#o.blockBytes);
        if (parts !== null) this.#identified(f, parts);
        return;
      }
      case "done":
        this.#done(lane, m.file, m.buffer, m.counts, m.samples);
        return;
      case "refused":
        this.#rows -= m.rows;
        this.#refused(m.rows, m.samples);
        return;
      case "sealed":
        this.#sealed(m.set);
        return;
      case "rolled":
        lane.rolled?.();
        return;
      case "sink":
        this.#trouble(m.failure === null ? null : fromWire(m.failure));
    }
  }

  #done(
    lane: Lane,
    file: number,
    buffer: ArrayBuffer | null,
    counts: PieceCounts,
    samples: readonly RejectSample[],
  ): void {
    const f = this.#files[file]!;
    lane.pieces--;
    f.pieces--;
    this.#rows += counts.rows;
    this.#skippedRows += counts.skipped;
    if (!this.#refused(counts.rejected, samples)) return;
    if (buffer !== null) this.#cutter?.post({ t: "credit", buffer }, [buffer]);
    this.#settle(f);
    this.#dispatch();
  }

  /** False: more than the job allows, and it has ended. */
  #refused(rows: number, samples: readonly RejectSample[]): boolean {
    this.#rejected += rows;
    for (const s of samples) this.#p.onSample(s);
    if (this.#rejected <= this.#o.maxRejects) return true;
    this.#fail(tooManyRejects(this.#rejected, this.#o.maxRejects));
    return false;
  }

  #settle(f: BatchFile): void {
    if (f.state !== "cut" || f.pieces > 0) return;
    f.state = "done";
    this.#bytesDone += f.work.bytes;
    this.#advance();
  }

  #sealed(set: SealedSet): void {
    const authorities: Authority[] = [];
    for (const stream of new Set(set.spans.map((s) => s.stream))) {
      const authority = this.#streams.get(stream)?.authority ?? null;
      if (authority !== null) authorities.push(authority);
    }
    this.#committer.submit(set, authorities);
  }

  // ---- the end

  #finishing = false;

  async #finish(failure: Failure | null): Promise<void> {
    if (this.#finishing) return;
    this.#finishing = true;
    await Promise.all(
      this.#lanes.map(
        (lane) =>
          new Promise<void>((resolve) => {
            lane.rolled = resolve;
            lane.port.post({ t: "roll" });
          }),
      ),
    );
    await this.#committer.idle();
    this.#end(failure);
  }
}
