/** Signals of a running pipeline. */

interface Drained {
  drain(reason: string): void;
}

/**
 * SIGTERM and SIGINT drain, the second of them ends at once; SIGHUP rereads the secrets. After `close` they
 * change nothing: the run is over, and its exit code is what is still to be told.
 */
export function listenToSignals(runner: Drained, reload: () => void): { close(): void } {
  let stopping = false;
  let over = false;
  const stop = (signal: NodeJS.Signals) => {
    if (over) return;
    if (stopping) process.exit(1);
    stopping = true;
    runner.drain(`${signal} received`);
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  process.on("SIGHUP", reload);
  return {
    close() {
      over = true;
      process.off("SIGHUP", reload);
    },
  };
}
