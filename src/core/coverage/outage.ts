/** Which failures are waited out, with everything kept, once the work has begun. */
import type { Failure } from "../failure/failure.ts";

/**
 * An outage, or something around us (rights, space) that people mend while we run. Not what says that another
 * process or another version has the word now: waiting would only hide that.
 */
export function passes(failure: Failure): boolean {
  if (
    ["coverage.fenced", "coverage.owned", "coverage.newer_version", "coverage.no_links"].includes(
      failure.code,
    )
  ) {
    return false;
  }
  return failure.retry || failure.kind === "environment";
}
