/** Recovery by the plans of their time: what of a pipeline is another where records are read again by an earlier plan. */
import type { DecodeSection } from "../core/config/decode-options.ts";
import type { Resolved } from "../core/config/secret.ts";
import type { PlanBook } from "../core/coverage/plan-book.ts";
import type { PlanBookState, PlanSince } from "../core/coverage/plan-json.ts";
import { asFailure, Failure, fromWire, toWire } from "../core/failure/failure.ts";
import type { Observer } from "../core/ports/observer.ts";
import { type StreamKey, streamParts } from "../core/records/stream.ts";
import type { PlanPiece, PlanPieces } from "../core/recovery/plan-phases.ts";
import type { PipelineConfig } from "./config-file.ts";
import { type DecodePlan, readPlan } from "./decode-plan.ts";
import type { PresentPlans } from "./plan-epochs.ts";

/** In place of a digest, where it is not known any more. */
const FORGOTTEN = "forgotten";
const REPLAN = "`twg recover --replan` decodes them by the configuration of now";

/** Of a digest what people compare. */
export const shortPlan = (plan: string): string => plan.slice(0, 12);

type DerivedSink = Pick<PipelineConfig["sink"], "name" | "receives">;

/** Of sinks of derived rows. `streams`: those to look at, by sink. */
export async function piecesOf(
  book: PlanBookState,
  sinks: readonly DerivedSink[],
  streams: ReadonlyMap<string, readonly StreamKey[]>,
  present: Pick<PresentPlans, "of">,
): Promise<PlanPieces> {
  const pieces = new Map<string, ReadonlyMap<StreamKey, readonly PlanPiece[]>>();
  for (const sink of sinks) {
    const found = new Map<StreamKey, readonly PlanPiece[]>();
    for (const stream of streams.get(sink.name) ?? []) {
      const epochs = epochsOfSink(book, sink, sinks, stream);
      if (epochs.length > 0) found.set(stream, await told(epochs, stream, present));
    }
    if (found.size > 0) pieces.set(sink.name, found);
  }
  return pieces;
}

/**
 * What is refused is what was not decoded: where a sink of rejects was added later, it has the plan of the rows. A sink of rows that was
 * added later has none before its own first.
 */
function epochsOfSink(
  book: PlanBookState,
  { name, receives }: DerivedSink,
  sinks: readonly DerivedSink[],
  stream: StreamKey,
): readonly PlanSince[] {
  const own = book.get(name)?.get(stream)?.epochs ?? [];
  if (receives !== "rejected") return own;
  const rows = sinks
    .filter((s) => s.receives === "decoded")
    .map((s) => book.get(s.name)?.get(stream)?.epochs ?? [])
    .filter((e) => e.length > 0)
    .toSorted((a, b) => (a[0]!.from < b[0]!.from ? -1 : 1));
  const first = own[0]?.from;
  const before = (rows[0] ?? []).filter((e) => first === undefined || e.from < first);
  return [...before, ...own];
}

/** The plan by which this configuration decodes is that of now. */
async function told(
  epochs: readonly PlanSince[],
  stream: StreamKey,
  present: Pick<PresentPlans, "of">,
): Promise<readonly PlanPiece[]> {
  // Where a schema file of now cannot be read, none is like it.
  const now = await present.of(streamParts(stream).topic).then(
    (p) => p.digest,
    () => null,
  );
  return epochs.map(({ from, plan: of }) => {
    const plan = of ?? FORGOTTEN;
    return { from, plan: plan === now ? null : plan };
  });
}

export class EarlierPlans {
  readonly #book: Pick<PlanBook, "plan">;
  readonly #place: string;

  /** `place`: of the book, for messages. */
  constructor(book: Pick<PlanBook, "plan">, place: string) {
    this.#book = book;
    this.#place = place;
  }

  /** A failure: nothing can be decoded by it. Rejects where that is not known now. */
  async get(plan: string): Promise<DecodePlan | Failure> {
    const bytes = plan === FORGOTTEN ? null : await this.#book.plan(plan);
    if (bytes === null) {
      const what =
        plan === FORGOTTEN ? "so many came after it that it was let go of" : `${plan} is not there`;
      return new Failure("recovery.plan_missing", `the plan by which records were decoded: ${what}`, {
        at: this.#place,
        hint: REPLAN,
      });
    }
    try {
      return readPlan(bytes, plan);
    } catch (e) {
      return asFailure(e);
    }
  }
}

/** The section by which records are decoded as at their time; what other machines know is asked as is said now. */
export function decodeOfPlan(
  plan: DecodePlan,
  now: Resolved<DecodeSection>,
): Resolved<DecodeSection> | Failure {
  const decode = plan.decode as Resolved<DecodeSection>;
  if (plan.schemas === null) return decode;
  const { registry, schema_dir } = now;
  if (plan.schemas === "registry" && registry !== undefined) return { ...decode, registry };
  if (plan.schemas === "folder" && schema_dir !== undefined) return { ...decode, schema_dir };
  const what = plan.schemas === "registry" ? "a registry" : "a folder";
  return new Failure(
    "recovery.plan_unfit",
    `records were decoded by schemas of ${what}, and [decode] names none now`,
    { at: "decode", hint: REPLAN },
  );
}

/** The columns of its table are those of a file: rows that do not fit the table are no fault of theirs. */
export function hasOwnColumns({ decode, schemas }: DecodePlan): boolean {
  return decode.reader_schema !== undefined || (decode.schema_file !== undefined && schemas === null);
}

/** A table, or a registry, that is as the plan of now wants it. */
const CLASHES: ReadonlySet<string> = new Set([
  "table.mismatch",
  "postgres.table_mismatch",
  "registry.incompatible",
]);

/** What records of an earlier plan meet there says so, and how it can be settled. */
export function tellsClashes(observer: Observer): Observer {
  return {
    emit: (e) => {
      if ((e.e !== "sink.troubled" && e.e !== "sink.detached") || !CLASHES.has(e.failure.code))
        return observer.emit(e);
      const cause = fromWire(e.failure);
      const failure = new Failure(
        "recovery.plan_unfit",
        `records as they were decoded at their time do not fit the sink as it is now: ${cause.message}`,
        { ...(cause.at === null ? {} : { at: cause.at }), cause, hint: REPLAN },
      );
      observer.emit({ ...e, failure: toWire(failure) });
    },
  };
}
