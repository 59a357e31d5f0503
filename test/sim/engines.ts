/** Connections of simulated recoveries to one database: opening one takes longer than what a process does with it here. */
import { DuckEngine } from "../../src/adapters/duckdb/engine.ts";
import { replayEngine } from "../../src/commands/lane-replay.ts";

/** For all recoveries of a world, those that hang and were killed among them: they keep what they read until the end. */
const WORLD_GROUP_BYTES = 128 * 1024 * 1024;

export class SimEngines {
  #database: DuckEngine | null = null;
  readonly #connections: DuckEngine[] = [];

  readonly connection = (): DuckEngine => {
    this.#database ??= replayEngine(WORLD_GROUP_BYTES);
    const connection = new DuckEngine({ beside: this.#database });
    this.#connections.push(connection);
    return connection;
  };

  close(): void {
    for (const c of this.#connections.splice(0)) c.close();
    this.#database?.close();
    this.#database = null;
  }
}
