/**
 * The product's keeper and committer over a versioned store and two-phase objects, with a look at what others see around each write of
 * the coverage and each publication; and with their order swapped, if that is asked for.
 */
import { CoverageKeeper } from "../../src/core/coverage/keeper.ts";
import { normalRanges, type Ranges } from "../../src/core/coverage/ranges.ts";
import { type CommitListener, Committer } from "../../src/core/delivery/committer.ts";
import type { CoverageStore, Intent } from "../../src/core/ports/coverage.ts";
import type { HostId } from "../../src/core/ports/host-identity.ts";
import type { ObjectStore, Target } from "../../src/core/ports/object-store.ts";
import type { Versioned, VersionedStore } from "../../src/core/ports/versioned-store.ts";
import type { Span } from "../../src/core/records/stream.ts";
import type { Clock } from "../../src/core/time/clock.ts";

const LEASE_MS = 15_000;
const HOST: HostId = { hostname: "h", pid: 7, bootId: "b", pidNamespace: "n", startTime: "order" };

export interface WatchedOptions {
  readonly instance: string;
  readonly versions: VersionedStore;
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly swap: "cover_first" | "acknowledge_first" | string | null;
  readonly moment: (what: string) => void | Promise<void>;
  /** Of acknowledge_first: somebody is told of a set that is intended. */
  readonly tells: (spans: readonly Span[]) => void | Promise<void>;
}

export interface Watched {
  readonly keeper: CoverageKeeper;
  readonly committer: (listener: CommitListener) => Committer;
}

export function watchedKeeper(o: WatchedOptions): Watched {
  const { versions, objects, clock, swap, moment, tells } = o;
  const around = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    await moment(`before ${what}`);
    const value = await work();
    await moment(`behind ${what}`);
    return value;
  };
  const keeper = new CoverageKeeper(
    { instance: o.instance, leaseMs: LEASE_MS, minIntervalMs: 0 },
    {
      versions: {
        place: versions.place,
        prepare: () => versions.prepare(),
        read: () => versions.read(),
        write: (...of) => around("a write of coverage", () => versions.write(...of)),
        putSegment: (...of) => versions.putSegment(...of),
        getSegment: (...of) => versions.getSegment(...of),
        sweep: (...of) => versions.sweep(...of),
      },
      ...{ objects, clock },
      host: { self: HOST, isAlive: () => "unknown" },
    },
  );
  const coverage = {
    intend: async (intents: readonly Intent[]) => {
      const answers = await keeper.intend(intents);
      if (swap === "cover_first") await keeper.cover(intents.map((i) => i.id));
      if (swap === "acknowledge_first") for (const i of intents) await tells(i.spans);
      return answers;
    },
    cover: (ids: readonly string[]) => keeper.cover(ids),
    settle: (id: string, outcome: "abandoned") => keeper.settle(id, outcome),
  } as unknown as CoverageStore;
  const committer = (listener: CommitListener) =>
    new Committer({
      ...{ sink: "raw", coverage, clock, observer: { emit: () => {} }, listener },
      objects: {
        place: objects.place,
        stage: (name: string) => objects.stage(name),
        sweep: (...of) => objects.sweep(...of),
        publish: (target: Target) => around("a publication", () => objects.publish(target)),
        probe: (target: Target) => objects.probe(target),
        discard: (target: Target) => objects.discard(target),
      },
    });
  return { keeper, committer };
}

/** By stream. As plain JSON: not by what is judged. */
export function storedCoverage(newest: Versioned | null): ReadonlyMap<string, Ranges> {
  if (newest === null) return new Map();
  const { streams } = JSON.parse(new TextDecoder().decode(newest.bytes)) as {
    readonly streams: readonly { readonly stream: string; readonly covered: readonly [string, string][] }[];
  };
  return new Map(
    streams.map(({ stream, covered }) => [
      stream,
      normalRanges(covered.map(([from, next]) => ({ from: BigInt(from), next: BigInt(next) }))),
    ]),
  );
}
