/** Goal: the examples of docs/kafka-client.md work. Method: each block is compiled and run as its own process against the test brokers on a socket. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { FakeCluster } from "../../brokers/kafka/cluster.ts";
import { type Listening, listenCluster } from "../../brokers/kafka/sockets.ts";

const repo = resolve(import.meta.dir, "../../..");
const page = readFileSync(join(repo, "docs/kafka-client.md"), "utf8");
const blocks = new Map([...page.matchAll(/```ts (\w+)\n(.*?)```/gs)].map((m) => [m[1]!, m[2]!]));
const room = mkdtempSync(join(tmpdir(), "twg-docs-"));
const cluster = new FakeCluster({ clock: systemClock, brokers: 2 });
let listening: Listening;

beforeAll(() => {
  cluster.createTopic("orders", { partitions: 2 });
  cluster.createTopic("copies");
  listening = listenCluster(cluster);
});
afterAll(() => {
  listening.close();
  rmSync(room, { recursive: true, force: true });
});

/** What the example prints, its lines sorted. */
async function run(name: string, environment: Record<string, string> = {}): Promise<string[]> {
  const file = join(room, `${name}.ts`);
  writeFileSync(file, blocks.get(name)!.replaceAll('"../src/', `"${repo}/src/`));
  const child = Bun.spawn([process.execPath, file], {
    cwd: repo,
    env: { ...process.env, KAFKA: listening.bootstrap[0]!, ...environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(err);
  return out.trim().split("\n").sort();
}

const LIMIT = 60_000;

test("every block of the page is here", () => {
  expect([...blocks.keys()]).toEqual(["consume", "produce", "transform"]);
  // As the page says: not more than 20 lines without imports and blank ones.
  const code = (name: string) =>
    blocks
      .get(name)!
      .split("\n")
      .filter((l) => l !== "" && !l.startsWith("import"));
  expect([code("consume").length, code("produce").length].every((n) => n <= 20)).toBe(true);
});

test(
  "produced, consumed in a group, and copied in transactions with its positions",
  async () => {
    const produced = await run("produce");
    expect(produced.every((l) => /^orders\/[01]: [12] records from offset 0 on$/.test(l))).toBe(true);
    const consumed = await run("consume", { RECORDS: "2" });
    expect(consumed.map((l) => l.replace(/^orders\/[01]: /, "")).sort()).toEqual(["first", "second"]);
    await run("transform", { RECORDS: "2" });
    const copies = cluster.log("copies", 0);
    // Two records in one or two transactions, each with its marker.
    expect(copies.end).toBeGreaterThanOrEqual(3n);
    expect(copies.aborted).toEqual([]);
    const ends = [0, 1].map((p) => cluster.log("orders", p).end);
    const positions = [0, 1].map((p) => cluster.committed("docs-transform", "orders", p)?.offset ?? 0n);
    expect(positions).toEqual(ends);
  },
  LIMIT,
);
