/** What a server said of a row, for its line in the rejects. Not its DETAIL, which quotes the row. */
import type { ServerNotice } from "../wire/backend.ts";

export function refusedReason({ message, sqlstate, constraint, column }: ServerNotice) {
  return {
    ...(column === null ? {} : { column }),
    ...(constraint === null ? {} : { constraint }),
    reason: message,
    sqlstate,
  };
}
