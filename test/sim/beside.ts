/**
 * The sinks of the scenario `sinks` beside the raw one: files in a folder of their own, and a table that comes after
 * both. The judge looks at what they show: nothing twice, nothing that is not where it comes from, and of each record
 * either the row or a gap in the coverage.
 */
import { parquetReadObjects } from "hyparquet";
import { MemoryVersionedStore, type SharedObject, sharedObject } from "../../src/adapters/coverage/memory.ts";
import { fallbackCodecs } from "../../src/adapters/duckdb/native-fallback.ts";
import { ParquetWriter } from "../../src/adapters/parquet/writer.ts";
import { CoverageKeeper } from "../../src/core/coverage/keeper.ts";
import { containsRange, normalRanges, type Ranges, unionRanges } from "../../src/core/coverage/ranges.ts";
import { Committer } from "../../src/core/delivery/committer.ts";
import { CoveredCommitter } from "../../src/core/delivery/covered-committer.ts";
import type { Failure } from "../../src/core/failure/failure.ts";
import { Branch } from "../../src/core/pipeline/branch.ts";
import { Branches } from "../../src/core/pipeline/branches.ts";
import type { LaneBranches } from "../../src/core/pipeline/lane.ts";
import { PRIMARY, type SecondarySpec } from "../../src/core/pipeline/secondary-parts.ts";
import type { Authority, WindowCoverage } from "../../src/core/ports/coverage.ts";
import type { HostIdentity } from "../../src/core/ports/host-identity.ts";
import type { FromLane } from "../../src/core/ports/lane.ts";
import type { Observer } from "../../src/core/ports/observer.ts";
import type { RawBatch } from "../../src/core/records/raw-batch.ts";
import type { Span, StreamKey } from "../../src/core/records/stream.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import type { SeededChance } from "./chance.ts";
import type { SimProcess, SimTime } from "./clock.ts";
import { newestState } from "./judge.ts";
import type { Oracle } from "./oracle.ts";
import { SimFolder } from "./store.ts";
import { SimTable } from "./table.ts";

/** Some slabs of 128 KiB for each column of the files. */
const FILE_HOLD_BYTES = 16 * 1024 * 1024;
const TABLE_HOLD_BYTES = 3_000;

export interface BesideNode {
  /** Instance in the coverage of both. */
  readonly instance: string;
  readonly process: SimProcess;
  readonly clock: Clock;
  readonly chance: SeededChance;
  readonly host: HostIdentity;
  readonly observer: Observer;
  readonly shared: boolean;
}

/**
 * leads: sets of sinks beside the raw one do not wait for what they come after. forgets: rows that the table refuses are
 * covered while its rejects are away. lost_lease: the table takes what comes under a lease that is over.
 */
export type BesideCanary = "leads" | "forgets" | "lost_lease";

export class BesideWorld {
  readonly folder: SimFolder;
  readonly coverage: SharedObject = sharedObject();
  readonly table: SimTable;
  readonly complaints: string[] = [];
  readonly #raw: SharedObject;
  readonly #chance: SeededChance;
  readonly #canary: BesideCanary | null;

  constructor(time: SimTime, chance: SeededChance, raw: SharedObject, canary: BesideCanary | null) {
    this.#raw = raw;
    this.#chance = chance;
    this.#canary = canary;
    this.folder = new SimFolder(time, chance.fork());
    this.table = new SimTable(time, chance.fork(), canary === "forgets");
    if (canary === "lost_lease") this.table.canary = canary;
    this.table.onCommit = (spans, authorities) => {
      this.#follows("the table", spans, [this.#raw, this.coverage]);
      for (const s of spans)
        this.#allowed(
          s,
          authorities.find((a) => a.stream === s.stream),
        );
    };
  }

  /** Trouble of some kind, or none again. */
  mischief(): void {
    const c = this.#chance;
    const { faults } = this.folder;
    const kind = c.pick(["files", "full", "table", "rejects", "slow", "well"] as const);
    if (kind === "files")
      Object.assign(faults, { fail: c.next() < 0.3 ? 1 : c.next() * 0.5, failAfter: c.next() * 0.3 });
    else if (kind === "full") faults.fullUntil = Number.POSITIVE_INFINITY;
    else if (kind === "table")
      Object.assign(this.table.faults, {
        fail: c.next() < 0.3 ? 1 : c.next() * 0.5,
        failAfter: c.next() * 0.5,
      });
    else if (kind === "rejects") this.table.faults.rejectsDown = true;
    else if (kind === "slow") this.table.faults.slowMs = c.int(3_000);
    else this.heal();
  }

  heal(): void {
    Object.assign(this.folder.faults, { fail: 0, failAfter: 0, fullUntil: -1 });
    Object.assign(this.table.faults, { fail: 0, failAfter: 0, slowMs: 4, rejectsDown: false });
  }

  coveredBySide(stream: StreamKey): Ranges {
    return coveredIn(this.coverage, stream);
  }

  secondaries({
    instance,
    process,
    clock,
    chance,
    host,
    observer,
    shared,
  }: BesideNode): (SecondarySpec & { readonly coverage: WindowCoverage })[] {
    const objects = this.folder.handle(process);
    const delay = async () => {
      await new Promise<void>((resolve) => void clock.after(chance.next() * 5, resolve));
    };
    const outages: SecondarySpec["outages"] = { tell: null };
    const keeper = new CoverageKeeper(
      { instance, leaseMs: 4_000, minIntervalMs: 20, shared },
      {
        versions: new MemoryVersionedStore(this.coverage, { delay }),
        objects,
        clock,
        host,
        trouble: (f: Failure | null) => outages.tell?.(f),
      },
    );
    const after = (n: number[]) => (this.#canary === "leads" ? [] : n);
    return [
      {
        name: "side",
        after: after([PRIMARY]),
        commits: false,
        coverage: keeper,
        committer: (listener) =>
          new Committer({ sink: "side", coverage: keeper, objects, clock, observer, listener }),
        prepare: () => Promise.resolve(),
        sweep: async () => {
          if (keeper.isAlone) await objects.sweep(keeper.stagedNames());
        },
        outages,
      },
      {
        name: "table",
        after: after([PRIMARY, 0]),
        commits: true,
        coverage: this.table.coverage({ process, instance, clock, host }),
        committer: (listener) => new CoveredCommitter({ sink: "table", clock, observer, listener }),
        prepare: () => Promise.resolve(),
        sweep: () => Promise.resolve(),
        outages: { tell: null },
      },
    ];
  }

  branches(
    process: SimProcess,
    clock: Clock,
    lane: number,
    instance: string,
    primaryOpen: () => boolean,
    post: (m: FromLane) => void,
    /** How many of them take part. */
    sinks = 2,
  ): LaneBranches {
    let sets = 0;
    const newWriter = [
      () =>
        new ParquetWriter(
          {
            path: "/side/{topic}/{hour}",
            row_group_bytes: 4096,
            compression: "none",
            compression_level: 1,
            metadata_prefix: "_twg_",
            max_open_files: 1,
            pipeline: "sim",
            sink: "side",
            version: "0",
          },
          { store: this.folder.handle(process), codecs: fallbackCodecs, clock },
        ),
      () => this.table.writer(process),
    ];
    const branches = new Branches<RawBatch>(
      newWriter.slice(0, sinks).map((make, sink) => ({
        after: sink === 0 ? [] : [0],
        branch: new Branch<RawBatch>({
          lane,
          name: sink === 0 ? "side" : "table",
          commits: sink === 1,
          eager: sink === 0,
          holdBytes: sink === 0 ? FILE_HOLD_BYTES : TABLE_HOLD_BYTES,
          rollBytes: sink === 0 ? 8 * 1024 : 1_000,
          rollIntervalMs: sink === 0 ? 300 : 700,
          clock,
          newWriter: make,
          newSetId: () => `${instance}b${sink}-${sets++}`,
          primaryOpen,
          post: (m) => post({ t: "branch", sink, m }),
        }),
      })),
    );
    const take = (stream: number, key: StreamKey, batch: RawBatch) =>
      branches.give(stream, key, () => batch, batch.span);
    return Object.assign(branches, { take, settled: () => Promise.resolve() });
  }

  /** At the moment when a sink shows the spans: those that it comes after must have them. */
  #follows(who: string, spans: readonly Span[], before: readonly SharedObject[]): void {
    for (const object of before) {
      for (const s of spans) {
        if (containsRange(coveredIn(object, s.stream), s)) continue;
        this.complaints.push(`${who} shows ${s.stream} [${s.from}, ${s.next}) before it is covered there`);
      }
    }
  }

  /** Under a lease that is there, or under none and in no window. By the names alone, not by what reads them. */
  #allowed({ stream, from, next }: Span, authority: Authority | undefined): void {
    const { leases } = this.table.state;
    const at = `${stream} [${from}, ${next})`;
    if (authority?.kind === "lease") {
      const there = leases.get(authority.window)?.lease === authority.lease;
      if (!there) this.complaints.push(`the table shows ${at} under ${authority.window}, which is over`);
      return;
    }
    for (const name of leases.keys()) {
      const [, range = "", of] = name.split(" ");
      const [a = "", b = ""] = range.split("-");
      if (b === "" || of !== stream || next <= BigInt(a) || BigInt(b) <= from) continue;
      this.complaints.push(`live ingest wrote ${at} in ${name}`);
    }
  }

  /** After recovery each sink has what raw has: rows of raw are given. */
  async judgeRecovered(raw: readonly string[]): Promise<string[]> {
    const sinks = [
      ["side", await this.#sideRows()],
      ["table", this.#tableRows],
    ] as const;
    const wanted = raw.toSorted();
    return sinks.flatMap(([name, rows]) => {
      const has = new Set(rows);
      const lost = wanted.filter((r) => !has.has(r));
      const same = rows.length === wanted.length && lost.length === 0;
      return same
        ? []
        : [
            `${name}: ${rows.length} rows for ${wanted.length}, ${lost.length} of them lost, first ${lost[0]}`,
          ];
    });
  }

  async judge(oracle: Oracle): Promise<{ complaints: string[]; side: number; table: number }> {
    const complaints = [...this.complaints];
    const once = (rows: readonly string[], who: string): Set<string> => {
      const set = new Set(rows);
      if (set.size < rows.length) complaints.push(`${who}: ${rows.length - set.size} rows are there twice`);
      return set;
    };
    const side = once(await this.#sideRows(), "side");
    const table = once(this.#tableRows, "table");
    complaints.push(...[...table.difference(side)].map((row) => `table: ${row} is not in side`));
    const inRaw = (s: StreamKey) => coveredIn(this.#raw, s);
    const inSide = (s: StreamKey) => coveredIn(this.coverage, s);
    const inTable = (s: StreamKey) => this.table.state.streams.get(s)?.covered ?? [];
    const leads = (who: string, s: StreamKey, of: Ranges, before: Ranges) => {
      if (!of.every((r) => containsRange(before, r))) complaints.push(`${who}: ${s} leads`);
    };
    for (const s of this.table.state.streams.keys()) leads("table", s, inTable(s), inSide(s));
    for (const { stream } of newestState(this.coverage)?.streams ?? [])
      leads("side", stream, inSide(stream), inRaw(stream));
    // Positions of a topic that was made anew, or cut, are those of other records, too.
    if (oracle.gone.size === 0) {
      complaints.push(...this.#thereOrGap(oracle, "side", side, inSide));
      complaints.push(...this.#thereOrGap(oracle, "table", table, inTable));
    }
    return { complaints, side: side.size, table: table.size };
  }

  #thereOrGap(oracle: Oracle, name: string, rows: Set<string>, covered: (s: StreamKey) => Ranges): string[] {
    const streams = newestState(this.#raw)?.streams ?? [];
    const open = (newestState(this.coverage)?.intents ?? []).flatMap((i) => i.spans);
    const intended = (stream: StreamKey): Ranges =>
      normalRanges(
        open.flatMap(([of, from, next]) =>
          of === stream ? [{ from: BigInt(String(from)), next: BigInt(String(next)) }] : [],
        ),
      );
    return oracle.expected.flatMap((expected, p) => {
      const stream = streams.find((s) => s.stream.endsWith(`/${p}`))?.stream ?? "";
      const ranges = covered(stream);
      return [...expected].flatMap(([offset, value]) => {
        const there = rows.has(`${p}@${offset} ${value}`);
        const at = { from: offset, next: offset + 1n };
        // Whoever settles an intent of a recovery that died decides: its files may be there already.
        if (name === "side" && containsRange(intended(stream), at)) return [];
        const told = containsRange(ranges, at);
        const not = (yes: boolean) => (yes ? "" : "not ");
        return there === told
          ? []
          : [`${name}: ${p}@${offset} is ${not(there)}there and ${not(told)}covered`];
      });
    });
  }

  /** A refused row is as good as one that is there, as long as it is among the rejects. */
  get #tableRows(): readonly string[] {
    return [...this.table.rows, ...this.table.rejects];
  }

  #sideRows(): Promise<string[]> {
    return rowsIn(this.folder);
  }
}

/** "partition@offset value" of each row that the folder shows. */
export async function rowsIn({ published }: SimFolder): Promise<string[]> {
  const rows: string[] = [];
  for (const bytes of published.values()) {
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
    const columns = ["_twg_source_partition", "_twg_source_offset", "_twg_source_value"];
    for (const row of await parquetReadObjects({ file, columns, utf8: false })) {
      const value = new TextDecoder().decode(row._twg_source_value as Uint8Array);
      rows.push(`${row._twg_source_partition}@${row._twg_source_offset} ${value}`);
    }
  }
  return rows;
}

function coveredIn(object: SharedObject, stream: StreamKey): Ranges {
  const of = newestState(object)?.streams.find((s) => s.stream === stream);
  const ranges = (of?.covered ?? []).map(([from, next]) => ({ from: BigInt(from), next: BigInt(next) }));
  return unionRanges(normalRanges(ranges), []);
}
