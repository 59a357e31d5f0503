/**
 * Hands out records and remembers what a reader of committed records must find: plain batches of every codec,
 * transactions that commit or abort, holes as compaction leaves them.
 */
import { buildBatch } from "../brokers/kafka/batch-builder.ts";
import type { FakeCluster } from "../brokers/kafka/cluster.ts";
import type { SeededChance } from "./chance.ts";

const CODECS = ["none", "none", "gzip", "snappy", "lz4", "zstd"] as const;

interface OpenTransaction {
  readonly producerId: bigint;
  readonly partition: number;
  readonly records: (readonly [bigint, string])[];
}

export class Oracle {
  /** Per partition: offset -> value of every record that must land. */
  expected: Map<bigint, string>[] = [];
  /** "partition@offset" by value, of records that the cluster lost: they may have landed before, once. */
  readonly gone = new Map<string, string>();
  /** Something was cut off that may have been read: the pipeline must stop and say so, or have read nothing of it. */
  truncated = false;
  /** The topic is gone for good. */
  deleted = false;
  readonly topic: string;
  readonly #cluster: FakeCluster;
  readonly #chance: SeededChance;
  #serial = 0;
  readonly #prefix: string;
  /** Offset of the last end of a transaction, by partition. */
  readonly #markers = new Map<number, bigint>();
  #producer = 1n;
  #open: OpenTransaction | null = null;

  constructor(cluster: FakeCluster, topic: string, partitions: number, chance: SeededChance) {
    this.#cluster = cluster;
    this.topic = topic;
    this.#chance = chance;
    // Values tell topics apart: what a file holds belongs to one record of one of them.
    this.#prefix = topic === "t" ? "r" : `${topic}-r`;
    for (let p = 0; p < partitions; p++) this.expected.push(new Map());
  }

  /** Appends one batch, or ends a transaction that is open. */
  produce(): void {
    if (this.deleted) return;
    const c = this.#chance;
    if (this.#open !== null && c.next() < 0.5) return this.endTransaction();
    const transactional = this.#open === null && c.next() < 0.2;
    const partition = this.#open?.partition ?? c.int(this.expected.length);
    const count = 1 + c.int(12);
    const deltas: number[] = [];
    for (let i = 0, d = 0; i < count; i++, d += 1 + (c.next() < 0.1 ? c.int(4) : 0)) deltas.push(d);
    const values = deltas.map(() => `${this.#prefix}${this.#serial++}`);
    const hole = c.next() < 0.1 ? c.int(3) : 0;
    const inTransaction = transactional || this.#open !== null;
    if (transactional) this.#open = { producerId: this.#producer++, partition, records: [] };
    const batch = buildBatch({
      records: values.map((value, i) => ({
        value,
        offsetDelta: deltas[i]!,
        key: c.next() < 0.5 ? `k${c.int(9)}` : null,
      })),
      lastOffsetDelta: deltas[count - 1]! + hole,
      codec: c.pick(CODECS),
      baseTimestamp: 1_767_225_600_000n + BigInt(c.int(7_200_000)),
      ...(inTransaction ? { producerId: this.#open!.producerId, producerEpoch: 0, transactional: true } : {}),
    });
    const base = this.#cluster.append(this.topic, partition, batch);
    for (const [i, value] of values.entries()) {
      const offset = base + BigInt(deltas[i]!);
      if (this.#open === null) this.expected[partition]!.set(offset, value);
      else this.#open.records.push([offset, value]);
    }
  }

  endTransaction(): void {
    const open = this.#open;
    if (open === null) return;
    this.#open = null;
    const type = this.#chance.next() < 0.5 ? "commit" : "abort";
    const marker = this.#cluster.endTransaction(this.topic, open.partition, type, open.producerId);
    this.#markers.set(open.partition, marker);
    if (type === "commit")
      for (const [offset, value] of open.records) this.expected[open.partition]!.set(offset, value);
  }

  /** The topic is deleted and made anew: nothing of the old one is there to be read. */
  recreate(): void {
    this.#cluster.recreateTopic(this.topic, { keepCommits: this.#chance.next() < 0.5 });
    this.#forget();
  }

  /** The topic is deleted: what was not read of it is gone. */
  delete(): void {
    this.deleted = true;
    this.#cluster.deleteTopic(this.topic);
    this.#forget();
  }

  #forget(): void {
    this.#open = null;
    this.#markers.clear();
    const old = this.expected;
    this.expected = old.map(() => new Map());
    for (const [p, records] of old.entries())
      for (const [offset, value] of records) this.gone.set(value, `${p}@${offset}`);
  }

  /** An unclean election cuts the last batches of a partition off. */
  truncate(): void {
    this.endTransaction();
    const p = this.#chance.int(this.expected.length);
    const { entries } = this.#cluster.log(this.topic, p);
    const first = entries[Math.max(0, entries.length - 1 - this.#chance.int(3))];
    // Not the end of a transaction without its records: a broker would take those for open again.
    if (first === undefined || first.base <= (this.#markers.get(p) ?? -1n)) return;
    this.truncated = true;
    this.#cluster.truncate(this.topic, p, first.base);
    const records = this.expected[p]!;
    for (const [offset, value] of records) {
      if (offset < first.base) continue;
      this.gone.set(value, `${p}@${offset}`);
      records.delete(offset);
    }
  }

  get records(): number {
    return this.expected.reduce((n, m) => n + m.size, 0);
  }
}
