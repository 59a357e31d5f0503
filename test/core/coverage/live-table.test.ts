/**
 * Goal: whoever writes files of one table agrees on its schema, which is durable before it is answered, only grows, and
 * refuses what files beside each other could not be read with. Method: several processes over one object in memory whose
 * writes are lost or of unknown outcome by a seed; judged from what was answered and from what is stored at the end.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import {
  MemoryVersionedStore,
  sharedObject,
  type WriteFault,
} from "../../../src/adapters/coverage/memory.ts";
import {
  type FileColumns,
  type Grown,
  growTables,
  LiveTable,
} from "../../../src/core/coverage/live-table.ts";
import { encodeTable, parseTable } from "../../../src/core/coverage/table-json.ts";
import { Failure } from "../../../src/core/failure/failure.ts";
import { evolve } from "../../../src/core/schema/evolution.ts";
import { FOLDER_TABLE } from "../../../src/core/schema/folder-table.ts";
import type { ColumnField } from "../../../src/core/types/table-batch.ts";
import { parseType, typeText } from "../../../src/core/types/type-text.ts";

function fields(...texts: readonly string[]): ColumnField[] {
  return texts.map((text) => {
    const [name = "", ...rest] = text.split(" ");
    const type = parseType(rest.join(" "));
    if (typeof type === "string") throw new Error(`${text}: ${type}`);
    return { name, type, nullable: false };
  });
}

const shown = (grown: Grown): readonly string[] =>
  "fields" in grown ? grown.fields.map((f) => `${f.name} ${typeText(f.type)}`) : ["!", ...grown.differences];

function world(files: readonly FileColumns[] = []) {
  const shared = sharedObject();
  const faults: (WriteFault | null)[] = [];
  let n = 0;
  const process = () =>
    new LiveTable({
      versions: new MemoryVersionedStore(shared, { fault: () => faults.shift() ?? null }),
      instance: `p${n++}`,
      files: async () => files,
    });
  const stored = (): readonly string[] => {
    const version = Math.max(0, ...shared.versions.keys());
    const bytes = shared.versions.get(version);
    return bytes === undefined ? [] : shown({ fields: parseTable(bytes, "stored", version) });
  };
  return { process, stored, faults, shared };
}

describe("one table", () => {
  test("of two processes, one of which meets an older schema: both get the union, and so does a restart", async () => {
    const { process, stored } = world();
    const [a, b] = [process(), process()];
    expect(shown(await a.grow(fields("id int64", "name string")))).toEqual(["id int64", "name string"]);
    expect(shown(await b.grow(fields("id int32", "qty int32")))).toEqual([
      "id int64",
      "name string",
      "qty int32",
    ]);
    expect(shown(await process().grow([]))).toEqual(stored());
  });

  test("refuses a type that the files of another process could not stand beside, with the difference", async () => {
    const { process, stored } = world();
    await process().grow(fields("id int64"));
    const b = process();
    expect(shown(await b.grow(fields("id string", "more int32")))).toEqual([
      "!",
      "id is int64 in the table and string in the schema",
    ]);
    expect(stored()).toEqual(["id int64"]);
    expect(shown(await b.grow(fields("more int32")))).toEqual(["id int64", "more int32"]);
  });

  const widened: [string, string, boolean][] = [
    ["int32", "int64", true],
    ["int8", "int16", true],
    ["list<int32>", "list<int64>", true],
    ["struct<x int32>", "struct<x int64, y string>", true],
    ["map<string,struct<x int32>>", "map<string,struct<x int32, y date>>", true],
    ["float", "double", false],
    ["uint32", "int64", false],
    ["decimal(9,2)", "decimal(18,2)", false],
    ["int64", "string", false],
  ];
  for (const [from, to, grows] of widened)
    test(`${from} ${grows ? "becomes" : "does not become"} ${to}`, async () => {
      const { process, stored } = world();
      await process().grow(fields(`c ${from}`));
      const grown = await process().grow(fields(`c ${to}`));
      expect("fields" in grown).toBe(grows);
      expect(stored()).toEqual([`c ${grows ? to : from}`]);
      // What is narrower goes into the wider: nobody writes the narrow type any more.
      if (grows) expect(shown(await process().grow(fields(`c ${from}`)))).toEqual([`c ${to}`]);
    });

  test("what is known to be in it costs neither a read nor a write", async () => {
    const { process, shared } = world();
    const a = process();
    await a.grow(fields("id int64"));
    shared.versions.clear();
    expect(shown(await a.grow(fields("id int32")))).toEqual(["id int64"]);
    expect(shared.versions.size).toBe(0);
  });

  test("nothing is written for nothing, and a write that is never won is told", async () => {
    const { process, faults, shared } = world();
    expect(shown(await process().grow([]))).toEqual([]);
    expect(shared.versions.size).toBe(0);
    faults.push(...Array.from({ length: 100 }, () => "lost" as const));
    const lost = process();
    expect(await lost.grow(fields("a date")).catch((e) => (e as Failure).code)).toBe("coverage.unavailable");
    expect(shown(await lost.grow(fields("a date")))).toEqual(["a date"]);
  });
});

describe("files that lay there before", () => {
  const old = (name: string, ...texts: string[]) => ({ name, fields: fields(...texts) });

  test("say what the table is, and that becomes durable with the first answer", async () => {
    const { process, stored } = world([old("1", "id int32"), old("2", "id int64", "b string")]);
    expect(shown(await process().grow([]))).toEqual([]);
    expect(shown(await process().grow(fields("id int32")))).toEqual(["id int64"]);
    expect(stored()).toEqual(["id int64", "b string"]);
    expect(shown(await process().grow(fields("b date")))[0]).toBe("!");
  });

  test("are told by the types of rows that are stored alike, each when the first of them comes", async () => {
    const files = old("1", "j string", "at timestamptz", "h list<binary>", "s string");
    const { process, stored } = world([files]);
    const a = process();
    expect(shown(await a.grow(fields("j json")))).toEqual(["j json"]);
    expect(shown(await process().grow(fields("at timestamptz[s]", "s string")))).toEqual([
      "j json",
      "at timestamptz[s]",
      "s string",
    ]);
    expect(stored()).toEqual(["j json", "at timestamptz[s]", "h list<binary>", "s string"]);
    expect(shown(await a.grow(fields("j string")))[0]).toBe("!");
    expect(shown(await a.grow(fields("h list<string>")))[0]).toBe("!");
  });

  test("of two kinds end it, naming file and difference, and nothing is stored", async () => {
    const { process, stored } = world([old("1", "id int32"), old("2", "id string")]);
    const failure = (await process()
      .grow(fields("id int32"))
      .catch((e) => e)) as Failure;
    expect([failure.code, failure.at]).toEqual(["table.mismatch", "2"]);
    expect(failure.message).toContain("id is int32 in the table and string in the schema");
    expect(stored()).toEqual([]);
  });
});

test("whatever is lost or unknown: an answer is durable, types agree, nothing that was answered goes", async () => {
  const schema = fc.uniqueArray(
    fc.record({ name: fc.constantFrom("a", "b", "c"), type: fc.constantFrom("int32", "int64", "string") }),
    { minLength: 1, maxLength: 3, selector: (f) => f.name },
  );
  const fault = fc.option(fc.constantFrom<WriteFault>("lost", "unknown_applied", "unknown_not_applied"));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(schema, { maxLength: 3 }), { minLength: 2, maxLength: 3 }),
      fc.array(fault, { maxLength: 8 }),
      async (processes, faults) => {
        const w = world();
        w.faults.push(...faults);
        await Promise.all(
          processes.map(async (schemas) => {
            const table = w.process();
            for (const s of schemas) {
              const wanted = fields(...s.map((f) => `${f.name} ${f.type}`));
              const grown = await table.grow(wanted);
              if (!("fields" in grown)) continue;
              expect(evolve(grown.fields, wanted, FOLDER_TABLE).kind).toBe("unchanged");
              const version = Math.max(0, ...w.shared.versions.keys());
              const now = parseTable(w.shared.versions.get(version)!, "stored", version);
              expect(evolve(now, grown.fields, FOLDER_TABLE).kind).toBe("unchanged");
            }
          }),
        );
      },
    ),
    { numRuns: 200 },
  );
});

describe("several sinks", () => {
  test("come to one schema, each table with room for what the others had; refusals and failures keep apart", async () => {
    const [a, b, c] = [world(), world(), world()];
    await a.process().grow(fields("x int32"));
    await b.process().grow(fields("y date"));
    await c.process().grow(fields("x string"));
    const tables = [a.process(), b.process(), c.process()];
    const grow = async (sink: number, wanted: readonly ColumnField[]): Promise<Grown> => {
      if (sink === 3) throw new Failure("coverage.unavailable", "away", { retry: true });
      return await tables[sink]!.grow(wanted);
    };
    const grown = await growTables([0, 1, 2, 3], fields("x int64"), grow);
    expect(shown(grown)).toEqual(["y date", "x int64"]);
    expect([a.stored(), b.stored(), c.stored()]).toEqual([
      ["x int64", "y date"],
      ["y date", "x int64"],
      ["x string"],
    ]);
    expect([...grown.refused.keys(), ...grown.failed.keys()]).toEqual([2, 3]);
  });
});

describe("as it is stored", () => {
  const golden = readFileSync(join(import.meta.dir, "../../golden/state/table-v1.json"));
  const code = (bytes: Uint8Array, version = 7) => {
    try {
      parseTable(bytes, "o", version);
      return null;
    } catch (e) {
      if (e instanceof Failure) return e.code;
      throw e;
    }
  };

  test("version 1 is read, and written back byte for byte", () => {
    const read = parseTable(golden, "o", 7);
    expect(read[9]).toMatchObject({ name: "__proto__", type: { item: { nullable: false } } });
    expect(new TextDecoder().decode(encodeTable(read, 7))).toBe(golden.toString());
  });

  test("what is damaged, foreign, cut or newer is refused with a code", () => {
    expect(code(golden, 8)).toBe("table.corrupt");
    expect(code(Buffer.from(golden.toString().replace('"version":1', '"version":2')))).toBe(
      "coverage.newer_version",
    );
    const changes: [string, string][] = [
      ["twg.table", "twg.coverage"],
      ['"bits":64', '"bits":63'],
      ['"signed":true', '"signed":1'],
      ['"id":"date32"', '"id":"date"'],
      ['"name":"ok"', '"name":"day"'],
      ['"as":"uuid"', '"as":"ulid"'],
      ['"nullable":true', '"nullable":"yes"'],
      ['"zone":null', '"zone":0'],
      ['"unit":"ms"', '"unit":"min"'],
      ['"item":{', '"it":{'],
      ['{"id":"bool"}', "null"],
      ['"stored":true', '"stored":1'],
    ];
    for (const [from, to] of changes)
      expect([from, code(Buffer.from(golden.toString().replace(from, to)))]).toEqual([from, "table.corrupt"]);
    for (let cut = 0; cut < golden.length - 2; cut += 37)
      expect(code(golden.subarray(0, cut))).toBe("table.corrupt");
    const deep = `${'{"id":"list","item":{"name":"e","nullable":true,"type":'.repeat(200)}{"id":"bool"}${"}}".repeat(200)}`;
    const nested = golden.toString().replace('{"id":"bool"}', deep);
    expect(code(Buffer.from(nested))).toBe("table.corrupt");
  });
});
