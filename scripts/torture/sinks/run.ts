/**
 * Several sinks under torture: members of a group and recoveries beside them share a primary sink and the sinks beside
 * it. They are killed at named points and at random, stopped for longer than their session and their leases, told to
 * leave, and started anew, while the servers of the sinks hang, are slow, refuse, cut connections, are full or away.
 *
 * Then it calms down: the rest is read, the topic is deleted, and recovery fills what is missing. It is checked that
 *   - raw holds each record that was acknowledged to the producer, once, value for value;
 *   - each sink beside it equals raw, row for row, and nothing is left over;
 *   - nobody asked the source for what raw had covered before, and recovery never spoke to it at all;
 *   - nobody ended by itself without a reason that is one.
 */
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { SETTLE_POINTS } from "../../../src/core/coverage/settle.ts";
import { type Fed, type Feeder, feed } from "../../../test/e2e/feeder.ts";
import { admin, createTopic, fresh, MAIN, type Served } from "../../../test/e2e/real-kafka.ts";
import { SeededChance } from "../../../test/sim/chance.ts";
import type { Protocol } from "../group-member.ts";
import { type Canary, plant } from "./canary.ts";
import { config, type SinksConfig } from "./config.ts";
import { copyPlace } from "./copy.ts";
import { filesPlaces } from "./files.ts";
import { askedAgain, compareSinks, type SinkVerdict } from "./judge.ts";
import { TwgLife } from "./life.ts";
import type { Place } from "./place.ts";
import { type Covered, type RawPlace, rawPlace } from "./raw.ts";
import { type TablePlace, tablePlace } from "./table.ts";
import { Troubler } from "./troubler.ts";

export interface SinksTorture {
  readonly folder: string;
  readonly twg: readonly string[];
  /** 2, 3 or 5, the primary one included. */
  readonly sinks: number;
  readonly members: number;
  readonly recoveries: number;
  readonly kills: number;
  /** Afterwards live ingest is killed at each point that was not reached. */
  readonly points: boolean;
  /** Longest that there is mischief. */
  readonly minutes: number;
  /** Longest that one trouble of a server lasts. */
  readonly troubleMs: number;
  readonly partitions: number;
  /** About so many, spread over the kills. */
  readonly records: number;
  readonly store: string;
  readonly seed: number;
  readonly canary: Canary | null;
  readonly say: (text: string) => void;
}

const SESSION_MS = 6_000;
/** Of a window of recovery. */
const LEASE_MS = 8_000;
/** A planned point that is not reached by then becomes a kill at a random moment. */
const POINT_MS = 25_000;
/** Longest that the end may take, once nothing troubles anybody any more. */
const CALM_MS = 180_000;
/** One of so many is cut short, and one has no value. */
const SPOIL = 25;
/** So many bytes in each value that a gap is more than one window of recovery. */
const PAD = 300;
/** What a kill takes on average. */
const KILL_S = 5;

/** Reasons to end which outages and other processes are; anything else is a complaint. */
const MAY_END =
  /^(coverage\.(fenced|owned|unavailable|full)|store\.(unavailable|full|io)|kafka\.instance_fenced|delivery\.drain_timeout)$/;
const MAY_GIVE_UP =
  /^(recovery\.behind|internal\.cancelled|postgres\.|net\.|kafka\.|store\.(unavailable|full|io)$|coverage\.(fenced|owned|unavailable|full)$)/;

type Kind = "ingest" | "recovery";

/** A life that the judge looks at when all is over. */
export interface Witness {
  readonly life: TwgLife;
  /** What raw had covered before it began. */
  readonly before: Covered;
}

class SinksRun {
  readonly #o: SinksTorture;
  readonly #config: SinksConfig;
  readonly #raw: RawPlace;
  /** Beside the primary sink. */
  readonly #places: readonly Place[];
  readonly #witnesses: Witness[] = [];
  readonly #running = new Set<TwgLife>();
  readonly #complaints: string[] = [];
  readonly #counts = { ingest_kills: 0, recovery_kills: 0, hangs: 0, joins: 0, leaves: 0, recoveries: 0 };
  readonly #reached = new Set<string>();
  readonly #planned: Readonly<Record<Kind, readonly string[]>>;
  readonly #decks: Record<Kind, string[]> = { ingest: [], recovery: [] };
  #serial = 0;
  #ends = 0;

  constructor(o: SinksTorture, served: SinksConfig, raw: RawPlace, places: readonly Place[]) {
    this.#o = o;
    this.#config = served;
    this.#raw = raw;
    this.#places = places;
    const beside = places.flatMap((p) => p.points);
    this.#planned = {
      ingest: [...raw.points, ...beside, ...SETTLE_POINTS.slice(0, 2).map((p) => `${p}:1`)],
      // What is missing in a sink is seldom more than one set of it.
      recovery: beside.filter((p) => p.endsWith(":1")),
    };
  }

  get complaints(): readonly string[] {
    return this.#complaints;
  }

  get witnesses(): readonly Witness[] {
    return this.#witnesses;
  }

  get kills(): number {
    return this.#counts.ingest_kills + this.#counts.recovery_kills;
  }

  get figures(): Record<string, number> {
    const all = this.#planned.ingest.length + this.#planned.recovery.length;
    return { lives: this.#serial, ...this.#counts, points: all, points_reached: this.#reached.size };
  }

  /** Points at which nobody ended. */
  unreached(): string[] {
    return (["ingest", "recovery"] as const).flatMap((kind) =>
      this.#planned[kind].map((p) => `${kind} ${p}`).filter((p) => !this.#reached.has(p)),
    );
  }

  /** Until there were enough kills, or the time is over. */
  async mischief(): Promise<void> {
    const { members, recoveries, minutes, seed } = this.#o;
    this.#ends = performance.now() + minutes * 60_000;
    const slots = [
      ...Array.from({ length: members }, (_, i) => this.#slot("ingest", i, new SeededChance(seed * 31 + i))),
      ...Array.from({ length: recoveries }, (_, i) =>
        this.#slot("recovery", i, new SeededChance(seed * 37 + 100 + i)),
      ),
      this.#guest(new SeededChance(seed * 41 + 200)),
    ];
    await Promise.all(slots);
    await Promise.all([...this.#running].map((life) => this.#leave(life)));
  }

  get #over(): boolean {
    const { ingest_kills, recovery_kills } = this.#counts;
    const least = Math.min(ingest_kills, recovery_kills);
    return (this.kills >= this.#o.kills && least >= this.#o.kills / 3) || performance.now() > this.#ends;
  }

  async #slot(kind: Kind, slot: number, chance: SeededChance): Promise<void> {
    while (!this.#over) {
      const before = this.kills;
      await this.#life(kind, slot, chance);
      // Whoever starts it anew takes a moment as well.
      await Bun.sleep(200 + chance.int(1_500));
      if (this.kills > before && this.kills % 10 === 0)
        this.#o.say(`${this.kills} of ${this.#o.kills} kills`);
    }
  }

  /** A member more, now and then, that leaves in good order or is killed. */
  async #guest(chance: SeededChance): Promise<void> {
    while (!this.#over) {
      await this.#idle(3_000 + chance.int(8_000));
      if (this.#over) return;
      this.#counts.joins++;
      const life = await this.#begin("ingest", 90, null);
      await this.#idle(2_000 + chance.int(8_000), life);
      if (chance.next() < 0.3) await this.#kill("ingest", life);
      else await this.#leave(life);
    }
  }

  async #life(kind: Kind, slot: number, chance: SeededChance): Promise<void> {
    const turn = chance.next();
    const point = turn < 0.55 ? this.#draw(kind, chance) : null;
    const life = await this.#begin(kind, slot, point);
    const ms = kind === "ingest" ? 1_000 + chance.int(15_000) : 400 + chance.int(5_000);
    if (await this.#idle(point === null ? ms : POINT_MS, life)) return this.#ended(kind, life, point);
    if (turn < 0.8) return this.#kill(kind, life);
    if (turn < 0.9) {
      await this.#hang(life, chance);
      return (await this.#idle(2_000 + chance.int(3_000), life))
        ? this.#ended(kind, life, null)
        : this.#kill(kind, life);
    }
    if (kind === "ingest") return this.#leave(life);
    return (await this.#idle(30_000, life)) ? this.#ended(kind, life, null) : this.#leave(life);
  }

  /** Every point once before any comes again, and then those first at which nobody ended yet. */
  #draw(kind: Kind, chance: SeededChance): string {
    const deck = this.#decks[kind];
    if (deck.length === 0) {
      const all = this.#planned[kind];
      const left = all.filter((p) => !this.#reached.has(`${kind} ${p}`));
      deck.push(...(left.length > 0 ? left : all));
    }
    return deck.splice(chance.int(deck.length), 1)[0] ?? "";
  }

  async #begin(
    kind: Kind,
    slot: number,
    point: string | null,
    more: readonly string[] = [],
  ): Promise<TwgLife> {
    const before = kind === "ingest" ? await this.#raw.covered() : new Map();
    const serial = this.#serial++;
    const name = `${kind}-${slot}-${serial}`;
    const path = join(this.#o.folder, `${name}.toml`);
    await Bun.write(path, config(this.#config, kind, slot, serial));
    const args =
      kind === "ingest" || slot % 2 === 1
        ? ["stream", "-c", path, "--log-format", "json", "--log-level", "debug"]
        : ["recover", "-c", path, "--json", "--log-level", "info"];
    if (kind === "recovery") this.#counts.recoveries++;
    const life = new TwgLife(
      this.#o.folder,
      name,
      [...this.#o.twg, ...args, ...more],
      point === null ? {} : { TWG_CRASH_AT: point },
    );
    if (kind === "ingest") this.#witnesses.push({ life, before });
    this.#running.add(life);
    return life;
  }

  /** True if the life ended meanwhile. */
  async #idle(ms: number, life?: TwgLife): Promise<boolean> {
    const until = performance.now() + ms;
    for (;;) {
      const left = Math.min(500, until - performance.now());
      if (left <= 0 || this.#over) return life !== undefined && !life.alive;
      if (life === undefined) await Bun.sleep(left);
      else if (await life.endsWithin(left)) return true;
    }
  }

  /** Most for longer than the group's session, some for longer than a lease. */
  async #hang(life: TwgLife, chance: SeededChance): Promise<void> {
    this.#counts.hangs++;
    life.stopped = true;
    life.signal("SIGSTOP");
    const ms = chance.next() < 0.5 ? SESSION_MS + chance.int(3_000) : LEASE_MS + 1_000 + chance.int(4_000);
    await this.#idle(ms, life);
    life.signal("SIGCONT");
  }

  async #kill(kind: Kind, life: TwgLife): Promise<void> {
    await life.kill("SIGKILL");
    await this.#ended(kind, life, null);
  }

  async #leave(life: TwgLife): Promise<void> {
    this.#counts.leaves++;
    const wasUp = life.up;
    const { code, failure } = await life.kill("SIGTERM");
    this.#running.delete(life);
    // Before it listens to signals the system ends it.
    const fits =
      code === 0 ||
      (failure === null && !wasUp) ||
      (failure !== null && (MAY_END.test(failure) || MAY_GIVE_UP.test(failure)));
    if (!fits) this.#complain(life, `was told to leave and ended with ${code} (${failure})`);
  }

  async #ended(kind: Kind, life: TwgLife, point: string | null): Promise<void> {
    this.#running.delete(life);
    const { code, signal, failure } = await life.ended();
    if (signal === "SIGKILL") {
      this.#counts[`${kind}_kills`]++;
      if (point !== null && !life.killed) this.#reached.add(`${kind} ${point}`);
      return;
    }
    const fits = failure !== null && (kind === "ingest" ? MAY_END : MAY_GIVE_UP).test(failure);
    if (!fits && !(kind === "recovery" && code === 0))
      this.#complain(life, `ended by itself with ${code ?? signal} (${failure})`);
  }

  #complain(life: TwgLife, what: string): void {
    this.#complaints.push(`${life.name} ${what}: ${life.log()}`);
  }

  /** Alone at last, with nothing that troubles it: the rest of the topic, and what the dead left. */
  async catchUp(): Promise<void> {
    // What a name still holds would not be read.
    await Bun.sleep(SESSION_MS + 1_000);
    const life = await this.#begin("ingest", 98, null, ["--until-caught-up"]);
    if (!(await life.endsWithin(CALM_MS))) {
      await life.kill("SIGKILL");
      throw new Error(`the last life did not catch up: ${life.log()}`);
    }
    this.#running.delete(life);
    const { code, failure } = await life.ended();
    if (code !== 0) throw new Error(`the last life ended with ${code} (${failure}): ${life.log()}`);
  }

  /** Alone and not troubled, at each point that nobody reached; one that settles needs an intent that is left. */
  async killIngest(): Promise<void> {
    for (const point of this.#planned.ingest) {
      if (this.#reached.has(`ingest ${point}`)) continue;
      for (const at of point.startsWith("settle") ? ["after_intend:1", point] : [point]) {
        const life = await this.#begin("ingest", 98, at);
        if (!(await life.endsWithin(POINT_MS))) await life.kill("SIGKILL");
        await this.#ended("ingest", life, at);
      }
    }
  }

  /** A member meets an outage of every sink beside the primary one, so that recovery has something to do in each. */
  async outage(): Promise<void> {
    const ends = await Promise.all(
      this.#places.flatMap(({ troubles }) => {
        const begin = troubles.cut ?? troubles.full;
        return begin === undefined ? [] : [begin()];
      }),
    );
    const life = await this.#begin("ingest", 98, null);
    for (const until = performance.now() + CALM_MS; life.acknowledged.length < 20 && life.alive; ) {
      if (performance.now() > until) break;
      await Bun.sleep(200);
    }
    await this.#leave(life);
    await Promise.all(ends.map((end) => end()));
  }

  /** Recovery alone, killed at the points that were not reached as long as something is missing there. */
  async killRecovery(): Promise<void> {
    for (const { name, points } of this.#places)
      for (const point of points) {
        if (!this.#planned.recovery.includes(point) || this.#reached.has(`recovery ${point}`)) continue;
        const life = await this.#begin("recovery", 98, point, ["--sink", name]);
        if (!(await life.endsWithin(CALM_MS))) await life.kill("SIGKILL");
        await this.#ended("recovery", life, point);
        // Nothing was missing any more.
        if ((await life.ended()).code === 0) break;
      }
  }

  /** Until nothing is missing. */
  async recover(): Promise<void> {
    const until = performance.now() + CALM_MS;
    for (;;) {
      const life = await this.#begin("recovery", 98, null);
      if (!(await life.endsWithin(CALM_MS))) await life.kill("SIGKILL");
      this.#running.delete(life);
      const { code, failure } = await life.ended();
      if (code === 0) return;
      if (performance.now() > until) throw new Error(`recovery ended with ${failure}: ${life.log()}`);
      await Bun.sleep(500);
    }
  }

  async abandon(): Promise<void> {
    await Promise.all([...this.#running].map((life) => life.kill("SIGKILL")));
  }
}

/** Where the brokers are said to be to those who must not ask them. */
class Nobody {
  asked = 0;
  readonly #server: Server = createServer((socket) => {
    this.asked++;
    socket.destroy();
  });

  async listen(): Promise<string> {
    await new Promise<void>((go) => this.#server.listen(0, "127.0.0.1", go));
    const address = this.#server.address();
    return `127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  }

  stop(): void {
    this.#server.close();
  }
}

async function placesOf(
  o: SinksTorture,
  served: Served,
  topic: string,
): Promise<{ readonly raw: RawPlace; readonly table: TablePlace; readonly beside: readonly Place[] }> {
  const { folder, sinks, seed, store, say, partitions } = o;
  const rollMs = 150 * Math.max(2, o.members);
  const raw = await rawPlace(folder, { store, seed, rollMs, say });
  const table = await tablePlace(folder, new SeededChance(seed + 11), say);
  if (sinks === 2) return { raw, table, beside: [table] };
  const copy = await copyPlace(served, topic, partitions, new SeededChance(seed + 13));
  if (sinks === 3) return { raw, table, beside: [table, copy] };
  const { typed, refused } = filesPlaces(folder, rollMs, say);
  return { raw, table, beside: [table, typed, refused, copy] };
}

/** Prints nothing but what `say` is told; `clean`: everything is as it must be. */
export async function tortureSinks(
  o: SinksTorture,
): Promise<Record<string, unknown> & { readonly clean: boolean }> {
  const served = MAIN;
  if (served === null)
    throw new Error('no real brokers: scripts/with-servers.sh --kafka "4.4.0:1" --s3 --postgres');
  if (![2, 3, 5].includes(o.sinks)) throw new Error(`there may be 2, 3 or 5 sinks, not ${o.sinks}`);
  const topic = fresh("torture");
  await createTopic(served, topic, { partitions: o.partitions });
  const nobody = new Nobody();
  const away = await nobody.listen();
  const { raw, table, beside } = await placesOf(o, served, topic);
  const places = [raw, ...beside];
  try {
    const protocol: Protocol = o.seed % 2 === 0 ? "classic" : "consumer";
    const shared = { folder: o.folder, topic, protocol, sessionMs: SESSION_MS, leaseMs: LEASE_MS, places };
    const run = new SinksRun(o, { ...shared, bootstrap: served.plain, away }, raw, beside);
    const troubler = new Troubler(places, o.troubleMs, o.seed);
    const rate = Math.max(20, Math.ceil(o.records / Math.max(20, o.kills * KILL_S)));
    const feeder = await feed(served, topic, { partitions: o.partitions, rate, spoil: SPOIL, pad: PAD });
    const fed = await tormented(run, troubler, feeder, o.points);
    await run.catchUp();
    await run.killRecovery();
    await run.catchUp();
    const landing = await raw.landing();
    await plant(o.canary, { table, landing });
    const differences = await raw.compare(served.plain.join(","), topic);
    // From here on nobody could ask again.
    await admin(served, "delete", { topic });
    await run.recover();
    const verdict = await compareSinks(landing, topic, beside);
    const again = askedAgain(run.witnesses, o.canary === "reread");
    const orphans = (await Promise.all(places.map((p) => p.orphans()))).flat();
    for (const line of [...run.complaints, ...differences, ...again, ...orphans]) o.say(line);
    const unreached = run.unreached();
    if (unreached.length > 0) o.say(`points that nobody reached: ${unreached.join(", ")}`);
    return result(o, { run, fed, verdict, differences, again, orphans, asked: nobody.asked, troubler });
  } finally {
    await admin(served, "delete", { topic }).catch(() => {});
    nobody.stop();
    for (const p of new Set([table, ...places])) await p.stop();
  }
}

async function tormented(run: SinksRun, troubler: Troubler, feeder: Feeder, points: boolean): Promise<Fed> {
  try {
    troubler.begin();
    await run.mischief();
    await troubler.stop();
    if (points) await run.killIngest();
    await run.outage();
    return await feeder.stop();
  } finally {
    await troubler.stop();
    await feeder.abandon();
    await run.abandon();
  }
}

interface Outcome {
  readonly run: SinksRun;
  readonly fed: Fed;
  readonly verdict: { readonly raw: number; readonly sinks: Readonly<Record<string, SinkVerdict>> };
  readonly differences: readonly string[];
  readonly again: readonly string[];
  readonly orphans: readonly string[];
  readonly asked: number;
  readonly troubler: Troubler;
}

function result(o: SinksTorture, r: Outcome): Record<string, unknown> & { readonly clean: boolean } {
  const verdicts = Object.entries(r.verdict.sinks);
  for (const [name, v] of verdicts) for (const s of v.samples) o.say(`${name}: ${s}`);
  const sum = (what: "lost" | "doubled" | "foreign" | "differing") =>
    verdicts.reduce((n, [, v]) => n + v[what], 0);
  const bad = {
    lost: Math.max(0, r.fed.acknowledged - r.verdict.raw) + sum("lost"),
    doubled: Math.max(0, r.verdict.raw - r.fed.acknowledged) + sum("doubled"),
    foreign: sum("foreign"),
    orphans: r.orphans.length,
    differences: r.differences.length + sum("differing"),
    asked_again: r.again.length + r.asked,
    complaints: r.run.complaints.length,
    unacknowledged: r.fed.failed,
  };
  return {
    scenario: "sinks",
    sinks: o.sinks,
    kills: r.run.kills,
    produced: r.fed.acknowledged,
    landed: r.verdict.raw,
    ...bad,
    ...r.run.figures,
    troubles: r.troubler.done,
    rows: Object.fromEntries(verdicts.map(([name, v]) => [name, v.rows])),
    store: o.store,
    reader: "pyarrow, psql, librdkafka",
    seed: o.seed,
    ...(o.canary === null ? {} : { canary: o.canary }),
    clean:
      Object.values(bad).every((n) => n === 0) &&
      r.run.kills >= o.kills &&
      (!o.points || r.run.unreached().length === 0),
  };
}
