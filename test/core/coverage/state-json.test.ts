/**
 * Goal: the persisted state of version 1 is read for ever, written back byte for byte, and whatever else lies in its
 * place is refused with a code that names object and place. Method: golden files made by hand; then each of their
 * values replaced, each key dropped or added, and the bytes cut and damaged.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { type CoverageState, EMPTY_STATE, NEW_STREAM } from "../../../src/core/coverage/state.ts";
import {
  encodeSegment,
  encodeState,
  entryBytes,
  parseSegment,
  parseState,
} from "../../../src/core/coverage/state-json.ts";
import { tidiedLeases, windowsOf } from "../../../src/core/coverage/windows.ts";
import { Failure } from "../../../src/core/failure/failure.ts";

const golden = (name: string): Uint8Array => readFileSync(join(import.meta.dir, "../../golden/state", name));
const STATE = golden("coverage-v1.json");
const SEGMENT = golden("coverage-index-v1.json");
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const read = (bytes: Uint8Array): CoverageState => parseState(bytes, "the-object", 41);

function refused(parse: () => unknown): Failure {
  try {
    parse();
  } catch (e) {
    if (e instanceof Failure) return e;
    throw e;
  }
  throw new Error("was not refused");
}

describe("version 1", () => {
  test("is read value for value", () => {
    const s = read(STATE);
    expect([s.serial, s.writers]).toEqual([41, ["99999999.7", "a1b2c3d4.40"]]);
    expect(s.owners[0]?.host).toMatchObject({ pid: 4711, startTime: "123456" });
    expect(s.owners[0]).toMatchObject({ instance: "a1b2c3d4", since: 1767225600000, beat: 17 });
    expect([...s.streams]).toEqual([
      [
        "kafka/c1/orders/0/0",
        {
          generation: 3,
          groupEpoch: null,
          owner: "a1b2c3d4",
          origin: 0n,
          staleCommit: null,
          covered: [
            { from: 0n, next: 500n },
            { from: 600n, next: 2n ** 63n - 1n },
          ],
          lost: [
            { from: 500n, next: 550n, reason: "accepted_gap" },
            { from: 550n, next: 560n, reason: "retention" },
            { from: 560n, next: 570n, reason: "truncated" },
          ],
        },
      ],
      ["kafka/c1/__proto__/1/7", { ...NEW_STREAM, generation: 1, groupEpoch: 12 }],
    ]);
    expect([...s.leases]).toEqual([["2026-01-01", { lease: 2, owner: "a1b2c3d4" }]]);
    expect(s.topics.get("kafka/c1/__proto__")).toEqual({ topicId: "", incarnation: 1 });
    const intent = s.intents.get("a1b2c3d4-5");
    expect(intent?.spans[1]).toEqual({
      stream: "kafka/c1/__proto__/1/7",
      from: 2n ** 53n + 1n,
      next: 2n ** 53n + 3n,
    });
    expect(intent?.targets[0]?.staging).toBe("a1b2c3d4-9.staged");
    expect(intent?.authorities[1]).toEqual({ kind: "lease", window: "2026-01-01", lease: 2 });
    expect(s.index.map((e) => [e.id, e.targets.length, e.rows])).toEqual([
      ["a1b2c3d4-4", 2, 101],
      ["a1b2c3d4-3", 0, 0],
    ]);
    expect(s.segments).toEqual([
      { name: "a1b2c3d4-0.0", entries: 2, files: 3, rows: 300, bytes: 9000, level: 0 },
    ]);
  });

  test("is written byte for byte as it was read, segments too", () => {
    expect(encodeState(read(STATE))).toEqual(new Uint8Array(STATE));
    expect(encodeSegment(parseSegment(SEGMENT, "x"))).toEqual(new Uint8Array(SEGMENT));
  });

  test("windows and heads of recovery are read, those of holders that are gone are none, and all is written as it was", () => {
    const bytes = golden("coverage-v1-windows.json");
    const s = parseState(bytes, "the-object", 9);
    const stream = "kafka/c1/orders a/0/0";
    expect(windowsOf(s)).toEqual([
      { holder: "a1b2c3d4", stream, from: 2n ** 53n + 1n, next: null },
      { holder: "recovery-00ff", stream, from: 600n, next: 2n ** 53n + 1n },
    ]);
    expect([...tidiedLeases(s).values()].map((l) => l.lease)).toEqual([0, 4]);
    expect(s.streams.get(stream)).toMatchObject({
      staleCommit: 12n,
      tip: { position: 500n, epoch: 7 },
      lost: [{ reason: "retention" }, { reason: "deleted" }],
    });
    expect(s.intents.get("00ff-1")?.authorities).toMatchObject([{ kind: "lease", lease: 4 }]);
    expect(encodeState(s)).toEqual(new Uint8Array(bytes));
  });

  test("what a caller's objects hold besides is not written", () => {
    const s = read(STATE);
    const more = <T extends object>(o: T): T => ({ ...o, surplus: 1 });
    const intents = new Map(
      [...s.intents].map(([id, i]) => [
        id,
        more({ ...i, targets: i.targets.map(more), authorities: i.authorities.map(more) }),
      ]),
    );
    const fat: CoverageState = {
      ...s,
      intents,
      owners: s.owners.map((o) => more({ ...o, host: more(o.host) })),
      index: s.index.map(more),
    };
    expect(encodeState(fat)).toEqual(new Uint8Array(STATE));
  });

  test("a stale commit and the loss of a deleted topic are kept; where there is none nothing is written", () => {
    const s = read(STATE);
    const [key, stream] = [...s.streams][0]!;
    const lost = [...stream.lost, { from: 570n, next: 580n, reason: "deleted" }] as const;
    const streams = new Map(s.streams).set(key, { ...stream, staleCommit: 2n ** 60n, lost });
    const bytes = encodeState({ ...s, streams });
    expect(new TextDecoder().decode(bytes)).toContain('"staleCommit":"1152921504606846976"');
    expect([...read(bytes).streams]).toEqual([...streams]);
    const f = refused(() => read(bytesOf(new TextDecoder().decode(bytes).replace('"11529', '"x'))));
    expect([f.code, f.at]).toEqual(["coverage.corrupt", "the-object $.streams[0].staleCommit"]);
  });

  test("leader epochs of open spans and of what is covered are kept; where they are not known nothing is written", () => {
    const s = read(STATE);
    const [key, stream] = [...s.streams][0]!;
    const [id, open] = [...s.intents][0]!;
    const spans = open.spans.map((span, i) => (i === 0 ? { ...span, leaderEpoch: 7 } : span));
    const streams = new Map(s.streams).set(key, { ...stream, tip: { position: 2n ** 60n, epoch: 3 } });
    const bytes = encodeState({ ...s, streams, intents: new Map(s.intents).set(id, { ...open, spans }) });
    expect(read(bytes).streams.get(key)?.tip).toEqual({ position: 2n ** 60n, epoch: 3 });
    expect(read(bytes).intents.get(id)?.spans).toEqual(spans);
    const f = refused(() =>
      read(bytesOf(new TextDecoder().decode(bytes).replace('"1152921504606846976",3', '"1",-3'))),
    );
    expect([f.code, f.at]).toEqual(["coverage.corrupt", "the-object $.streams[0].tip[1]"]);
  });

  test("the size of an entry is what it takes in the state", () => {
    const s = read(STATE);
    const without = encodeState({ ...s, index: s.index.slice(1) }).length;
    // One byte is the comma between two entries.
    expect(encodeState(s).length - without - 1).toBe(entryBytes(s.index[0]!));
  });
});

describe("refused, with object and place", () => {
  test.each([
    ["nothing", "", "$"],
    ["a torn write", STATE.subarray(0, STATE.length / 2), "$"],
    ["zeros", new Uint8Array(4096), "$"],
    ["no UTF-8", new Uint8Array([0x22, 0xff, 0x22]), "$"],
    ["another program's file", '{"name":"x"}', "$"],
    ["a list", "[]", "$"],
    ["null", "null", "$"],
  ])("%s", (_, content, path) => {
    const f = refused(() => read(typeof content === "string" ? bytesOf(content) : content));
    expect([f.code, f.at, f.retry]).toEqual(["coverage.corrupt", `the-object ${path}`, false]);
  });

  test("a copy under another number", () => {
    const f = refused(() => parseState(STATE, "the-object", 42));
    expect([f.code, f.at]).toEqual(["coverage.corrupt", "the-object $.serial"]);
  });

  test("a newer version says so, whatever its shape", () => {
    const f = refused(() => read(bytesOf('{"format":"twg.coverage","version":2,"shards":[]}')));
    expect([f.code, f.kind, f.at]).toEqual(["coverage.newer_version", "environment", "the-object"]);
    expect(f.message).toContain("version 2");
    const segment = refused(() =>
      parseSegment(bytesOf('{"format":"twg.coverage.index","version":7}'), "seg"),
    );
    expect(segment.code).toBe("coverage.newer_version");
  });

  test.each(['"1"', "0", "1.5", "-1", "null", "1e400"])("version %s is none", (version) => {
    const f = refused(() => read(bytesOf(`{"format":"twg.coverage","version":${version}}`)));
    expect(f.code).toBe("coverage.corrupt");
  });

  test("more bytes than a state may have, before they are parsed", () => {
    const f = refused(() => read(new Uint8Array(8 * 1024 * 1024 + 1)));
    expect([f.code, f.message.includes("8388609 bytes")]).toEqual(["coverage.corrupt", true]);
  });

  test.each([
    ["$.streams[0].covered", [["5", "5"]]],
    [
      "$.streams[0].covered",
      [
        ["0", "5"],
        ["5", "9"],
      ],
    ],
    [
      "$.streams[0].covered",
      [
        ["7", "9"],
        ["0", "5"],
      ],
    ],
    ["$.streams[0].covered", [["0", "9223372036854775808"]]],
    ["$.streams[0].covered", [["00", "5"]]],
    ["$.streams[0].covered", [["-0", "5"]]],
    ["$.streams[0].covered", [[0, 5]]],
    ["$.streams[0].covered", [["0", "5", "9"]]],
    ["$.streams[0].lost", [["0", "5", "boredom"]]],
    ["$.streams[0].generation", -1],
    ["$.streams[0].generation", 2 ** 53],
    ["$.streams[1].stream", "kafka/c1/orders/0/0"],
    [
      "$.intents[0].spans",
      [
        ["s", "0", "5"],
        ["s", "4", "9"],
      ],
    ],
    ["$.intents[0].authorities[0].kind", "whim"],
    ["$.topics[1].topic", "kafka/c1/orders"],
    ["$.segments[0].level", "0"],
    ["$.writers[0]", 7],
  ])("%s = %j", (path, value) => {
    const f = refused(() => read(bytesOf(JSON.stringify(replaced(path, value)))));
    expect(f.code).toBe("coverage.corrupt");
    // The place is the one that was damaged, or one within it or the entry that holds it.
    const parent = path.slice(0, path.lastIndexOf("."));
    expect(f.at?.startsWith(`the-object ${parent}`)).toBe(true);
  });

  test("each key missing, each key unknown, at every level", () => {
    let objects = 0;
    visit(JSON.parse(text(STATE)), (node, copy) => {
      objects++;
      for (const key of Object.keys(node)) {
        if (node === copy.root && (key === "format" || key === "version")) continue;
        const { [key]: gone, ...rest } = node;
        expect(refused(() => read(bytesOf(copy.with(rest)))).code).toBe("coverage.corrupt");
      }
      expect(refused(() => read(bytesOf(copy.with({ ...node, surplus: 1 })))).code).toBe("coverage.corrupt");
    });
    // Root, owner, host, 2 streams, lease, 2 topics, intent, target, 2 authorities, 2 entries, 2 files, segment.
    expect(objects).toBe(17);
  });

  test("bytes damaged anywhere are read as some state or refused with a code, never anything else", () => {
    const damage = fc.array(fc.tuple(fc.nat(STATE.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(damage, fc.nat(STATE.length), (hits, end) => {
        const bytes = new Uint8Array(STATE);
        for (const [at, value] of hits) bytes[at] = value;
        for (const whole of [bytes, bytes.subarray(0, end)]) {
          try {
            read(whole);
          } catch (e) {
            if (!(e instanceof Failure)) throw e;
            expect(["coverage.corrupt", "coverage.newer_version"]).toContain(e.code);
          }
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test("very many spans cost a moment and not the square of it; an overlap among them is found", () => {
    const spans = Array.from({ length: 80_000 }, (_, i) => [i % 2 ? "b" : "a", `${3 * i}`, `${3 * i + 3}`]);
    const intent = { id: "x", targets: [], spans, authorities: [], rows: 1, bytes: 1 };
    const state = { ...JSON.parse(text(STATE)), intents: [intent] };
    expect(read(bytesOf(JSON.stringify(state))).intents.get("x")?.spans).toHaveLength(80_000);
    spans[50_001] = ["b", "7", "8"];
    spans.push(["b", "3", "6"]);
    const f = refused(() => read(bytesOf(JSON.stringify(state))));
    expect([f.code, f.at]).toEqual(["coverage.corrupt", "the-object $.intents[0].spans[80000]"]);
  });

  test("a segment with an id twice", () => {
    const twice = JSON.parse(text(SEGMENT));
    twice.entries[1] = twice.entries[0];
    const f = refused(() => parseSegment(bytesOf(JSON.stringify(twice)), "seg"));
    expect([f.code, f.at]).toEqual(["coverage.corrupt", "seg $.entries[1]"]);
  });
});

test("a state above the limit is not written", () => {
  const writers = Array.from({ length: 9 }, () => "x".repeat(1024 * 1024));
  expect(refused(() => encodeState({ ...EMPTY_STATE, writers })).code).toBe("coverage.too_large");
});

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** The golden state with the value at a path like `$.streams[0].lost` replaced. */
function replaced(path: string, value: unknown): unknown {
  const root: unknown = JSON.parse(text(STATE));
  const steps = path
    .slice(2)
    .split(/[.[\]]+/)
    .filter((s) => s !== "");
  let at = root as Record<string, unknown>;
  for (const step of steps.slice(0, -1)) at = at[step] as Record<string, unknown>;
  at[steps.at(-1)!] = value;
  return root;
}

interface Copy {
  readonly root: object;
  /** The whole as text, with the visited object replaced. */
  with(node: object): string;
}

type Plain = Record<string, unknown>;

function visit(root: Plain, each: (node: Plain, copy: Copy) => void): void {
  const walk = (node: unknown, put: (n: unknown) => unknown): void => {
    if (Array.isArray(node)) {
      node.forEach((item, i) => {
        walk(item, (n) => put(node.map((old: unknown, j) => (j === i ? n : old))));
      });
    } else if (typeof node === "object" && node !== null) {
      each(node as Plain, { root, with: (n) => JSON.stringify(put(n)) });
      for (const [key, value] of Object.entries(node)) walk(value, (n) => put({ ...node, [key]: n }));
    }
  };
  walk(root, (n) => n);
}
