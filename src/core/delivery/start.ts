/**
 * Where a stream goes on (rule 6 of the design, section 5). The broker's commit says what was acknowledged, the
 * coverage what is durable in the sink; the coverage decides, the commit only shows where it was left.
 *
 *   commit  coverage        position
 *   no      no              the configured start, or the origin that an earlier run recorded
 *   no      yes             first position not covered, from the origin (else the first covered one) on
 *   yes     behind commit   refused, or with accept_gap the difference is recorded as lost
 *   yes     at or beyond    first position at or after the commit that is not covered
 *
 * Then, whatever it was: a position that retention has passed is refused or recorded as lost by policy, and one
 * beyond the log's end is refused, since a log that became shorter is not the log that was read.
 */
import {
  firstUncovered,
  intersectRanges,
  type Ranges,
  subtractRanges,
  unionRanges,
} from "../coverage/ranges.ts";
import { Failure } from "../failure/failure.ts";
import type { LostRange, Range } from "../ports/coverage.ts";
import type { StreamKey } from "../records/stream.ts";

export interface StartInput {
  readonly stream: StreamKey;
  /** `topic/partition` for messages. */
  readonly place: string;
  /** Null: the group has no commit for it. */
  readonly committed: bigint | null;
  /** Normal form, as in a `Claim`. */
  readonly covered: Ranges;
  readonly lost: Ranges;
  /** Where an earlier run first read it; null or absent if that was never recorded. */
  readonly origin?: bigint | null;
  /** Configured start; applies only where neither a commit nor coverage exists. */
  readonly start: "earliest" | "latest" | bigint;
  /** First position that the broker still has, and the end of what this reader may see. */
  readonly earliest: bigint;
  readonly latest: bigint;
  /** Records between coverage and a commit beyond it are given up, and recorded so. */
  readonly acceptGap: boolean;
  /** Records removed at the source before they were read: stop, or record them as lost and go on. */
  readonly retention: "fail" | "skip";
}

export type StartReason = "configured" | "covered" | "committed" | "accepted_gap";

export interface StartPlan {
  readonly position: bigint;
  readonly why: StartReason;
  /** Ranges above the position that need no reading any more. */
  readonly skip: Ranges;
  /** Covered ranges between the commit and the position: passed over, to be counted and logged. */
  readonly passed: Ranges;
  /** To be recorded as lost before anything is read. */
  readonly newLost: readonly LostRange[];
  /** To be recorded as the stream's origin where it has none yet. */
  readonly origin: bigint;
}

/** Throws delivery.commit_beyond_coverage, delivery.retention_gap or delivery.position_beyond_log. */
export function planStart(input: StartInput): StartPlan {
  const known = unionRanges(input.covered, input.lost);
  const chosen = choose(input, known);
  const gone = retentionGap(input, chosen);
  const settled = unionRanges(chosen.known, gone);
  const position = firstUncovered(settled, chosen.position);
  if (position > input.latest) throw beyondLog(input, position);
  const lost = (ranges: Ranges, reason: LostRange["reason"]): LostRange[] =>
    ranges.map((r) => ({ stream: input.stream, from: r.from, next: r.next, reason }));
  return {
    position,
    why: chosen.why,
    skip: settled.filter((r) => r.from > position),
    passed:
      input.committed === null
        ? []
        : intersectRanges(input.covered, [{ from: input.committed, next: position }]),
    newLost: [...lost(chosen.accepted, "accepted_gap"), ...lost(gone, "retention")],
    origin: firstOf(chosen),
  };
}

interface Choice {
  readonly position: bigint;
  readonly why: StartReason;
  readonly known: Ranges;
  readonly accepted: Ranges;
}

function choose(input: StartInput, known: Ranges): Choice {
  if (input.committed !== null) return fromCommit(input, input.committed, known);
  const first = firstEverRead(input, known);
  if (first !== null) {
    const position = firstUncovered(known, first);
    return { position, why: "covered", known, accepted: [] };
  }
  const position =
    input.start === "earliest" ? input.earliest : input.start === "latest" ? input.latest : input.start;
  return { position, why: "configured", known, accepted: [] };
}

/**
 * Where the stream was first read. Not simply the first covered position: sets may be covered out of order, and
 * what lies between the origin and the first covered range was read but never landed.
 */
function firstEverRead(input: StartInput, known: Ranges): bigint | null {
  const covered = known[0]?.from ?? null;
  const origin = input.origin ?? null;
  if (origin === null || covered === null) return origin ?? covered;
  return origin < covered ? origin : covered;
}

function fromCommit(input: StartInput, committed: bigint, known: Ranges): Choice {
  // Without coverage everything that the broker still has below the commit is unaccounted for.
  const base = firstEverRead(input, known) ?? input.earliest;
  const beyond: Ranges = base < committed ? subtractRanges([{ from: base, next: committed }], known) : [];
  if (beyond.length > 0 && !input.acceptGap) throw commitBeyondCoverage(input, committed, beyond);
  const settled = unionRanges(known, beyond);
  return {
    position: firstUncovered(settled, committed),
    why: beyond.length > 0 ? "accepted_gap" : "committed",
    known: settled,
    accepted: beyond,
  };
}

/** Below it nothing was ever asked for. */
function firstOf({ known, position }: Choice): bigint {
  const first = known[0]?.from ?? position;
  return first < position ? first : position;
}

function retentionGap(input: StartInput, chosen: Choice): Ranges {
  if (chosen.position >= input.earliest) return [];
  const gone = subtractRanges([{ from: chosen.position, next: input.earliest }], chosen.known);
  if (input.retention === "fail") {
    throw new Failure(
      "delivery.retention_gap",
      `records ${text(gone)} are not in the sink and the broker has removed them: it begins at ${input.earliest}`,
      {
        at: input.place,
        hint: "`on_out_of_range` of the source can accept the loss, which records it; and give the topic a longer retention",
      },
    );
  }
  return gone;
}

function commitBeyondCoverage(input: StartInput, committed: bigint, beyond: Ranges): Failure {
  return new Failure(
    "delivery.commit_beyond_coverage",
    `the group committed ${committed}, but records ${text(beyond)} are not in the sink`,
    {
      at: input.place,
      hint:
        "Is it the right group and sink path, or was the coverage removed or restored, or has another consumer used the group? " +
        "Where raw files are there, bring their coverage up to date first (twg inspect coverage --rebuild), or they land twice. " +
        `Reset the group to ${beyond[0]?.from} to read them, or record them as lost with --accept-gap`,
    },
  );
}

function beyondLog(input: StartInput, position: bigint): Failure {
  return new Failure(
    "delivery.position_beyond_log",
    `would go on at ${position}, but the log ends at ${input.latest}`,
    {
      at: input.place,
      hint: "Was the topic truncated by an unclean leader election, or made anew under the same name?",
    },
  );
}

/** At most three ranges, so that a message stays a line. */
function text(ranges: readonly Range[]): string {
  const shown = ranges.slice(0, 3).map((r) => `[${r.from}, ${r.next})`);
  return ranges.length > 3 ? `${shown.join(", ")} and ${ranges.length - 3} more ranges` : shown.join(", ");
}
