/**
 * Live ingest that is offered half of what it can take, while recovery fills a gap of the same sink at its limit: the lag
 * before recovery begins, and at its begin and end. What it can take is measured on the spot, with the producer and the
 * broker on the same cores, since that is what it has to share them with.
 */
import { createTopics } from "../../src/adapters/kafka/admin.ts";
import { KafkaClient } from "../../src/adapters/kafka/client.ts";
import { consumerSettings } from "../../src/adapters/kafka/consumer.ts";
import { columnsOfPayloads } from "../../src/adapters/kafka/producer/columns.ts";
import { KafkaProducer } from "../../src/adapters/kafka/producer/producer.ts";
import { kafkaRecordParts } from "../../src/commands/kafka-parts.ts";
import { freePorts } from "../../test/servers/ports.ts";
import { type BenchOptions, type Figure, median, round } from "../figure.ts";
import { orderPayloads } from "../orders.ts";
import { startProcess } from "../process.ts";
import { PARTITIONS, type Topic } from "../topics.ts";
import { Pipeline } from "./pipeline.ts";

const SIDE = `[[sink]]
name = "side"
type = "parquet"
receives = "decoded"
path = "FOLDER/side"`;
const BATCH = 2_000;
const BATCHES = 50;
const LOOK_MS = 250;
/** Recovery takes about so long at its limit: many times a roll of the sinks. */
const RECOVERY_S = 30;
/** Of what recovery takes without a limit, its limit is at most this. */
const MOST_OF_FREE = 0.25;
const CAPACITY_S = 10;
const QUIET_S = 15;
/** Of what was sent, so much may be on its way still. */
const LEFT = 0.02;
const SETTLES_MS = 120_000;

/** `typed`: the rates into the same sinks, of recovery and live. */
export async function* besideLive(o: BenchOptions, topic: Topic, typed: Figure): AsyncGenerator<Figure> {
  if (o.bootstrap === null) {
    o.say("SKIP: recovery beside live ingest: needs a real broker (--bootstrap)");
    return;
  }
  const name = `twg-bench-beside-${process.pid}-${Date.now()}`;
  const feed = await Feed.open(o.bootstrap, name);
  const pipeline = new Pipeline(o, { bootstrap: o.bootstrap, name });
  try {
    const backlog = o.small ? 10_000 : topic.records;
    await feed.send(backlog, Number.POSITIVE_INFINITY);
    await pipeline.stream(await pipeline.config("raw", []));
    const perSecond = Math.min(typed.value * MOST_OF_FREE, backlog / (o.small ? 2 : RECOVERY_S));
    const limit = Math.ceil((pipeline.rawBytes() / backlog) * perSecond);
    const [port] = await freePorts(1);
    const config = await pipeline.config(
      "both",
      [SIDE.replace("FOLDER", pipeline.folder)],
      `[recovery]\nmax_bytes_per_s = ${limit}\n[observability]\nlisten = "127.0.0.1:${port}"`,
    );
    yield {
      ...(await measured(o, feed, pipeline, config, port!, typed.peer_value ?? 0)),
      n: backlog,
      limit_bytes_per_s: limit,
    };
  } finally {
    await feed.close();
    pipeline.drop();
  }
}

/** Lags of a live ingest while it runs, and when they were seen, s. */
class Lags {
  readonly #port: number;
  readonly #begun = performance.now();
  readonly #seen: { readonly at: number; readonly lag: number }[] = [];
  #isOver = false;
  readonly looking: Promise<void>;

  constructor(port: number) {
    this.#port = port;
    this.looking = this.#look();
  }

  get now(): number {
    return (performance.now() - this.#begun) / 1000;
  }

  get largest(): number {
    return Math.max(...this.#seen.map((l) => l.lag));
  }

  median(first: number, last: number): number {
    const within = this.#seen.filter((l) => l.at >= first && l.at < last);
    // Nobody looked in so short a time: what was seen before it.
    const seen = within.length > 0 ? within : this.#seen.filter((l) => l.at < last).slice(-1);
    return Math.round(median(seen.map((l) => l.lag)));
  }

  async settle(records: number): Promise<void> {
    const until = performance.now() + SETTLES_MS;
    while ((this.#seen.at(-1)?.lag ?? Number.POSITIVE_INFINITY) > records) {
      if (performance.now() > until) throw new Error(`the lag did not fall to ${records} records`);
      await Bun.sleep(LOOK_MS);
    }
  }

  stop(): Promise<void> {
    this.#isOver = true;
    return this.looking;
  }

  async #look(): Promise<void> {
    while (!this.#isOver) {
      const lag = await lagOf(this.#port);
      if (lag !== null) this.#seen.push({ at: this.now, lag });
      await Bun.sleep(LOOK_MS);
    }
  }
}

async function measured(
  o: BenchOptions,
  feed: Feed,
  pipeline: Pipeline,
  config: string,
  port: number,
  /** Records a second that it takes from a topic that is there already. */
  free: number,
): Promise<Figure> {
  const live = startProcess([...o.twg, "stream", "-c", config]);
  while ((await lagOf(port)) === null) {
    if (live.ended()) throw new Error("twg stream ended before it was ready");
    await Bun.sleep(LOOK_MS);
  }
  let isOver = false;
  const lags = new Lags(port);
  let feeding: Promise<number> = Promise.resolve(0);
  try {
    const capacity = await capacityOf(feed, lags, free, o.small ? 1 : CAPACITY_S);
    const offered = capacity / 2;
    const begun = lags.now;
    feeding = feed.send(Number.POSITIVE_INFINITY, offered, () => isOver);
    await Bun.sleep((o.small ? 1 : QUIET_S) * 1000);
    const from = lags.now;
    const ran = await pipeline.recover(config);
    const to = lags.now;
    isOver = true;
    const sent = await feeding;
    const seconds = lags.now - begun;
    const third = (to - from) / 3;
    return {
      bench: "live ingest at half of its capacity, recovery beside it at its limit",
      subject: "lag of twg stream in the last third of recovery",
      peer: "the same before recovery began",
      unit: "records",
      value: lags.median(to - third, to),
      peer_value: lags.median((begun + from) / 2, from),
      ratio: null,
      hash: null,
      n: 0,
      cpu_per_million: null,
      peer_cpu_per_million: null,
      lag_in_first_third: lags.median(from, from + third),
      largest_lag: lags.largest,
      capacity_per_s: Math.round(capacity),
      offered_per_s: Math.round(sent / seconds),
      recovery_s: round(ran.seconds),
    };
  } finally {
    isOver = true;
    await live.stop();
    await lags.stop();
    await Promise.allSettled([feeding]);
  }
}

/** Records that it lands a second: of so many seconds at the rate of a topic that is there already, until none waits. */
async function capacityOf(feed: Feed, lags: Lags, most: number, seconds: number): Promise<number> {
  const begun = performance.now();
  const sent = await feed.send(most * seconds, most);
  await lags.settle(sent * LEFT);
  return sent / ((performance.now() - begun) / 1000);
}

async function lagOf(port: number): Promise<number | null> {
  try {
    const stats = (await (await fetch(`http://127.0.0.1:${port}/stats`)).json()) as { lag: number | null };
    return stats.lag;
  } catch {
    return null;
  }
}

/** Orders, sent at a rate. */
class Feed {
  readonly #client: KafkaClient;
  readonly #producer: KafkaProducer;
  readonly #topic: string;
  readonly #batches = Array.from({ length: BATCHES }, (_, b) =>
    columnsOfPayloads(orderPayloads(b * BATCH, BATCH)),
  );

  private constructor(client: KafkaClient, producer: KafkaProducer, topic: string) {
    this.#client = client;
    this.#producer = producer;
    this.#topic = topic;
  }

  static async open(bootstrap: string, topic: string): Promise<Feed> {
    const signal = AbortSignal.timeout(60_000);
    const parts = kafkaRecordParts();
    const client = new KafkaClient(consumerSettings({ bootstrap: [bootstrap], topics: [topic] }), parts);
    await createTopics(client, [{ name: topic, partitions: PARTITIONS, replicas: 1 }], signal);
    const producer = new KafkaProducer(client, { compression: "none" }, parts);
    await producer.start(signal);
    return new Feed(client, producer, topic);
  }

  /** Resolves with how many were sent. `perSecond`: at most. */
  async send(records: number, perSecond: number, isOver: () => boolean = () => false): Promise<number> {
    const signal = AbortSignal.timeout(600_000);
    const begun = performance.now();
    let sent = 0;
    for (let b = 0; sent < records && !isOver(); b++) {
      const ahead = (sent / perSecond) * 1000 - (performance.now() - begun);
      if (ahead > 0) await Bun.sleep(ahead);
      await this.#producer.send(this.#topic, this.#batches[b % BATCHES]!, {
        partition: b % PARTITIONS,
        signal,
      });
      sent += BATCH;
    }
    await this.#producer.flush(signal);
    return sent;
  }

  async close(): Promise<void> {
    await this.#producer.close(AbortSignal.timeout(60_000));
    this.#client.close();
  }
}
