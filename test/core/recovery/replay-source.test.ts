/**
 * Goal: raw files come as frames that follow one another, wait for room, go back where they are told to, and end when
 * the run does. Method: the source against a host that keeps what it is given.
 */
import { expect, test } from "bun:test";
import type { IndexEntry } from "../../../src/core/coverage/state.ts";
import type { FoundStream, SourceHost, StreamStart } from "../../../src/core/ports/source.ts";
import type { FrameBundle } from "../../../src/core/records/frame.ts";
import { type StreamId, streamKey } from "../../../src/core/records/stream.ts";
import { unpackPiece } from "../../../src/core/recovery/packed-groups.ts";
import { ReplayOrder } from "../../../src/core/recovery/replay-order.ts";
import type { OpenedSet, PieceTurn, SetPiece } from "../../../src/core/recovery/replay-pieces.ts";
import { ReplaySource } from "../../../src/core/recovery/replay-source.ts";
import { ReplayCoverage, ReplayWriter } from "../../../src/core/recovery/replayed.ts";
import { batchOf, bytes, row, STREAM } from "../formats/parquet/rows.ts";

const id = (partition: number): StreamId => ({
  transport: "kafka",
  cluster: "c",
  topic: "t",
  incarnation: 2,
  partition,
});
const A = streamKey(id(0));
const B = streamKey(id(1));
const span = (from: bigint, next: bigint) => ({ from, next });
const set = (n: string, spans: IndexEntry["spans"]): IndexEntry => ({
  id: n,
  targets: [],
  spans,
  rows: 0,
  bytes: 0,
});
const WANTED = new Map([
  [A, [span(0n, 4n), span(6n, 9n)]],
  [B, [span(1n, 3n)]],
]);
const INDEX = [
  set("1", [
    { stream: A, ...span(0n, 6n) },
    { stream: B, ...span(0n, 3n) },
  ]),
  set("2", [{ stream: A, ...span(6n, 9n) }]),
];

class Host {
  readonly given: string[] = [];
  readonly found: FoundStream[] = [];
  readonly buffers: ArrayBuffer[] = [];
  full = false;
  #wake: () => void = () => {};
  readonly host: SourceHost;

  constructor() {
    this.host = {
      lanes: 1,
      begin: async (found: readonly FoundStream[]): Promise<StreamStart[]> => {
        this.found.push(...found);
        return found.map((f, i) => ({
          id: id(f.partition),
          stream: i,
          lane: 0,
          position: f.earliest,
          attempt: 0,
        }));
      },
      healthy: () => {},
      room: () => (this.full ? 0 : 1000),
      whenRoom: (_: number, wake: () => void) => {
        this.#wake = wake;
      },
      takeBuffer: (n: number) => new ArrayBuffer(n + 7),
      deliver: (_: number, { buffer, frames }: FrameBundle) => {
        const { form, body } = unpackPiece(new Uint8Array(buffer, 0, frames[0]!.end));
        const text = `${form === "files" ? "files " : ""}${new TextDecoder().decode(body)}`;
        for (const f of frames) this.given.push(`${text}: ${f.stream}.${f.attempt} [${f.from}, ${f.next})`);
        this.buffers.push(buffer);
      },
      giveBuffer: () => {},
    } as unknown as SourceHost;
  }

  room(): void {
    this.full = false;
    this.#wake();
  }
}

/** A piece that says `text`, and what it fills and gives back. */
function piece(text: string, turns: readonly PieceTurn[] | null, log: string[] = []): SetPiece {
  const body = bytes(text);
  return {
    ...{ form: turns === null ? "files" : "group", twoLives: false, turns, bytes: body.length },
    fill: async (into) => {
      log.push(`fill ${text}`);
      into.set(body);
      return { bytes: body.length, release: turns === null ? () => void log.push(`release ${text}`) : null };
    },
  };
}
const turn = (stream: string, first: bigint, last: bigint): PieceTurn => ({ stream, first, last });
const opened = (...pieces: SetPiece[]): OpenedSet => ({ pieces, close: () => {} });
/** One group of what the spans of a set say. */
const whole = (s: IndexEntry) =>
  opened(
    piece(
      `s${s.id}`,
      s.spans.map(({ stream, from, next }) => turn(stream, from, next - 1n)),
    ),
  );

function started(read = async (s: IndexEntry) => whole(s)) {
  const host = new Host();
  const source = new ReplaySource(
    [
      { id: id(0), span: span(0n, 9n) },
      { id: id(1), span: span(1n, 3n) },
    ],
    { order: new ReplayOrder(INDEX, WANTED), read },
  );
  return { host, source };
}
const settled = () => Bun.sleep(5);

test("frames follow one another, over what is not wanted, and a stream that goes back is given again", async () => {
  const { host, source } = started();
  const run = source.run(host.host);
  await settled();
  const all = ["s1: 0.0 [0, 4)", "s1: 1.0 [1, 3)", "s2: 0.0 [4, 9)"];
  expect(host.given).toEqual(all);
  expect(host.found.map((f) => [f.partition, f.earliest, f.latest, f.committed, f.topicId])).toEqual([
    [0, 0n, 9n, null, null],
    [1, 1n, 3n, null, null],
  ]);
  source.seek(0, 2n, 1);
  source.seek(77, 2n, 1);
  await settled();
  expect(host.given.slice(3)).toEqual(["s1: 0.1 [2, 4)", "s2: 0.1 [4, 9)"]);
  expect(await source.confirmation()).toBeNull();
  await source.acknowledge([{ stream: 0, next: 9n }]);
  await source.close();
  await run;
});

test("a stream that goes back while a set is read is not given that set before those that come first", async () => {
  const { host } = started();
  const reads: (() => void)[] = [];
  const source = new ReplaySource([{ id: id(0), span: span(0n, 9n) }], {
    order: new ReplayOrder(INDEX, new Map([[A, WANTED.get(A)!]])),
    read: async (s) => {
      await new Promise<void>((resolve) => reads.push(resolve));
      return whole(s);
    },
  });
  const run = source.run(host.host);
  const readOne = async () => {
    await settled();
    reads.shift()?.();
    await settled();
  };
  await readOne();
  expect(host.given).toEqual(["s1: 0.0 [0, 4)"]);
  // The lane dies: what it was given is not durable.
  source.seek(0, 0n, 1);
  await readOne();
  await readOne();
  await readOne();
  expect(host.given.slice(1)).toEqual(["s1: 0.1 [0, 4)", "s2: 0.1 [4, 9)"]);
  await source.close();
  await run;
});

test("it waits for room, and a pause ends the waiting", async () => {
  const { host, source } = started();
  host.full = true;
  const run = source.run(host.host);
  await settled();
  expect(host.given).toEqual([]);
  host.room();
  await settled();
  expect(host.given.length).toBe(3);
  host.full = true;
  source.seek(0, 0n, 1);
  await settled();
  source.pause();
  await settled();
  expect(host.given.length).toBe(3);
  await source.close();
  await run;
});

test("row groups come one by one, with the turns of streams in the order of rows; unwanted ones are not read", async () => {
  const log: string[] = [];
  const { host, source } = started(async (s) =>
    s.id === "2"
      ? opened(piece("g4", [turn(A, 6n, 8n)], log))
      : opened(
          piece("g1", [turn(A, 0n, 0n), turn(B, 0n, 1n), turn(A, 1n, 1n), turn("other", 5n, 6n)], log),
          piece("g2", [turn(B, 2n, 2n), turn(A, 2n, 3n)], log),
          piece("g3", [turn(A, 4n, 5n)], log),
        ),
  );
  const run = source.run(host.host);
  await settled();
  expect(host.given).toEqual([
    ...["g1: 0.0 [0, 1)", "g1: 1.0 [1, 2)", "g1: 0.0 [1, 2)"],
    // What nobody wants in between is left out by lanes.
    ...["g2: 1.0 [2, 3)", "g2: 0.0 [2, 4)", "g4: 0.0 [4, 9)"],
  ]);
  expect(log).toEqual(["fill g1", "fill g2", "fill g4"]);
  await source.close();
  await run;
});

test("positions of which there is no row come to their end all the same", async () => {
  const { host, source } = started(async (s) =>
    s.id === "2" ? opened() : opened(piece("g1", [turn(A, 1n, 2n)])),
  );
  const run = source.run(host.host);
  await settled();
  expect(host.given).toEqual(["g1: 0.0 [0, 4)", "files : 1.0 [1, 3)", "files : 0.0 [4, 9)"]);
  await source.close();
  await run;
});

test("a group is read once there is room for it, so what is in memory is what lanes hold", async () => {
  const log: string[] = [];
  const groups = Array.from({ length: 4 }, (_, i) => piece(`g${i}`, [turn(A, BigInt(i), BigInt(i))], log));
  const { host, source } = started(async (s) => (s.id === "1" ? opened(...groups) : whole(s)));
  const deliver = host.host.deliver;
  host.host.deliver = (lane, bundle) => {
    host.full = true;
    deliver.call(host.host, lane, bundle);
  };
  const run = source.run(host.host);
  for (let n = 1; n <= 4; n++) {
    await settled();
    expect(log.length).toBe(n);
    host.room();
  }
  await source.close();
  await run;
});

test("files on a disk are there one set at a time, until a lane has read them or nobody will", async () => {
  const log: string[] = [];
  const { host, source } = started(async (s) => opened(piece(s.id, null, log)));
  const run = source.run(host.host);
  await settled();
  expect(log).toEqual(["fill 1"]);
  source.consumed(host.buffers[0]!);
  await settled();
  expect(log).toEqual(["fill 1", "release 1", "fill 2"]);
  // A lane died with it: the next is not held up, and what it may read still is not taken away.
  source.seek(0, 6n, 1);
  await settled();
  expect(log.slice(3)).toEqual(["fill 2"]);
  expect(host.given.at(-1)).toBe("files 2: 0.1 [6, 9)");
  await source.close();
  await run;
  expect(log.slice(4)).toEqual(["release 2", "release 2"]);
});

test("a file that cannot be read ends the run with its failure", async () => {
  const { host } = started();
  const source = new ReplaySource([{ id: id(0), span: span(0n, 9n) }], {
    order: new ReplayOrder(INDEX, WANTED),
    read: () => Promise.reject(new Error("gone")),
  });
  expect(source.run(host.host)).rejects.toThrow("gone");
});

test("in the place of the primary sink all is covered but what is wanted, and rows go nowhere", async () => {
  const coverage = new ReplayCoverage(WANTED, 2);
  const [claim] = await coverage.claim([A]);
  expect(claim).toMatchObject({ covered: [span(4n, 6n)], origin: 0n, lost: [], staleCommit: null });
  expect(await coverage.topic()).toEqual({ topicId: "", incarnation: 2 });
  expect(await coverage.covered()).toEqual([]);
  expect(() => coverage.claim(["kafka/c/t/2/9"])).toThrow("nobody lacks");
  expect(coverage.lease()).rejects.toThrow();

  const writer = new ReplayWriter();
  // Where records begin to be judged in another way no batch lies on both sides.
  const cut = new ReplayWriter(new Map([[streamKey(STREAM), [3n, 7n]]]));
  const rowsAt = (...at: number[]) => cut.write(batchOf(at.map((n) => row(n))));
  expect([rowsAt(0, 2, 3, 4), rowsAt(3, 4, 6), rowsAt(3, 6, 8, 9), rowsAt(7, 9)]).toEqual([2, 3, 2, 2]);
  expect(cut.write({ ...batchOf([row(8)]), span: { stream: streamKey(STREAM), from: 5n, next: 9n } })).toBe(
    0,
  );

  writer.open("1");
  expect(writer.write(batchOf([row(0, { key: bytes("ab"), value: bytes("cde") }), row(1)]))).toBe(2);
  expect([writer.largest, writer.held]).toEqual([5, 0]);
  expect(await writer.seal()).toEqual({ targets: [], covered: true, rows: 2, bytes: 0 });
  await writer.flush();
  await writer.abort();
  expect(writer.largest).toBe(0);
});
