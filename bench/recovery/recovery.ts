/**
 * Recovery, beside what it is measured by: the same records live, what the sink alone takes, one process beside two, and
 * live ingest with and without it. All on one machine, in turn, rows compared by a hash of their columns.
 */
import { type BenchOptions, type Figure, inTurn, sameHash } from "../figure.ts";
import { ORDER_COLUMNS } from "../orders.ts";
import { type Topic, topicOf } from "../topics.ts";
import { besideLive } from "./live.ts";
import { figureOf, Pipeline } from "./pipeline.ts";
import { intoPostgres, twoIntoPostgres } from "./postgres.ts";

export function recovery(o: BenchOptions): AsyncGenerator<Figure> {
  return overOrders(o, async function* (topic) {
    const typed = yield* intoParquet(o, topic);
    yield* intoPostgres(o, topic);
    yield* besideLive(o, topic, typed);
  });
}

/** Two processes on one backlog. */
export function recoveryTwo(o: BenchOptions): AsyncGenerator<Figure> {
  return overOrders(o, (topic) => twoIntoPostgres(o, topic));
}

async function* overOrders(
  o: BenchOptions,
  measure: (topic: Topic) => AsyncGenerator<Figure>,
): AsyncGenerator<Figure> {
  const topic = await topicOf(o, "orders", "none", o.small ? 20_000 : 2_000_000);
  if (topic === null) return;
  try {
    yield* measure(topic);
  } finally {
    await topic.release();
  }
}

const TYPED = `[[sink]]
name = "side"
type = "parquet"
receives = "decoded"
path = "FOLDER/side"`;
const COPY = TYPED.replace("decoded", "raw");
/** What is stamped by who writes is left out. */
const KEPT = ["_twg_source_partition", "_twg_source_offset", "_twg_record_id"];

/** Returns the figure of typed rows. */
async function* intoParquet(o: BenchOptions, topic: Topic): AsyncGenerator<Figure, Figure> {
  const figures: Figure[] = [];
  const kinds = [
    ["typed Parquet", TYPED, [...Object.keys(ORDER_COLUMNS), ...KEPT.slice(0, 2)]],
    ["raw Parquet", COPY, [...KEPT, "_twg_source_value"]],
  ] as const;
  for (const [what, sink, columns] of o.small ? kinds.slice(0, 1) : kinds) {
    const live = new Pipeline(o, topic);
    const late = new Pipeline(o, topic);
    try {
      const side = (p: Pipeline) => sink.replace("FOLDER", p.folder);
      const hashes: string[] = [];
      await late.stream(await late.config("raw", []));
      const [both, filled] = [
        await live.config("both", [side(live)]),
        await late.config("both", [side(late)]),
      ];
      const runs = await inTurn(
        o.rounds,
        async () => {
          late.clear("side");
          const ran = await late.recover(filled);
          hashes.push(late.hash("side", columns));
          return ran;
        },
        async () => {
          live.clear("side", "raw", "state");
          const ran = await live.stream(both);
          hashes.push(live.hash("side", columns));
          return ran;
        },
      );
      const figure = figureOf(`recovery into ${what}`, topic.records, runs, sameHash(what, hashes));
      figures.push(figure);
      yield figure;
    } finally {
      live.drop();
      late.drop();
    }
  }
  return figures[0]!;
}
