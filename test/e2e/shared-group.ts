/** Processes that share a group: what end-to-end tests of them have in common. */
import { expect } from "bun:test";
import { orphansIn } from "../../scripts/torture/orphans.ts";
import { commitsOf, compareWithKafka, createTopic, endsOf, fresh, MAIN, type Served } from "./real-kafka.ts";
import { catchUp, type Pipeline, pipeline, type Twg } from "./twg.ts";
import { until } from "./until.ts";

export const LIMIT = 180_000;
export const PARTITIONS = 6;
export const served = MAIN as Served;

export interface Shared extends Pipeline {
  readonly topic: string;
  readonly group: string;
}

/** A topic, and a pipeline that reads it as a member of a group of its own. */
export async function shared(protocol: "classic" | "consumer", more = ""): Promise<Shared> {
  const topic = fresh("groups");
  const group = `g-${topic}`;
  await createTopic(served, topic, { partitions: PARTITIONS });
  const source = `group_protocol = "${protocol}"\nsession_timeout_ms = "6s"\n${more}`;
  return { ...pipeline({ served, topics: [topic], group, source }), topic, group };
}

/** Partitions that a process reads, by its own log. */
export function reads(t: Twg): Set<number> {
  const now = new Set<number>();
  for (const line of t.log) {
    const partition = Number(line.fields["partition"]);
    if (line.event === "stream.begun") now.add(partition);
    if (line.event === "stream.ended") now.delete(partition);
  }
  return now;
}

const divided = (members: readonly Twg[]) => {
  const all = members.flatMap((m) => [...reads(m)]);
  return (
    all.length === PARTITIONS && new Set(all).size === PARTITIONS && members.every((m) => reads(m).size > 0)
  );
};

export async function divides(members: readonly Twg[]): Promise<void> {
  try {
    await until(`${members.length} processes divide the partitions`, () => divided(members) || null);
  } catch (e) {
    const seen = members.map((m) => `${m.pid} reads [${[...reads(m)]}]:\n${m.output.slice(-2_000)}`);
    throw new Error(`${(e as Error).message}\n${seen.join("\n")}`);
  }
}

export async function allLanded(p: Shared, records: number): Promise<void> {
  await catchUp(p);
  const compared = await compareWithKafka(served, p.topic, p.lake);
  expect(compared.differences).toEqual([]);
  expect(compared.rows).toBe(records);
  expect(orphansIn(p.lake)).toEqual([]);
  expect(await commitsOf(served, p.topic, p.group)).toEqual(await endsOf(served, p.topic));
}

/** Until the group's commits are at the end of the log, which was not empty. */
export const committed = (p: Shared) =>
  until("everything is committed", async () => {
    const [at, to] = [await commitsOf(served, p.topic, p.group), await endsOf(served, p.topic)];
    return Bun.deepEquals(at, to) && Object.values(to).every((n) => n > 0);
  });
