/**
 * Refused records, grouped by what they have in common: code, topic, schema and path. Places within lists count as one
 * (`items[].price`). Memory is bounded: of more than so many groups the later ones are counted together.
 */

/** What is the same in a group. */
export interface RejectKind {
  readonly code: string;
  readonly topic: string;
  /** Null: the payload named none. */
  readonly schemaId: string | null;
  /** Within the value; empty: the value as a whole. */
  readonly path: string;
}

/** One refused record, or several of a kind and partition. */
export interface RejectCount extends RejectKind {
  readonly partition: number;
  readonly records: number;
  readonly firstOffset: bigint;
  readonly lastOffset: bigint;
  /** ms since the epoch; null: there is none. */
  readonly firstMs: number | null;
  readonly lastMs: number | null;
}

export interface RejectPartition {
  readonly partition: number;
  records: number;
  first: bigint;
  last: bigint;
}

export class RejectGroup {
  readonly kind: RejectKind;
  readonly partitions = new Map<number, RejectPartition>();
  records = 0;
  firstMs: number | null = null;
  lastMs: number | null = null;

  constructor(kind: RejectKind) {
    this.kind = kind;
  }

  add(c: RejectCount): void {
    this.records += c.records;
    this.firstMs = least(this.firstMs, c.firstMs, Math.min);
    this.lastMs = least(this.lastMs, c.lastMs, Math.max);
    const known = this.partitions.get(c.partition);
    if (known === undefined) {
      const { partition, records, firstOffset: first, lastOffset: last } = c;
      this.partitions.set(partition, { partition, records, first, last });
      return;
    }
    known.records += c.records;
    if (c.firstOffset < known.first) known.first = c.firstOffset;
    if (c.lastOffset > known.last) known.last = c.lastOffset;
  }
}

const MOST_GROUPS = 1_000;

export class RejectGroups {
  records = 0;
  /** Records of kinds beyond those that are kept. */
  others = 0;
  readonly #groups = new Map<string, RejectGroup>();

  /** Null: there are too many groups for one more. */
  add(count: RejectCount): RejectGroup | null {
    this.records += count.records;
    const kind = { ...count, path: wholeLists(count.path) };
    const name = JSON.stringify([kind.code, kind.topic, kind.schemaId, kind.path]);
    let group = this.#groups.get(name);
    if (group === undefined) {
      if (this.#groups.size >= MOST_GROUPS) {
        this.others += count.records;
        return null;
      }
      const { code, topic, schemaId, path } = kind;
      group = new RejectGroup({ code, topic, schemaId, path });
      this.#groups.set(name, group);
    }
    group.add(count);
    return group;
  }

  /** The largest first. */
  all(): readonly RejectGroup[] {
    return [...this.#groups.values()].sort((a, b) => b.records - a.records);
  }
}

function wholeLists(path: string): string {
  return path.replace(/\[\d+\]/g, "[]");
}

function least(a: number | null, b: number | null, choose: (a: number, b: number) => number): number | null {
  if (a === null) return b;
  return b === null ? a : choose(a, b);
}
