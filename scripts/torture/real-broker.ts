/**
 * Real brokers under a torture run: a topic of its own, records that keep coming from librdkafka while twg is killed,
 * and, if asked for, brokers that are killed as well, one at a time. They come from scripts/with-servers.sh
 * (TWG_REAL_KAFKA, TWG_PYTHON).
 */
import { type Feeder, feed } from "../../test/e2e/feeder.ts";
import {
  admin,
  CLUSTERS,
  createTopic,
  endsOf,
  fresh,
  killNode,
  type Served,
  upNodes,
} from "../../test/e2e/real-kafka.ts";
import type { SeededChance } from "../../test/sim/chance.ts";
import type { Broker } from "./broker.ts";

export interface RealOptions {
  /** Version of the cluster, or one of its addresses. */
  readonly which: string;
  readonly records: number;
  readonly partitions: number;
  /** Over how long the records come in. */
  readonly seconds: number;
  readonly killBrokers: boolean;
}

export interface RealBroker extends Broker {
  /** How often a broker was killed so far. */
  kills(): number;
}

export async function startReal(options: RealOptions, chance: SeededChance): Promise<RealBroker> {
  const served = CLUSTERS.find((c) => c.version === options.which || c.plain.includes(options.which));
  if (served === undefined) {
    const known = CLUSTERS.map((c) => `${c.version} (${c.plain.join(", ")})`).join("; ");
    throw new Error(`no real broker ${options.which}; scripts/with-servers.sh started: ${known || "none"}`);
  }
  const { partitions, records, seconds } = options;
  const topic = fresh("torture");
  const replicas = Math.min(3, served.plain.length);
  const config = { "min.insync.replicas": String(Math.max(1, replicas - 1)) };
  await createTopic(served, topic, { partitions, config });
  const rate = Math.max(1, Math.ceil(records / seconds));
  const feeder: Feeder = await feed(served, topic, { partitions, rate, limit: records });
  const killer = options.killBrokers ? new BrokerKiller(served, chance) : null;
  return {
    topic: { bootstrap: served.plain.join(","), name: topic },
    async full() {
      await killer?.stop();
      const fed = await feeder.stop();
      if (fed.failed > 0) throw new Error(`${fed.failed} records were not acknowledged`);
    },
    async ends() {
      const ends = await endsOf(served, topic);
      return Array.from({ length: partitions }, (_, p) => ends[String(p)] ?? 0);
    },
    kills: () => killer?.kills ?? 0,
    async stop() {
      await killer?.stop();
      await feeder.abandon();
      await admin(served, "delete", { topic }).catch(() => {});
    },
  };
}

/** Kills a broker, lets the others elect, brings it back, and begins anew: two at once would stop the producers. */
export class BrokerKiller {
  kills = 0;
  readonly #served: Served;
  readonly #chance: SeededChance;
  #stopped = false;
  readonly #work: Promise<void>;

  constructor(served: Served, chance: SeededChance) {
    if (served.plain.length < 3) throw new Error("--kill-brokers needs a cluster of three");
    this.#served = served;
    this.#chance = chance;
    this.#work = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const node = 1 + this.#chance.int(this.#served.plain.length);
      await killNode(this.#served, node);
      this.kills++;
      await Bun.sleep(500 + this.#chance.int(4_000));
      await upNodes(this.#served, [node]);
      await Bun.sleep(1_000 + this.#chance.int(3_000));
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#work;
  }
}
