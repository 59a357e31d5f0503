/** A simulated table whose rows and coverage become durable in one transaction, as in a database; all processes share it. */
import { normalRanges, overlapsRange, type Ranges, unionRanges } from "../../src/core/coverage/ranges.ts";
import { bisect } from "../../src/core/delivery/bisect.ts";
import { Failure, toWire } from "../../src/core/failure/failure.ts";
import { withoutSpans } from "../../src/core/pipeline/span-set.ts";
import type { BranchWriter } from "../../src/core/ports/branch-parts.ts";
import type { Authority, Claim, StreamCoverage } from "../../src/core/ports/coverage.ts";
import type { SetFiles, SetRefusal } from "../../src/core/ports/lane-parts.ts";
import type { RawBatch } from "../../src/core/records/raw-batch.ts";
import type { Span, StreamKey } from "../../src/core/records/stream.ts";
import type { SeededChance } from "./chance.ts";
import type { SimProcess, SimTime } from "./clock.ts";

interface TableStream {
  generation: number;
  groupEpoch: number | null;
  covered: Ranges;
}

export interface TableFaults {
  /** Probability that a call fails without effect, and that it takes effect and fails. */
  fail: number;
  failAfter: number;
  /** Longest time of a call, ms. */
  slowMs: number;
  /** Refused rows can be kept nowhere. */
  rejectsDown: boolean;
}

/** A row in so many is one that the table can never have. */
const POISON_EVERY = 11n;

interface SetRow {
  readonly stream: StreamKey;
  readonly offset: bigint;
  readonly text: string;
}

const ROW_BYTES = 64;

export class SimTable {
  /** "partition@offset value", one entry a row that was ever committed. */
  readonly rows: string[] = [];
  /** The same of rows that it refused. */
  readonly rejects: string[] = [];
  readonly streams = new Map<StreamKey, TableStream>();
  readonly faults: TableFaults = { fail: 0, failAfter: 0, slowMs: 4, rejectsDown: false };
  /** Told of the spans of every commit, at its very moment. */
  onCommit: (spans: readonly Span[]) => void = () => {};
  readonly #receipts = new Map<string, SetFiles>();
  /** Covers what it refused and could keep nowhere: a planted bug. */
  readonly #forgets: boolean;
  readonly #time: SimTime;
  readonly #chance: SeededChance;

  constructor(time: SimTime, chance: SeededChance, forgets: boolean) {
    this.#forgets = forgets;
    this.#time = time;
    this.#chance = chance;
  }

  coverage(owner: SimProcess): StreamCoverage {
    const call = <T>(effect: () => T) => this.#call(owner, effect);
    const nothing = () => call(() => {});
    return {
      open: nothing,
      claim: (streams, epoch) => call(() => streams.map((s) => this.#claim(s, epoch))),
      covered: (stream) => call(() => this.#of(stream).covered),
      recordLost: nothing,
      rememberOrigins: nothing,
      topic: () => call(() => null),
      rememberTopic: (_, memory) => call(() => memory),
      lease: (window) => call(() => ({ kind: "lease", window, lease: 1 }) as const),
      heartbeat: nothing,
      fenced: null,
      close: () => Promise.resolve(),
    };
  }

  writer(owner: SimProcess): BranchWriter<RawBatch> {
    let id = "";
    let rows: SetRow[] = [];
    const call = <T>(effect: () => T) => this.#call(owner, effect);
    return {
      open: (set) => {
        id = set;
      },
      write: (batch, _authority, from = 0) => {
        const text = new TextDecoder();
        const { offsets, data } = batch.value;
        for (let i = from; i < batch.rows; i++) {
          const offset = (BigInt(batch.offsets[2 * i + 1]!) << 32n) | BigInt(batch.offsets[2 * i]! >>> 0);
          const value = text.decode(data.subarray(offsets[i]!, offsets[i + 1]!));
          const line = `${batch.stream.partition}@${offset} ${value}`;
          rows.push({ stream: batch.span.stream, offset, text: line });
        }
        return batch.rows;
      },
      flush: () => call(() => {}),
      get held() {
        return rows.length * ROW_BYTES;
      },
      get largest() {
        return rows.length * ROW_BYTES;
      },
      seal: async (spans, authorities) => {
        // What was sent is sent, whatever is dropped meanwhile.
        const sent = rows;
        const found = await bisect(sent.length, sent.length, async (from, next) =>
          sent.slice(from, next).some(isPoison) ? "poison" : null,
        );
        const bad = new Set("sink" in found ? [] : found.refused.map((r) => r.row));
        const answer = await call(() => this.#commit(id, sent, bad, spans, authorities));
        if (rows === sent) rows = [];
        return answer;
      },
      abort: async () => {
        rows = [];
      },
    };
  }

  #commit(
    id: string,
    sent: readonly SetRow[],
    bad: ReadonlySet<number>,
    all: readonly Span[],
    authorities: readonly Authority[],
  ): SetFiles | SetRefusal {
    // The receipt of a commit whose answer was lost.
    const receipt = this.#receipts.get(id);
    if (receipt !== undefined) return receipt;
    const refused = sent.filter((_, i) => bad.has(i));
    const rows = sent.filter((_, i) => !bad.has(i));
    const down = this.faults.rejectsDown;
    const holes = refused.map(({ stream, offset }) => ({ stream, from: offset, next: offset + 1n }));
    const uncovered = down && !this.#forgets ? holes : [];
    const spans = withoutSpans(all, uncovered);
    const failure = down ? toWire(new Failure("store.unavailable", "no rejects", { retry: true })) : null;
    const told =
      refused.length === 0
        ? {}
        : { leftOut: { codes: [["poison", refused.length]] as const, uncovered, failure } };
    const done: SetFiles = {
      targets: [],
      covered: true,
      rows: rows.length,
      bytes: rows.length * ROW_BYTES,
      ...told,
    };
    for (const s of spans) {
      const proven = authorities.some(
        (a) =>
          a.kind === "generation" && a.stream === s.stream && a.generation === this.#of(s.stream).generation,
      );
      if (!proven) return { refused: "fenced", detail: s.stream };
      if (overlapsRange(this.#of(s.stream).covered, s)) return { refused: "overlap", detail: s.stream };
    }
    this.onCommit(spans);
    this.#receipts.set(id, done);
    this.rows.push(...rows.map((r) => r.text));
    if (!down) this.rejects.push(...refused.map((r) => r.text));
    for (const s of spans) {
      const of = this.#of(s.stream);
      of.covered = unionRanges(of.covered, normalRanges([s]));
    }
    return done;
  }

  #claim(stream: StreamKey, epoch: number | null): Claim {
    const of = this.#of(stream);
    if (epoch !== null && of.groupEpoch !== null && epoch < of.groupEpoch)
      throw new Failure("coverage.epoch_behind", `${stream} was claimed under ${of.groupEpoch}`);
    of.groupEpoch = epoch;
    of.generation++;
    const authority = { kind: "generation", stream, generation: of.generation } as const;
    return { stream, authority, covered: of.covered, lost: [], origin: null, staleCommit: null };
  }

  #of(stream: StreamKey): TableStream {
    const known = this.streams.get(stream) ?? { generation: 0, groupEpoch: null, covered: [] };
    this.streams.set(stream, known);
    return known;
  }

  /** Calls of a dead process never return. */
  #call<T>(owner: SimProcess, effect: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const clock = this.#time.clock(owner);
      clock.after(this.#chance.next() * this.faults.slowMs, () => {
        if (this.#chance.next() < this.faults.fail) return reject(down());
        let value: T;
        try {
          value = effect();
        } catch (e) {
          return reject(e);
        }
        const lost = this.#chance.next() < this.faults.failAfter;
        clock.after(this.#chance.next() * this.faults.slowMs, () => (lost ? reject(down()) : resolve(value)));
      });
    });
  }
}

const isPoison = ({ offset }: SetRow): boolean => offset % POISON_EVERY === 5n;

function down(): Failure {
  return new Failure("store.unavailable", "the simulated table did not answer", { retry: true });
}
