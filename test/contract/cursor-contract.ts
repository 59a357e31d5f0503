/**
 * The cursor of a source without positions of its own, files, never leads: it is kept as coverage, row by row, with a mark for the end of each file. At every
 * durable write of a job, before it and behind it, what others see is looked at. A row that is covered is in the sink, or in the rejects; the job says of no
 * row that it landed before it is covered, and ends only when every file is covered to its end. Text and Avro's container files, in every store
 * that can hold the cursor. An order that is swapped on purpose must be found out.
 */
import { afterAll, describe, expect, test } from "bun:test";
import type { BatchPlan } from "../../src/commands/batch-plan.ts";
import { avroEncoder } from "../../src/core/codecs/avro/encode-value.ts";
import { containsRange, normalRanges, type Ranges } from "../../src/core/coverage/ranges.ts";
import type { CommitListener } from "../../src/core/delivery/committer.ts";
import type { Span } from "../../src/core/records/stream.ts";
import { BatchRoom } from "../commands/batch-room.ts";
import { containerFile } from "../core/codecs/avro/container-file.ts";
import { batchJob, type JobSink } from "./batch-job.ts";

export type CursorSwap = "cover_first" | "acknowledge_first";

const FOUND: Readonly<Record<CursorSwap, RegExp>> = {
  cover_first: /is covered and neither there nor refused/,
  acknowledge_first: /is said to have landed and not covered/,
};

export interface CursorSeen {
  /** Values of the column, as often as they are there. */
  readonly rows: readonly number[];
  /** Numbers of refused rows of the text. */
  readonly refused: readonly number[];
  /** By stream. */
  readonly covered: ReadonlyMap<string, Ranges>;
}

export interface CursorWatch {
  readonly swap: CursorSwap | null;
  /** To be called wherever something has become durable, or is about to. */
  readonly moment: (what: string) => void | Promise<void>;
  /** The job was told that they landed. */
  readonly landed: (spans: readonly Span[]) => void;
}

export interface CursorBench {
  look(): CursorSeen | Promise<CursorSeen>;
  sink(plan: BatchPlan, watch: CursorWatch): JobSink | Promise<JobSink>;
  /** Lets time pass until the work is done. */
  run<T>(work: Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** What the job hears of its committer, heard along. */
export const heard = (listener: CommitListener, { landed }: CursorWatch): CommitListener => ({
  ...listener,
  committed: (id, spans) => {
    landed(spans);
    listener.committed(id, spans);
  },
});

/** Text: a row of number n holds n, and one is refused. Avro: it holds AVRO + n. */
const TEXT_ROWS = 9;
const REFUSED = 4;
const AVRO = 100;
const AVRO_ROWS = 6;
const SCHEMA = { type: "record", name: "R", fields: [{ name: "id", type: "long" }] };
/** Above it are ends of files: core/records/file-stream.ts. */
const END = 2n ** 62n;

function files(room: BatchRoom): readonly string[] {
  const { encode } = avroEncoder({ text: JSON.stringify(SCHEMA), references: [] });
  const long = (n: number) => ({ kind: "long", value: BigInt(n) }) as const;
  const payloads = Array.from({ length: AVRO_ROWS }, (_, i) =>
    encode({ kind: "record", fields: [{ name: "id", value: long(AVRO + i) }] }),
  );
  const text = Array.from({ length: TEXT_ROWS }, (_, i) => (i === REFUSED ? "refused" : String(i)));
  return [
    room.put("a.csv", `id\n${text.join("\n")}\n`),
    room.put("b.avro", containerFile(SCHEMA, payloads, { codec: "deflate", perBlock: 2 })),
  ];
}

interface Judging {
  /** Rows and coverage are one transaction. */
  readonly atomic: boolean;
  readonly isText: (stream: string) => boolean;
}

class Judge {
  readonly complaints: string[] = [];
  moments = 0;
  last: CursorSeen = { rows: [], refused: [], covered: new Map() };
  readonly #landed = new Map<string, Ranges>();
  readonly #o: Judging;

  constructor(options: Judging) {
    this.#o = options;
  }

  landed(spans: readonly Span[]): void {
    for (const s of spans)
      this.#landed.set(s.stream, normalRanges([...(this.#landed.get(s.stream) ?? []), s]));
  }

  look(what: string, seen: CursorSeen): void {
    this.moments++;
    this.last = seen;
    const says = (complaint: string) => void this.complaints.push(`${what}: ${complaint}`);
    const there = new Set([...seen.rows, ...seen.refused]);
    if (there.size < seen.rows.length + seen.refused.length) says("a row is there twice");
    const covered = new Set(this.#covered(seen));
    for (const row of covered)
      if (!there.has(row)) says(`row ${row} is covered and neither there nor refused`);
    if (this.#o.atomic)
      for (const row of there) if (!covered.has(row)) says(`row ${row} is there and not covered`);
    for (const [stream, ranges] of this.#landed)
      for (const r of ranges)
        if (!containsRange(seen.covered.get(stream) ?? [], r))
          says(`${stream} [${r.from}, ${r.next}) is said to have landed and not covered`);
  }

  /** Values of covered rows: without ends of files. */
  #covered({ covered }: CursorSeen): readonly number[] {
    return [...covered].flatMap(([stream, ranges]) =>
      ranges
        .filter((r) => r.from < END)
        .flatMap(({ from, next }) =>
          Array.from(
            { length: Number(next - from) },
            (_, i) => Number(from) + i + (this.#o.isText(stream) ? 0 : AVRO),
          ),
        ),
    );
  }
}

/** Covered to its end. */
const whole = (rows: number): Ranges => [
  { from: 0n, next: BigInt(rows) },
  { from: END + BigInt(rows), next: END + BigInt(rows) + 1n },
];

/** `atomic`: rows and coverage are one transaction. */
export function cursorContract(name: string, make: () => Promise<CursorBench>, atomic = false): void {
  describe(`cursors of files over ${name}`, () => {
    const room = new BatchRoom();
    afterAll(() => room.end());

    async function watch(swap: CursorSwap | null) {
      const schema = room.put("schema.json", '{"columns":[{"name":"id","type":"int64"}]}');
      const plan = await room.plan(files(room), { schema, maxRejects: 10 });
      const isText = (stream: string) => plan.works[0]!.bytes === Number(stream.split("/").at(-1));
      const judge = new Judge({ atomic, isText });
      const bench = await make();
      const moment = (what: string): void | Promise<void> => {
        const seen = bench.look();
        return seen instanceof Promise ? seen.then((s) => judge.look(what, s)) : judge.look(what, seen);
      };
      const landed = (spans: readonly Span[]) => judge.landed(spans);
      const job = async () => {
        const runner = batchJob(plan, await bench.sink(plan, { swap, moment, landed }));
        const result = await runner.run();
        await moment("the job has ended");
        return result;
      };
      const result = await bench.run(job()).catch((e: unknown) => e);
      await bench.close();
      return { judge, result };
    }

    test("rows and rejects, then the cursor, then what the job says", async () => {
      const { judge, result } = await watch(null);
      expect(judge.complaints).toEqual([]);
      const rows = TEXT_ROWS + AVRO_ROWS - 1;
      expect(result).toMatchObject({ filesDone: 2, rows, rejected: 1, landed: rows + 1 });
      // Each file in several sets.
      expect(judge.moments).toBeGreaterThan(8);
      const cursors = [...judge.last.covered.values()].sort((a, b) => Number(b[0]!.next - a[0]!.next));
      expect(cursors).toEqual([whole(TEXT_ROWS), whole(AVRO_ROWS)]);
      expect(judge.last.refused).toEqual([REFUSED]);
    }, 120_000);

    test.each((Object.keys(FOUND) as CursorSwap[]).map((s) => [s]))(
      "what is swapped is found: %s",
      async (swap) => {
        expect((await watch(swap)).judge.complaints.join("\n")).toMatch(FOUND[swap]);
      },
      120_000,
    );
  });
}
