/** How long claims and grants of a Kafka sink bear with what others do in its coverage topic. */

/** Longest look at the states while a change of somebody hangs. */
export const LOOK_MS = 1_000;
/** Longest look at the ranges while a commit does, where other sinks have to be seen to. */
export const RANGES_MS = 5_000;
/** So often somebody else may come in between before it is a failure. */
export const MOVED_TRIES = 20;
