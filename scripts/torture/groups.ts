/**
 * A consumer group under torture: processes that share a real cluster's topic and one destination are killed, stopped
 * for longer than their session, restarted one after the other, given a name that another one has, while partitions
 * are added and, if asked for, brokers are killed. The run begins with a classic group, goes on while members of both
 * protocols are in it (a rolling upgrade), and ends with a KIP-848 group.
 *
 * Then it calms down, and it is checked that
 *   - within a bounded time every partition has one reader, and the group's commits reach the end of the log;
 *   - every member ends well, and nobody ended by itself but whose name was taken;
 *   - every record is in the files once, and no partition was written by somebody who had not begun it anew after
 *     another one had it.
 */
import { feed } from "../../test/e2e/feeder.ts";
import {
  admin,
  CLUSTERS,
  commitsOf,
  createTopic,
  endsOf,
  fresh,
  MAIN,
  type Served,
} from "../../test/e2e/real-kafka.ts";
import type { SeededChance } from "../../test/sim/chance.ts";
import { type GroupConfig, GroupTortureMember, type Protocol } from "./group-member.ts";
import { BrokerKiller } from "./real-broker.ts";
import type { TortureSink } from "./sink.ts";
import { turnsIn } from "./turns.ts";

export interface GroupTorture {
  readonly folder: string;
  readonly twg: readonly string[];
  readonly bootstrap: string | undefined;
  readonly members: number;
  readonly minutes: number;
  readonly partitions: number;
  /** A second. */
  readonly rate: number;
  readonly killBrokers: boolean;
  readonly protocol: Protocol | "upgrade";
  readonly chance: SeededChance;
  readonly sink: TortureSink;
  readonly say: (text: string) => void;
}

const SESSION_MS = 6_000;
/** Longest that the group may take to share everything and to catch up once nothing troubles it any more. */
const CALM_MS = 120_000;
/** Of a process that was told to end before it listened. */
const SIGTERM_ENDS = 143;
const DRAIN_TIMEOUT = "delivery.drain_timeout";
const MOST_PARTITIONS = 2;
/** Share of the time with classic members only; and after which only KIP-848 ones are started. */
const UPGRADE = [0.4, 0.6] as const;

type Mischief = "kill" | "restart" | "hang" | "nap" | "partitions" | "twin";
const MISCHIEF: readonly Mischief[] = [
  "kill",
  "kill",
  "restart",
  "restart",
  "hang",
  "nap",
  "partitions",
  "twin",
];

class GroupRun {
  readonly #o: GroupTorture;
  readonly #served: Served;
  readonly #config: GroupConfig;
  readonly #members: GroupTortureMember[] = [];
  /** Wakes and ends that are still to come. */
  readonly #pending = new Set<Promise<void>>();
  readonly #done: Record<Mischief, number> = { kill: 0, restart: 0, hang: 0, nap: 0, partitions: 0, twin: 0 };
  readonly #complaints: string[] = [];
  #partitions: number;
  #late = 0;
  #began = 0;

  constructor(o: GroupTorture, served: Served, topic: string) {
    this.#o = o;
    this.#served = served;
    this.#partitions = o.partitions;
    this.#config = {
      folder: o.folder,
      twg: o.twg,
      bootstrap: served.plain.join(","),
      topic,
      group: `g-${topic}`,
      sink: o.sink.section,
      sessionMs: SESSION_MS,
    };
  }

  async run() {
    const { members, minutes, killBrokers, chance, partitions, rate } = this.#o;
    const { topic, group } = this.#config;
    await createTopic(this.#served, topic, { partitions, config: { "min.insync.replicas": "1" } });
    const feeder = await feed(this.#served, topic, { partitions: null, rate });
    const killer = killBrokers ? new BrokerKiller(this.#served, chance) : null;
    this.#began = performance.now();
    try {
      for (let i = 0; i < members; i++) await this.#begin();
      while (this.#share < 1) {
        await Bun.sleep(Math.min(200 + chance.int(this.#pauseMs), (1 - this.#share) * minutes * 60_000));
        await this.#mischief(chance.pick(MISCHIEF));
        await this.#supervise();
      }
      this.#o.say(
        `${Math.round((performance.now() - this.#began) / 1000)} s of mischief are over: ${JSON.stringify(this.#done)}`,
      );
      await Promise.all(this.#pending);
      await killer?.stop();
      await this.#supervise();
      const fed = await feeder.stop();
      if (fed.failed > 0) this.#complaints.push(`${fed.failed} records were not acknowledged`);
      const stuck = await this.#calm();
      await this.#leave();
      await this.#lastLife();
      const ends = await this.#ends();
      const commits = await commitsOf(this.#served, topic, group);
      return { fed, stuck, ends, commits, brokerKills: killer?.kills ?? 0 };
    } finally {
      await killer?.stop();
      await feeder.abandon();
      await Promise.all(this.#members.map((m) => m.kill()));
    }
  }

  get complaints(): readonly string[] {
    return this.#complaints;
  }

  get figures() {
    const sum = (what: keyof GroupTortureMember["counts"]) =>
      this.#members.reduce((n, m) => n + m.counts[what], 0);
    return {
      processes: this.#members.length,
      partitions_at_end: this.#partitions,
      ...this.#done,
      handed_over: this.#members.reduce((n, m) => n + [...m.begun.values()].reduce((a, b) => a + b, 0), 0),
      evictions: sum("losses"),
      rewinds: sum("rewinds"),
      late_ends: this.#late,
      sets: sum("covered"),
      sets_refused: sum("refused"),
    };
  }

  /** How often somebody began a partition. */
  begun(partition: number): number {
    return this.#members.reduce((n, m) => n + (m.begun.get(partition) ?? 0), 0);
  }

  get #share(): number {
    return (performance.now() - this.#began) / (this.#o.minutes * 60_000);
  }

  /** With many members something happens more often. */
  get #pauseMs(): number {
    return Math.max(1_000, 8_000 / this.#o.members);
  }

  get #running(): GroupTortureMember[] {
    return this.#members.filter((m) => m.alive);
  }

  get #working(): GroupTortureMember[] {
    return this.#running.filter((m) => !m.stopped);
  }

  #protocol(): Protocol {
    const { protocol, chance } = this.#o;
    if (protocol !== "upgrade") return protocol;
    if (this.#share < UPGRADE[0]) return "classic";
    return this.#share > UPGRADE[1] || chance.next() < 0.5 ? "consumer" : "classic";
  }

  /** Half of them have a name of their own, which their successor takes over. */
  async #begin(instanceId?: string | null): Promise<GroupTortureMember> {
    const serial = this.#members.length;
    const name = instanceId === undefined ? (serial % 2 === 0 ? null : `i-${serial}`) : instanceId;
    const spec = { serial, protocol: this.#protocol(), instanceId: name };
    const m = await GroupTortureMember.start(spec, this.#config);
    this.#members.push(m);
    return m;
  }

  /** As many as there should be. Whoever ended by itself, and not since its name was taken, is a complaint. */
  async #supervise(): Promise<void> {
    while (this.#running.length < this.#o.members) await this.#begin();
  }

  #later(ms: number, what: () => Promise<void>): void {
    const work = (async () => {
      await Bun.sleep(ms);
      await what();
    })().finally(() => this.#pending.delete(work));
    this.#pending.add(work);
  }

  /** Of the members that work one by chance; in the last part those of the old protocol go first. */
  #victim(): GroupTortureMember | null {
    const working = this.#working;
    const old = working.filter((m) => m.spec.protocol === "classic");
    const late = this.#o.protocol === "upgrade" && this.#share > UPGRADE[1] && old.length > 0;
    const from = late ? old : working;
    return from.length === 0 ? null : this.#o.chance.pick(from);
  }

  async #mischief(kind: Mischief): Promise<void> {
    const m = this.#victim();
    if (m === null) return;
    const { chance } = this.#o;
    switch (kind) {
      case "kill":
        await m.kill();
        await this.#begin(m.spec.instanceId);
        break;
      case "restart":
        await this.#end(m);
        await this.#begin(m.spec.instanceId);
        break;
      case "hang":
      case "nap": {
        // Most hang for longer than their session, so that others have their partitions by then.
        m.hang();
        const ms =
          kind === "hang" ? SESSION_MS + 1_000 + chance.int(5_000) : 200 + chance.int(SESSION_MS / 2);
        this.#later(ms, async () => m.wake());
        break;
      }
      case "partitions":
        if (this.#partitions >= this.#o.partitions * MOST_PARTITIONS) return;
        await admin(this.#served, "add_partitions", { topic: this.#config.topic, total: ++this.#partitions });
        break;
      case "twin": {
        if (m.spec.instanceId === null) return;
        const twin = await this.#begin(m.spec.instanceId);
        // One of the two is fenced, or the new one waits for the name for ever: then it goes again.
        this.#later(4_000 + chance.int(4_000), async () => {
          if (m.alive && twin.alive) await this.#end(twin);
        });
        break;
      }
    }
    this.#done[kind]++;
  }

  async #end(m: GroupTortureMember): Promise<void> {
    const code = await m.leave();
    const early = code === SIGTERM_ENDS && !m.up;
    // Told to end while the group forms anew, on a machine at its limit: nothing is lost, and it says so.
    if (m.failure === DRAIN_TIMEOUT) {
      this.#late++;
      return;
    }
    if (code !== 0 && !m.fenced && !early)
      this.#complaints.push(`${m.name} ended with ${code}:\n${m.log().slice(-3_000)}`);
  }

  /** Until each partition has one reader and everything is committed. Returns the partitions of which that is not so. */
  async #calm(): Promise<string[]> {
    const { topic, group } = this.#config;
    for (const m of this.#members) if (m.alive) m.wake();
    const ends = await this.#ends();
    const end = performance.now() + CALM_MS;
    for (;;) {
      const commits = await commitsOf(this.#served, topic, group);
      const wrong = [...ends].flatMap(([p, to]) => {
        const readers = this.#running.filter((m) => m.reads.has(p)).length;
        const at = commits[String(p)] ?? -1;
        // Of an empty partition nothing is committed.
        const behind = at < to && to > 0;
        return readers === 1 && !behind ? [] : [`partition ${p}: ${readers} readers, commit ${at} of ${to}`];
      });
      if (wrong.length === 0) {
        this.#o.say(`calm after ${Math.round((performance.now() - end + CALM_MS) / 1000)} s`);
        return [];
      }
      if (performance.now() > end) {
        for (const m of this.#running)
          this.#o.say(`${m.name} reads ${[...m.reads]}:\n${m.log().slice(-1_500)}`);
        return wrong;
      }
      await Bun.sleep(500);
    }
  }

  async #ends(): Promise<Map<number, number>> {
    const ends = await endsOf(this.#served, this.#config.topic);
    return new Map(Object.entries(ends).map(([p, n]) => [Number(p), n]));
  }

  async #leave(): Promise<void> {
    for (const m of this.#members)
      if (m.endedByItself && !m.fenced)
        this.#complaints.push(`${m.name} ended by itself:\n${m.log().slice(-3_000)}`);
    await Promise.all(this.#running.map((m) => this.#end(m)));
  }

  /** Alone at last: takes away what the dead left, and must find nothing to read. */
  async #lastLife(): Promise<void> {
    // What a name still holds would not be read.
    await Bun.sleep(SESSION_MS + 1_000);
    const spec = { serial: this.#members.length, protocol: this.#protocol(), instanceId: null };
    const m = await GroupTortureMember.start(spec, this.#config, true);
    this.#members.push(m);
    const code = await m.exited;
    if (code !== 0) this.#complaints.push(`the last life ended with ${code}:\n${m.log().slice(-3_000)}`);
  }
}

/** Prints nothing but what `say` is told; `clean`: everything is as it must be. */
export async function tortureGroups(
  o: GroupTorture,
): Promise<Record<string, unknown> & { readonly clean: boolean }> {
  const served = o.bootstrap === undefined ? MAIN : CLUSTERS.find((c) => c.version === o.bootstrap);
  if (served === null || served === undefined)
    throw new Error('no real cluster: run it below scripts/with-servers.sh --kafka "4.4.0:3"');
  const topic = fresh("groups");
  o.sink.reads?.(topic);
  const run = new GroupRun(o, served, topic);
  const { fed, stuck, ends, commits, brokerKills } = await run.run();
  const landed = await o.sink.count();
  const folder = await o.sink.landing();
  const turns = folder === null ? new Map<number, number>() : turnsIn(folder);
  let lost = 0;
  let intruders = 0;
  for (const [p, end] of ends) {
    const there = (landed.ranges.get(p) ?? []).reduce((n, [a, b]) => n + (b - a), 0);
    lost += end - there;
    // A writer whose turn comes again must have begun the partition again.
    intruders += Math.max(0, (turns.get(p) ?? 0) - run.begun(p));
    if ((commits[String(p)] ?? 0) > end) intruders++;
  }
  const orphans = await o.sink.orphans();
  const differences = await o.sink.compare(served.plain.join(","), topic);
  for (const line of [...run.complaints, ...stuck, ...orphans, ...differences]) o.say(line);
  const result = {
    scenario: "groups",
    protocol: o.protocol,
    members: o.members,
    minutes: o.minutes,
    produced: fed.acknowledged,
    landed: landed.rows,
    lost,
    doubled: landed.doubled,
    orphans: orphans.length,
    stuck: stuck.length,
    intruders,
    died: run.complaints.length,
    differences: differences.length,
    broker_kills: brokerKills,
    ...run.figures,
    ...o.sink.figures(),
    reader: landed.reader,
  };
  const bad = [
    lost,
    landed.doubled,
    orphans.length,
    stuck.length,
    intruders,
    run.complaints.length,
    differences.length,
  ];
  const clean = bad.every((n) => n === 0) && landed.rows === fed.acknowledged;
  return { ...result, clean };
}
