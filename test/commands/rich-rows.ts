/** Rows with nulls, empty and long fields, headers, timestamps at the ends of their range, and runs of all kinds. */
import { bytes, type Row, row } from "../core/formats/parquet/rows.ts";

export const RICH: readonly Row[] = Array.from({ length: 5000 }, (_, i) =>
  row(3 * i + (i % 2), {
    key: i % 5 === 0 ? null : bytes(i % 7 === 0 ? "" : `k${i}`),
    value: i % 11 === 0 ? null : bytes(i % 13 === 0 ? "" : "v".repeat(i % 50)),
    headers:
      i % 3 === 0
        ? [
            [bytes(`h${i}`), i % 2 === 0 ? null : bytes("x")],
            [bytes(""), bytes("")],
          ]
        : [],
    timestamp: [1_700_000_000_000n + BigInt(i), -1n, 9_223_372_036_854_775_807n][i % 97 === 0 ? 2 : i % 2]!,
    timestampType: i < 100 ? 0 : i < 3000 ? 1 : 2,
    leaderEpoch: i < 2000 ? -1 : 7,
    producerId: i < 1000 ? -1n : BigInt(i >> 9),
    producerEpoch: i < 1000 ? -1 : 3,
    baseSequence: i < 1000 ? -1 : i >> 9,
    transactional: i >= 2500 && i < 2600,
  }),
);
