/** The files that every reader gets, and what must be found in them, one line of text a row. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fillRecordIds, recordIdBase } from "../../src/core/records/record-id.ts";
import type { StreamId } from "../../src/core/records/stream.ts";
import {
  batchOf,
  bytes,
  type FileOptions,
  fileOf,
  type Row,
  row,
  STREAM,
} from "../core/formats/parquet/rows.ts";

export interface CorpusFile {
  readonly name: string;
  readonly path: string;
  /** As `lineOf`, in the order of the file. */
  readonly lines: readonly string[];
}

const I64_MAX = 2n ** 63n - 1n;
const I64_MIN = -(2n ** 63n);
const wild = Uint8Array.of(0xff, 0x00, 0xc3, 0x28, 0x80);

const EDGES: readonly Row[] = [
  row(0, { key: null, value: bytes("") }),
  row(1, { key: bytes(""), value: null }),
  row(2, { key: wild, value: wild, headers: [[wild, wild]] }),
  row(3, {
    headers: [
      [bytes("a"), bytes("1")],
      [bytes("a"), null],
      [bytes("a"), bytes("")],
      [bytes(""), bytes("x")],
    ],
  }),
  row(4, {
    headers: Array.from(
      { length: 200 },
      (_, i) => [bytes(`h${i % 7}`), i % 3 === 0 ? null : bytes(`${i}`)] as const,
    ),
  }),
  row(5, { timestamp: 0n }),
  row(6, { timestamp: -1n }),
  row(7, { timestamp: -62_135_596_800_000n, timestampType: 2 }),
  row(8, { timestampType: 0, timestamp: -1n }),
  row(9, { producerId: 0n, producerEpoch: 0, baseSequence: 0, leaderEpoch: 0 }),
  row(10, {
    producerId: I64_MAX,
    producerEpoch: 32_767,
    baseSequence: 2_147_483_647,
    leaderEpoch: 7,
    transactional: true,
  }),
  row(2n ** 53n + 1n),
  row(I64_MAX),
];

const EXTREMES: readonly Row[] = [
  row(0, { timestamp: I64_MAX }),
  row(1, { timestamp: I64_MIN }),
  row(2, { timestamp: 5n }),
];

function many(n: number, from: number): Row[] {
  return Array.from({ length: n }, (_, i) =>
    row(from + i, {
      timestamp: BigInt(1_700_000_000_000 + i * 7 + (i % 13)),
      key: i % 5 === 0 ? null : bytes(`k${i % 11}`),
      value: i % 17 === 0 ? null : bytes(`{"id":${i},"text":"${"x".repeat(i % 40)}"}`),
      headers:
        i % 4 === 0
          ? [
              [bytes("trace"), bytes(`${i}`)],
              [bytes("n"), null],
            ]
          : [],
      producerId: 9n,
      baseSequence: Math.floor(i / 50),
      transactional: i % 1000 < 10,
    }),
  );
}

const hex = (b: Uint8Array) => Buffer.from(b).toString("hex");
const orTilde = (v: unknown) => (v === null ? "~" : String(v));
const minusOne = (v: number | bigint) => (Number(v) === -1 ? "~" : String(v));

/** topic partition offset timestamp type key value headers epoch producer producer_epoch sequence transactional id */
function lineOf(r: Row, stream: StreamId): string {
  const id = new Int32Array(4);
  fillRecordIds(
    recordIdBase(stream),
    stream.partition,
    new Int32Array(BigInt64Array.of(r.offset).buffer),
    0,
    1,
    id,
    0,
  );
  const headers = r.headers.map(([k, v]) => `${hex(k)}:${v === null ? "~" : hex(v)}`).join(",");
  return [
    stream.topic,
    stream.partition,
    r.offset,
    r.timestampType === 0 ? "~" : r.timestamp,
    orTilde([null, "CreateTime", "LogAppendTime"][r.timestampType]),
    r.key === null ? "~" : hex(r.key),
    r.value === null ? "~" : hex(r.value),
    `[${headers}]`,
    minusOne(r.leaderEpoch),
    minusOne(r.producerId),
    minusOne(r.producerEpoch),
    minusOne(r.baseSequence),
    r.transactional,
    Buffer.from(id.buffer).toString("hex"),
  ].join(" ");
}

type Part = readonly [rows: readonly Row[], stream: StreamId];

/** Writes the corpus into a folder of its own; `remove` takes it away. */
export function corpus(): { readonly folder: string; readonly files: readonly CorpusFile[]; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "twg-readers-"));
  const other: StreamId = {
    ...STREAM,
    topic: "other.topic",
    partition: 2_147_483_647,
    incarnation: 4,
    cluster: "",
  };
  const third: StreamId = { ...STREAM, partition: 0 };
  const turns: Part[] = Array.from({ length: 60 }, (_, i) => [
    many(500, i * 500),
    [STREAM, other, third][i % 3]!,
  ]);
  const huge = new Uint8Array(20 * 1024 * 1024);
  for (let i = 0; i < huge.length; i += 997) huge[i] = i;
  const write = (name: string, parts: readonly Part[], options: FileOptions = {}): CorpusFile => {
    const path = join(folder, `${name}.parquet`);
    writeFileSync(
      path,
      fileOf(
        parts.map(([rows, s]) => batchOf(rows, s)),
        options,
      ),
    );
    return { name, path, lines: parts.flatMap(([rows, s]) => rows.map((r) => lineOf(r, s))) };
  };
  const files = [
    write("edges", [[EDGES, STREAM]]),
    write("edges_plain", [[EDGES, STREAM]], { compressed: false }),
    write("extremes", [[EXTREMES, STREAM]]),
    write("pages", [[many(70_000, 0), STREAM]]),
    write("turns", turns, { rowGroupBytes: 300_000 }),
    write("huge", [[[row(0, { value: bytes("a") }), row(1, { value: huge }), row(2)], STREAM]]),
    write("empty", []),
  ];
  return { folder, files, remove: () => rmSync(folder, { recursive: true }) };
}
