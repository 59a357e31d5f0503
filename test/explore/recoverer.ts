/**
 * A recovery process: looks at what raw has and the sink beside it lacks, leases windows of that, lands them, and gives them back.
 * The keeper with its leases, what a run sees of them (LeasedCoverage) and the committer are those of the product; here is what the
 * filler and the runner do between them, with as few looks as come to an end.
 */
import { CoverageKeeper } from "../../src/core/coverage/keeper.ts";
import {
  intersectRanges,
  normalRanges,
  type Ranges,
  subtractRanges,
} from "../../src/core/coverage/ranges.ts";
import { recoveryInstance } from "../../src/core/coverage/windows.ts";
import { Committer } from "../../src/core/delivery/committer.ts";
import { asFailure, type Failure } from "../../src/core/failure/failure.ts";
import type { LeasedWindow } from "../../src/core/ports/coverage.ts";
import type { SealedSet } from "../../src/core/ports/lane.ts";
import type { ObjectStore } from "../../src/core/ports/object-store.ts";
import type { StreamKey } from "../../src/core/records/stream.ts";
import { LeasedCoverage } from "../../src/core/recovery/leased-coverage.ts";
import { type Clock, sleep } from "../../src/core/time/clock.ts";
import { LEASE_MS, type OwnerWorld } from "./owner.ts";
import { coveredIn } from "./places.ts";

/** Looks at what is missing. Others may hold it at one of them, and be out at the next. */
const LOOKS = 3;

export class Recoverer {
  outcome: "running" | "done" | Failure = "running";
  readonly serial: number;
  readonly #w: OwnerWorld;
  readonly #clock: Clock;
  readonly #keeper: CoverageKeeper;
  readonly #objects: ObjectStore;
  #sets = 0;

  constructor(world: OwnerWorld, serial: number) {
    this.#w = world;
    this.serial = serial;
    const { operations, life } = world;
    this.#clock = operations.clock(serial);
    const place = world.places[1]!;
    this.#objects = place.objects(serial, operations);
    const self = { hostname: "h", pid: serial, bootId: "b", pidNamespace: "n", startTime: "1" };
    this.#keeper = new CoverageKeeper(
      { instance: recoveryInstance(`o${serial}`), leaseMs: LEASE_MS, minIntervalMs: 0 },
      {
        ...{ objects: this.#objects, clock: this.#clock, versions: place.versions(serial, operations, true) },
        host: { self, isAlive: (other) => life(other.pid) },
      },
    );
    this.#work().then(
      () => {
        this.outcome = "done";
      },
      (e) => {
        this.outcome = asFailure(e);
      },
    );
  }

  async #work(): Promise<void> {
    await this.#keeper.open();
    for (let look = 0; look < LOOKS; look++) {
      const lacks = await this.#lacks();
      if (lacks.size === 0) break;
      const spans = [...lacks].map(([stream, ranges]) => ({
        ...{ stream, from: ranges[0]!.from, next: ranges.at(-1)!.next },
      }));
      const windows = await this.#keeper.leaseWindows(spans);
      if (windows.length > 0) {
        await this.#fill(windows, lacks);
        await this.#keeper.releaseWindows();
      } else if (look + 1 < LOOKS) {
        // Whoever holds them has written nothing for a lease by then, or he has.
        await sleep(this.#clock, LEASE_MS);
        await this.#keeper.heartbeat();
      }
    }
    await this.#keeper.close();
  }

  /** As coverage of both says now. */
  async #lacks(): Promise<Map<StreamKey, Ranges>> {
    const [raw] = this.#w.places;
    const has = await this.#w.operations.ask(this.serial, "look", false, () => [...coveredIn(raw!)]);
    const lacks = new Map<StreamKey, Ranges>();
    for (const [stream, ranges] of has) {
      const missing = subtractRanges(normalRanges(ranges), await this.#keeper.covered(stream));
      if (missing.length > 0) lacks.set(stream, missing);
    }
    return lacks;
  }

  async #fill(windows: readonly LeasedWindow[], lacks: ReadonlyMap<StreamKey, Ranges>): Promise<void> {
    const wanted = new Map(
      windows.map(({ stream, range, covered }) => {
        const inside = intersectRanges([range], lacks.get(stream) ?? []);
        return [stream, subtractRanges(inside, normalRanges(covered))] as const;
      }),
    );
    const leased = new LeasedCoverage(this.#keeper, windows, wanted);
    const observer = { emit: () => {} };
    let failure: Failure | null = null;
    const listener = {
      ...{ committed: () => {}, trouble: () => {} },
      refused: (_id: string, _lane: number, reason: string, detail: string) => {
        if (reason === "overlap") this.#w.overlapped(this.serial, detail);
      },
      failed: (f: Failure) => {
        failure = f;
      },
    };
    const committer = new Committer({
      ...{
        sink: "side",
        coverage: this.#keeper,
        objects: this.#objects,
        clock: this.#clock,
        observer,
        listener,
      },
    });
    for (const { stream, authority, covered } of await leased.claim([...wanted.keys()]))
      for (const range of subtractRanges(wanted.get(stream) ?? [], normalRanges(covered)))
        committer.submit(this.#sealed(stream, range), [authority]);
    await committer.idle();
    if (failure !== null) throw failure;
  }

  #sealed(stream: StreamKey, { from, next }: Ranges[number]): SealedSet {
    const id = `r${this.serial}-${this.#sets++}`;
    const rows = Array.from({ length: Number(next - from) }, (_, k) => `${stream}@${from + BigInt(k)}`);
    const targets = [this.#w.places[1]!.stage(id, rows)];
    return {
      ...{ id, targets, spans: [{ stream, from, next }], lane: 0, epoch: 0, covered: false, reason: "bytes" },
      ...{ rows: rows.length, bytes: 1, openedAt: 0, sealMs: 0 },
    };
  }
}
