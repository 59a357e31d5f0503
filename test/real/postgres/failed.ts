import { Failure } from "../../../src/core/failure/failure.ts";

/** The failure that something ends with; it is an error if it ends well, or with anything else. */
export const failed = (work: Promise<unknown>): Promise<Failure> =>
  work.then(
    () => Promise.reject(new Error("did not fail")),
    (e: unknown) => (e instanceof Failure ? e : Promise.reject(e)),
  );
