/**
 * The contract of order over a versioned store and two-phase objects: the product's committer and keeper, with a look at what others
 * see around each write of the coverage and each publication.
 */
import { CoverageKeeper } from "../../src/core/coverage/keeper.ts";
import { normalRanges, type Ranges } from "../../src/core/coverage/ranges.ts";
import { recoveryInstance } from "../../src/core/coverage/windows.ts";
import { Committer } from "../../src/core/delivery/committer.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import type { Authority, CoverageStore, Intent, Range } from "../../src/core/ports/coverage.ts";
import type { HostId } from "../../src/core/ports/host-identity.ts";
import type { SealedSet } from "../../src/core/ports/lane.ts";
import type { Target } from "../../src/core/ports/object-store.ts";
import type { Versioned } from "../../src/core/ports/versioned-store.ts";
import { SimTime } from "../sim/clock.ts";
import type { CoverageMaker } from "./coverage-contract.ts";
import { drive, Traffic } from "./drive.ts";
import { fillWindows, type Landing, type OrderBench } from "./order-contract.ts";

const LEASE_MS = 15_000;
const S = "kafka/c/orders/0/0";

/** The committer over the same store; each write and each publication is a moment. */
export function keeperOrder(make: CoverageMaker): () => Promise<OrderBench> {
  return async () => {
    const time = new SimTime();
    const traffic = new Traffic();
    const bench = await make(time, traffic);
    const clock = time.clock(null);
    const staged: { readonly target: Target; readonly range: Range }[] = [];
    return {
      close: () => bench.close(),
      look: async () => {
        const outside = bench.objects();
        const rows: bigint[] = [];
        for (const { target, range } of staged)
          if ((await outside.probe(target)) === "published")
            for (let p = range.from; p < range.next; p++) rows.push(p);
        return { rows, covered: storedRanges(await bench.versions().read(), S) };
      },
      land: (landing) => drive(time, landOver(landing), traffic),
    };

    async function landOver(landing: Landing): Promise<void> {
      const { ranges, leased, swap, moment, acknowledged } = landing;
      const around = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
        await moment(`before ${what}`);
        const value = await work();
        await moment(`behind ${what}`);
        return value;
      };
      const versions = bench.versions();
      const objects = bench.objects();
      const keeper = new CoverageKeeper(
        { instance: leased ? recoveryInstance("r") : "live", leaseMs: LEASE_MS, minIntervalMs: 0 },
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
      const failures: Failure[] = [];
      const done: Promise<void>[] = [];
      const told = (of: Range) => void done.push(Promise.resolve(acknowledged(of)));
      const coverage = {
        intend: async (intents: readonly Intent[]) => {
          const answers = await keeper.intend(intents);
          if (swap === "cover_first") await keeper.cover(intents.map((i) => i.id));
          if (swap === "acknowledge_first") for (const i of intents) await acknowledged(i.spans[0]!);
          return answers;
        },
        cover: (ids: readonly string[]) => keeper.cover(ids),
        settle: (id: string, outcome: "abandoned") => keeper.settle(id, outcome),
      } as unknown as CoverageStore;
      const committer = new Committer({
        ...{ sink: "raw", coverage, clock, observer: { emit: () => {} } },
        objects: {
          place: objects.place,
          stage: (name: string) => objects.stage(name),
          sweep: (...of) => objects.sweep(...of),
          publish: (target: Target) => around("a publication", () => objects.publish(target)),
          probe: (target: Target) => objects.probe(target),
          discard: (target: Target) => objects.discard(target),
        },
        listener: {
          committed: (_id, spans) => told(spans[0]!),
          refused: (id, _lane, reason) => void failures.push(new Failure("internal.bug", `${id}: ${reason}`)),
          failed: (f) => void failures.push(f),
          trouble: () => {},
        },
      });
      const sets = async (of: readonly Range[], authority: Authority) => {
        for (const range of of) await submit(range, authority);
        await committer.idle();
        await Promise.all(done);
        if (failures.length > 0) throw failures[0];
      };
      const submit = async (range: Range, authority: Authority) => {
        const id = `order-${staged.length}`;
        const file = await objects.stage(`${id}.parquet`);
        await file.append(new TextEncoder().encode(id));
        const target = await file.seal(1);
        staged.push({ target, range });
        const spans = [{ stream: S, ...range }];
        const sizes = { rows: 1, bytes: 1, openedAt: 0, sealMs: 0 };
        const set: SealedSet = {
          ...{ id, targets: [target], spans, lane: 0, epoch: 0, covered: false, reason: "bytes", ...sizes },
        };
        committer.submit(set, [authority]);
      };
      if (leased) return fillWindows(landing, S, keeper, clock, sets);
      await keeper.open();
      const [claim] = await keeper.claim([S], null);
      await sets(ranges, claim!.authority);
      await keeper.close();
    }
  };
}

const HOST: HostId = { hostname: "h", pid: 7, bootId: "b", pidNamespace: "n", startTime: "order" };

/** As plain JSON: not by what is judged. */
function storedRanges(newest: Versioned | null, stream: string): Ranges {
  if (newest === null) return [];
  const { streams } = JSON.parse(new TextDecoder().decode(newest.bytes)) as {
    readonly streams: readonly { readonly stream: string; readonly covered: readonly [string, string][] }[];
  };
  const of = streams.find((s) => s.stream === stream)?.covered ?? [];
  return normalRanges(of.map(([from, next]) => ({ from: BigInt(from), next: BigInt(next) })));
}
