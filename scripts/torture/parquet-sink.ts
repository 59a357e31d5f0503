/** Parquet files on this machine's disk under torture. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { LOCAL_WRITE_POINTS } from "../../src/adapters/coverage/local.ts";
import { SETTLE_POINTS } from "../../src/core/coverage/settle.ts";
import { CRASH_POINTS } from "../../src/core/delivery/crash-points.ts";
import { CLUSTERS, compareWithKafka } from "../../test/e2e/real-kafka.ts";
import { countLanded } from "./landed.ts";
import { orphansIn, writersIn } from "./orphans.ts";
import { type Life, type TortureSink, twice } from "./sink.ts";

/** Settling needs a life before that left an intent: whole, or without its staged files. */
export const SETTLING: readonly Life[] = [
  { point: "after_intend:1" },
  { point: "settle_before_publish:1" },
  { point: "settle_after_publish_one:1" },
  { point: "after_intend:1" },
  { point: "settle_before_discard:1", unstaged: true },
  { point: "settle_after_discard:1" },
];
for (const p of SETTLE_POINTS)
  if (!SETTLING.some((l) => l.point === `${p}:1`)) throw new Error(`no life ends at ${p}`);

/** `rollMs`: longest that a file stays open. */
export function parquetSink(folder: string, rollMs: number): TortureSink {
  const lake = join(folder, "lake");
  return {
    section: `type = "parquet"
path = "${lake}/{topic}"
roll_bytes = "256KiB"
roll_interval_ms = ${rollMs}
row_group_bytes = "128KiB"`,
    points: [...twice(CRASH_POINTS), ...twice(LOCAL_WRITE_POINTS), ...SETTLING],
    before({ unstaged }) {
      if (unstaged) rmSync(join(lake, "_twg/torture/raw/staging"), { recursive: true });
    },
    trouble: () => () => Promise.resolve(),
    count: () => countLanded(lake),
    landing: () => Promise.resolve(lake),
    orphans: () => Promise.resolve(orphansIn(lake)),
    async compare(bootstrap, topic) {
      const served = CLUSTERS.find((c) => c.plain.join(",") === bootstrap);
      if (served === undefined) throw new Error(`no real broker at ${bootstrap}`);
      return (await compareWithKafka(served, topic, lake)).differences;
    },
    figures: () => ({ writers: writersIn(lake) }),
    stop: () => Promise.resolve(),
  };
}
