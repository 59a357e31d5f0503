/** The type of a record's timestamp: 0 none, 1 CreateTime, 2 LogAppendTime in `BatchRuns`, and its name in raw rows. */
export const TIMESTAMP_TYPES = [null, "CreateTime", "LogAppendTime"] as const;

const CREATE_TIME_BYTES = TIMESTAMP_TYPES[1].length;

/** `bytes`: length of the name as raw rows have it, by which the two differ; negative: null. */
export function timestampTypeOf(bytes: number): number {
  if (bytes < 0) return 0;
  return bytes === CREATE_TIME_BYTES ? 1 : 2;
}
