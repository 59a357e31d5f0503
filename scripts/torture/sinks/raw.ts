/** The primary sink of a run with several: Parquet files in a real S3 server behind a proxy, or on a small disk. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Decide, Fault } from "../../../test/s3/fault-proxy.ts";
import { seededFaults } from "../../../test/s3/faults.ts";
import type { Outside } from "../../../test/s3/servers.ts";
import { parquetSink } from "../parquet-sink.ts";
import { s3Sink } from "../s3-sink.ts";
import type { TortureSink } from "../sink.ts";
import { calls, type Place, PRIMARY_POINTS, type Trouble } from "./place.ts";
import { smallDisk } from "./small-disk.ts";

/** Half-open, sorted. */
export type Covered = ReadonlyMap<number, readonly (readonly [number, number])[]>;

export interface RawPlace extends Place {
  /** By partition, as the durable state says it now. */
  covered(): Promise<Covered>;
  /** A folder with all that landed; asked when nothing writes any more. */
  landing(): Promise<string>;
  /** What differs from what librdkafka reads. */
  compare(bootstrap: string, topic: string): Promise<readonly string[]>;
}

const DISK_BYTES = 256 << 20;
/** Longer than any request may take. */
const HELD_MS = 6_000;
const PASS: Decide = () => ({ t: "pass" });

interface RawOptions {
  /** versitygw, seaweedfs or disk. */
  readonly store: string;
  readonly seed: number;
  readonly rollMs: number;
  readonly say: (text: string) => void;
}

export const rawPlace = (folder: string, o: RawOptions): Promise<RawPlace> =>
  o.store === "disk" ? Promise.resolve(onDisk(folder, o)) : inBucket(folder, o);

async function inBucket(folder: string, { store, seed, rollMs }: RawOptions): Promise<RawPlace> {
  const sink = await s3Sink(folder, { store, faults: PASS, rollMs });
  const { proxy, outside } = sink;
  let key: string | undefined;
  const decide = (begun: Decide): Trouble => {
    if (proxy === null) throw new Error("there is no proxy");
    return calls(
      () => {
        proxy.decide = begun;
      },
      () => {
        proxy.decide = PASS;
      },
    );
  };
  const always = (fault: Fault) => decide(() => fault);
  return {
    ...placeOf(sink),
    troubles: {
      hang: always({ t: "delay", ms: HELD_MS }),
      slow: always({ t: "delay", ms: 300 }),
      cut: always({ t: "cut" }),
      errors: always({ t: "answer", status: 503, code: "SlowDown" }),
      lost_answers: always({ t: "lose" }),
      mixed: decide(seededFaults(seed + 7, 0.3)),
    },
    async covered() {
      key ??= (await outside.keys()).find((k) => k.endsWith("/raw/coverage/coverage.json"));
      return key === undefined ? new Map() : coveredIn(await settled(outside, key));
    },
    stop: () => sink.stop(),
  };
}

function onDisk(folder: string, { rollMs, say }: RawOptions): RawPlace {
  const disk = smallDisk(join(folder, "raw"), DISK_BYTES, say);
  const sink = parquetSink(join(folder, "raw"), rollMs);
  const state = join(folder, "raw/lake/_twg/torture/raw/coverage");
  return {
    ...placeOf(sink),
    troubles: disk?.troubles ?? {},
    covered() {
      const names = existsSync(state) ? readdirSync(state) : [];
      const newest = names
        .filter((n) => /^coverage-\d+\.json$/.test(n))
        .sort()
        .at(-1);
      return Promise.resolve(
        newest === undefined ? new Map() : coveredIn(readFileSync(join(state, newest), "utf8")),
      );
    },
    async stop() {
      await sink.stop();
      disk?.remove();
    },
  };
}

function placeOf(sink: TortureSink) {
  return {
    name: "raw",
    section: sink.section,
    points: PRIMARY_POINTS,
    judged: {},
    orphans: () => sink.orphans(),
    landing: async () => (await sink.landing()) ?? "",
    compare: (bootstrap: string, topic: string) => sink.compare(bootstrap, topic),
  };
}

const TRIES = 20;

/** A server may show the bytes of one version with the checksum of the next while it is replaced: then once more. */
async function settled(outside: Outside, key: string): Promise<string> {
  for (let tries = 1; ; tries++)
    try {
      return new TextDecoder().decode(await outside.read(key));
    } catch (e) {
      if (tries === TRIES) throw e;
      await Bun.sleep(50);
    }
}

interface State {
  readonly streams: readonly {
    readonly stream: string;
    readonly covered: readonly (readonly [string, string])[];
  }[];
}

/** The state as plain JSON, not by our own reader. The partition is the last part of a stream's name. */
function coveredIn(text: string): Covered {
  const { streams } = JSON.parse(text) as State;
  return new Map(
    streams.map(({ stream, covered }) => [
      Number(/(\d+)$/.exec(stream)?.[1] ?? "-1"),
      covered.map(([from, next]) => [Number(from), Number(next)] as const),
    ]),
  );
}
