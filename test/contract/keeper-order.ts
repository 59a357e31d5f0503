/** The contracts of order and of cursors over a versioned store and two-phase objects. */
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { DuckEngine } from "../../src/adapters/duckdb/engine.ts";
import { ParquetEncoder } from "../../src/adapters/duckdb/parquet-encode.ts";
import { ParquetTableWriter, REJECTS_FOLDER } from "../../src/adapters/parquet/table-writer.ts";
import { recoveryInstance } from "../../src/core/coverage/windows.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import type { Authority, Range } from "../../src/core/ports/coverage.ts";
import type { SealedSet } from "../../src/core/ports/lane.ts";
import type { ObjectStore, Target } from "../../src/core/ports/object-store.ts";
import { SimTime, settleJobs } from "../sim/clock.ts";
import type { CoverageMaker } from "./coverage-contract.ts";
import { type CursorBench, heard } from "./cursor-contract.ts";
import { drive, Traffic } from "./drive.ts";
import { fillWindows, type Landing, type OrderBench } from "./order-contract.ts";
import { storedCoverage, watchedKeeper } from "./watched-keeper.ts";

const S = "kafka/c/orders/0/0";

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
        return { rows, covered: storedCoverage(await bench.versions().read()).get(S) ?? [] };
      },
      land: (landing) => drive(time, landOver(landing), traffic),
    };

    async function landOver(landing: Landing): Promise<void> {
      const { ranges, leased, swap, moment, acknowledged } = landing;
      const objects = bench.objects();
      const watched = watchedKeeper({
        ...{ instance: leased ? recoveryInstance("r") : "live", versions: bench.versions() },
        ...{ objects, clock, swap, moment },
        tells: (spans) => acknowledged(spans[0]!),
      });
      const { keeper } = watched;
      const failures: Failure[] = [];
      const done: Promise<void>[] = [];
      const committer = watched.committer({
        committed: (_id, spans) => void done.push(Promise.resolve(acknowledged(spans[0]!))),
        refused: (id, _lane, reason) => void failures.push(new Failure("internal.bug", `${id}: ${reason}`)),
        failed: (f) => void failures.push(f),
        trouble: () => {},
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

/** Longest step of simulated time while a job reads real files. */
const STEP_MS = 1_000;

/** Rows as Parquet files, as a batch job writes them, and refused rows beside them. */
export function keeperCursors(make: CoverageMaker): () => Promise<CursorBench> {
  return async () => {
    const time = new SimTime();
    const traffic = new Traffic();
    const bench = await make(time, traffic);
    const clock = time.clock(null);
    const kept: Kept[] = [];
    return {
      close: () => bench.close(),
      look: async () => {
        const outside = bench.objects();
        const rows: number[] = [];
        const refused: number[] = [];
        for (const { target, bytes } of kept) {
          if ((await outside.probe(target)) !== "published") continue;
          if (target.key.includes(REJECTS_FOLDER)) refused.push(...refusedIn(bytes));
          else rows.push(...(await rowsIn(bytes)));
        }
        return { rows, refused, covered: storedCoverage(await bench.versions().read()) };
      },
      sink: (_plan, watch) => {
        const { keeper, committer } = watchedKeeper({
          ...{ instance: "job", versions: bench.versions(), objects: bench.objects(), clock },
          ...{ swap: watch.swap, moment: watch.moment, tells: watch.landed },
        });
        const engine = new DuckEngine({ threads: 1, memoryBytes: 64 << 20, spill: null, allowed: [] });
        const encoder = new ParquetEncoder(engine, { compression: "none", level: 1 });
        return {
          ...{ clock, coverage: keeper, refusing: false },
          committer: (listener) => committer(heard(listener, watch)),
          tableSink: () =>
            new ParquetTableWriter(
              { folder: "", pipeline: "p", sink: "raw", version: "0" },
              { store: keeping(bench.objects(), kept), encode: (batch) => encoder.encode(batch) },
            ),
        };
      },
      run: async (work) => {
        let over = false;
        const done = () => {
          over = true;
        };
        work.then(done, done);
        while (!over) {
          await new Promise((turn) => setTimeout(turn, 0));
          if (!traffic.busy) await time.step(time.nowMs + STEP_MS);
          await settleJobs();
        }
        return work;
      },
    };
  };
}

interface Kept {
  readonly target: Target;
  readonly bytes: Uint8Array;
}

/** Remembers what was written into each object: ports have no way to read one. */
function keeping(store: ObjectStore, kept: Kept[]): ObjectStore {
  return {
    place: store.place,
    publish: (target) => store.publish(target),
    probe: (target) => store.probe(target),
    discard: (target) => store.discard(target),
    sweep: (names) => store.sweep(names),
    stage: async (name) => {
      const staged = await store.stage(name);
      const parts: Uint8Array[] = [];
      return {
        key: staged.key,
        append: (bytes) => {
          parts.push(bytes.slice());
          return staged.append(bytes);
        },
        seal: async (rows) => {
          const target = await staged.seal(rows);
          kept.push({ target, bytes: Buffer.concat(parts) });
          return target;
        },
        abort: () => staged.abort(),
      };
    },
  };
}

function refusedIn(bytes: Uint8Array): readonly number[] {
  const lines = new TextDecoder().decode(bytes).trim().split("\n");
  return lines.map((line) => (JSON.parse(line) as { readonly row: number }).row);
}

async function rowsIn(bytes: Uint8Array): Promise<readonly number[]> {
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
  return (await parquetReadObjects({ file, compressors })).map((r) => Number(r.id));
}
