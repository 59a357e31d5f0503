/** The small worlds that are walked whole. */
import type { Case } from "./world.ts";

const A = "kafka/c/t/0/0";
const B = "kafka/c/t/0/1";
const span = (stream: string, from: number, next: number) => ({
  stream,
  from: BigInt(from),
  next: BigInt(next),
});

/** Three batches, the middle one of both streams: it has two files, and may be torn. */
const THREE = [[span(A, 0, 1)], [span(A, 1, 2), span(B, 0, 1)], [span(B, 1, 2)]];
const TWO = [[span(A, 0, 1)], [span(A, 1, 2)]];
const BOTH = [A, B];
const RECOVERY = { streams: [], groupEpoch: null, recovers: true } as const;

export const CASES: readonly Case[] = [
  {
    name: "crash_alone",
    ...{ batches: THREE, sinks: 1, crashes: 1, life: "known" },
    owners: [{ streams: BOTH, groupEpoch: null }],
  },
  {
    name: "sinks_alone",
    ...{ batches: TWO, sinks: 2, crashes: 1, life: "known" },
    owners: [{ streams: [A], groupEpoch: null }],
  },
  {
    name: "crash",
    ...{ batches: THREE, sinks: 1, crashes: 2, life: "known" },
    owners: [
      { streams: BOTH, groupEpoch: null },
      { streams: BOTH, groupEpoch: null },
    ],
  },
  {
    name: "taken_for_dead",
    ...{ batches: TWO, sinks: 1, crashes: 1, life: "unknown" },
    owners: [
      { streams: [A], groupEpoch: null },
      { streams: [A], groupEpoch: null },
    ],
  },
  {
    name: "rebalance",
    ...{ batches: THREE, sinks: 1, crashes: 1, life: "known" },
    owners: [
      { streams: BOTH, groupEpoch: 1 },
      { streams: BOTH, groupEpoch: 2 },
    ],
  },
  {
    name: "one_moves",
    ...{ batches: THREE, sinks: 1, crashes: 1, life: "known" },
    owners: [
      { streams: BOTH, groupEpoch: 1 },
      { streams: [B], groupEpoch: 2 },
    ],
  },
  {
    name: "two_sinks",
    ...{ batches: TWO, sinks: 2, crashes: 1, life: "known" },
    owners: [
      { streams: [A], groupEpoch: 1 },
      { streams: [A], groupEpoch: 2 },
    ],
  },
  {
    name: "lease_alone",
    ...{ batches: TWO, sinks: 2, crashes: 1, life: "known" },
    before: [{ streams: [A], groupEpoch: null, misses: [0, 1] }],
    owners: [RECOVERY],
  },
  {
    name: "two_leases",
    ...{ batches: TWO, sinks: 2, crashes: 1, life: "known" },
    before: [{ streams: [A], groupEpoch: null, misses: [0, 1] }],
    owners: [RECOVERY, RECOVERY],
  },
  {
    name: "lease_expires",
    ...{ batches: TWO, sinks: 2, crashes: 1, life: "unknown" },
    before: [{ streams: [A], groupEpoch: null, misses: [0, 1] }],
    owners: [RECOVERY, RECOVERY],
  },
  {
    name: "lease_beside",
    ...{ batches: TWO, sinks: 2, crashes: 1, life: "known" },
    before: [{ streams: [A], groupEpoch: null, batches: 1, misses: [0] }],
    owners: [{ streams: [A], groupEpoch: null }, RECOVERY],
  },
  {
    name: "lease_below_head",
    ...{ batches: TWO, sinks: 2, crashes: 1, life: "known" },
    before: [
      { streams: [A], groupEpoch: null, misses: [0, 1] },
      // It has claimed the stream, and let go of nothing yet.
      { streams: [A], groupEpoch: null, batches: 0, stays: true },
    ],
    owners: [RECOVERY],
  },
  {
    // It has missed a batch, says so, and stays.
    name: "head_told",
    ...{ batches: TWO, sinks: 2, crashes: 0, life: "known", fills: [0] },
    before: [{ streams: [A], groupEpoch: null, batches: 1, misses: [0], stays: true }],
    owners: [RECOVERY, RECOVERY],
  },
  {
    // What raw had before the claim is below the head from the start.
    name: "head_claimed",
    ...{ batches: TWO, sinks: 2, crashes: 0, life: "known", fills: [0] },
    before: [
      { streams: [A], groupEpoch: null, batches: 1, misses: [0] },
      { streams: [A], groupEpoch: null, batches: 1, stays: true },
    ],
    owners: [RECOVERY, RECOVERY],
  },
  {
    name: "lease_of_silent",
    ...{ batches: TWO, sinks: 2, crashes: 1, life: "unknown" },
    before: [{ streams: [A], groupEpoch: null, batches: 1, misses: [0] }],
    owners: [{ streams: [A], groupEpoch: 1 }, RECOVERY],
  },
];

export function caseNamed(name: string): Case | null {
  return CASES.find((c) => c.name === name) ?? null;
}
