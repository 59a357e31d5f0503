/**
 * The source as a member of a consumer group: which partitions are ours, and what happens to those that are taken
 * away. In good order a partition is not fetched any more, what was fetched of it lands and is committed, and only
 * then the group is told; a lost one is dropped at once.
 */
import type { Failure } from "../../core/failure/failure.ts";
import type { Observer } from "../../core/ports/observer.ts";
import type { SourceHost } from "../../core/ports/source.ts";
import type { AssignedPartition, Assignor } from "./assignors/assignor.ts";
import { GroupMembership, type MembershipParts } from "./group-member.ts";
import type { Membership, TopicFacts } from "./session/group-machine.ts";
import type { GroupPartition } from "./source-offsets.ts";
import type { PartitionReader } from "./source-reader.ts";
import type { Troubles } from "./source-trouble.ts";

/** How partitions are shared between processes; null in the settings: they are not, each reads what it is told. */
export interface SharingOptions {
  readonly protocol: "classic" | "consumer";
  readonly assignors: readonly Assignor[];
  readonly serverAssignor: string | null;
  readonly instanceId: string | null;
  readonly rackId: string | null;
  readonly sessionTimeoutMs: number;
  readonly heartbeatIntervalMs: number;
  readonly rebalanceTimeoutMs: number;
}

export interface GroupSideParts extends MembershipParts {
  readonly host: SourceHost;
  readonly reader: PartitionReader;
  readonly troubles: Troubles;
  readonly observer?: Observer;
  /** Soon: partitions that are ours and not begun are begun. */
  readonly wantMetadata: () => void;
  /** Resolves when nothing is being begun. */
  readonly settled: () => Promise<void>;
  /** A partition that may begin again, should it come back. */
  readonly forget: (name: string) => void;
  readonly fail: (failure: Failure) => void;
}

export class GroupSide {
  readonly #p: GroupSideParts;
  readonly #membership: GroupMembership;
  /** The next begin is made under a membership that was confirmed since its epoch was refused. */
  #vouched = false;
  #isStarted = false;

  constructor(group: string, options: SharingOptions, parts: GroupSideParts) {
    this.#p = parts;
    this.#membership = new GroupMembership({ ...options, group }, parts, {
      assigned: () => parts.wantMetadata(),
      revoked: (partitions) => this.#giveUp(partitions, "leaving", (streams) => parts.host.release(streams)),
      lost: (partitions) => this.#giveUp(partitions, "lost", (streams) => parts.host.abandon(streams)),
      wantMetadata: () => parts.wantMetadata(),
      told: (text) => parts.observer?.emit({ e: "group.told", group, text }),
      ended: (failure) => parts.fail(failure),
      troubled: (failure) => {
        if (failure === null) parts.troubles.clear("group");
        else parts.troubles.report("group", failure);
      },
    });
  }

  /** Joins; once. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#membership.start();
  }

  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** Topics of other members, which we watch because we lead. */
  get watched(): readonly string[] {
    return this.#membership.watched;
  }

  close(): Promise<void> {
    return this.#membership.close();
  }

  member(signal: AbortSignal): Promise<Membership & { readonly instanceId: string | null }> {
    return this.#membership.member(signal);
  }

  confirmation(): Promise<number> {
    return this.#membership.confirmation();
  }

  /** `names`: ours to read. `facts`: of them, and of those that we watch. */
  topics(names: readonly string[], facts: readonly TopicFacts[]): void {
    this.#membership.topics(names, facts);
  }

  /** Those that are ours to begin now. */
  mine(partitions: readonly GroupPartition[]): readonly GroupPartition[] {
    return partitions.filter((p) => this.#membership.mayBegin(p));
  }

  /** True once the group has told what is ours. */
  get joined(): boolean {
    return this.#membership.joined;
  }

  /** Under which epoch partitions are begun; undefined: not now, the group forms anew. */
  get epoch(): number | null | undefined {
    const { epoch } = this.#membership;
    if (epoch === null) return undefined;
    return this.#vouched ? null : epoch;
  }

  begun(): void {
    this.#vouched = false;
  }

  /**
   * A stream was claimed under a later epoch than ours: by a member that got it after us, or in an earlier life of a
   * group that was deleted since. The broker knows: if it confirms us now, our claim counts.
   */
  refused(): void {
    this.#membership.confirmation().then(
      () => {
        this.#vouched = true;
        this.#p.wantMetadata();
      },
      () => {},
    );
  }

  async #giveUp(
    partitions: readonly AssignedPartition[],
    as: "leaving" | "lost",
    how: (streams: readonly number[]) => Promise<void>,
  ): Promise<void> {
    const { reader } = this.#p;
    for (const p of partitions) reader.leave(p.topic, p.partition, as);
    // One of them may be about to begin.
    await this.#p.settled();
    const streams = partitions.flatMap((p) => reader.leave(p.topic, p.partition, as) ?? []);
    if (streams.length > 0) await how(streams);
    // By their streams: what took too long was abandoned meanwhile, and the partition may be back as another stream.
    for (const stream of streams) {
      const name = reader.drop(stream);
      if (name !== null) this.#p.forget(name);
    }
  }
}
